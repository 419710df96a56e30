package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/lightswarm/lightswarm/node/config"
	"github.com/lightswarm/lightswarm/node/store"
	"github.com/lightswarm/lightswarm/wire"
)

// checkFolder refuses a data folder that is something else.
func checkFolder(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return usage(fmt.Errorf("--data %s: %w", path, err))
	case !info.IsDir():
		return usage(fmt.Errorf("--data %s is not a folder: name a folder; it is made if it does not exist", path))
	}
	return nil
}

// hasDatabase says whether a node ever started on a data folder.
func hasDatabase(path string) bool {
	_, err := os.Stat(config.View(path).Database())
	return err == nil
}

// networkOf returns the network that a data folder belongs to; ok is false if there is none. A folder without a database
// is left as it is.
func networkOf(path string) (network wire.CID, ok bool, err error) {
	err = inStore(path, func(_ *config.Folder, s *store.Store) error {
		network, ok, err = s.Network()
		return err
	})
	return network, ok, err
}

// finishFounding marks the founding of a data folder's network as complete: from here on people may know of it.
func finishFounding(path string) error {
	return inStore(path, func(_ *config.Folder, s *store.Store) error { return s.SetFounded() })
}

// clearUnfinished removes the database of a network whose founding was interrupted before anybody was told of it: it is not
// marked as complete. Where a program that knew no such mark founded, there are settings, or a node has run, or something
// was released. The identity stays.
func clearUnfinished(path string) error {
	unfinished := false
	err := inStore(path, func(f *config.Folder, s *store.Store) error {
		founded, err := s.Founded()
		if err != nil {
			return err
		}
		_, released, err := s.Release(s.Head())
		unfinished = !founded && !released && !exists(f.ConfigFile()) && !exists(f.ListenFile())
		return err
	})
	if err != nil || !unfinished {
		return err
	}
	if err := os.RemoveAll(config.View(path).Database()); err != nil {
		return fmt.Errorf("remove what an interrupted founding left: %w", err)
	}
	return nil
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// inStore visits the store of a data folder that no node uses; it does nothing if there is none.
func inStore(path string, visit func(*config.Folder, *store.Store) error) (err error) {
	if !hasDatabase(path) {
		return nil
	}
	folder, err := config.OpenFolder(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	key, err := folder.Identity()
	if err != nil {
		return err
	}
	s, err := store.Open(store.Options{
		Folder: folder.Database(), Self: wire.NewKey(key).Peer(), MaxBlockBytes: int64(config.Default().Store.MaxBlockBytes),
	})
	if err != nil {
		return err
	}
	return errors.Join(visit(folder, s), s.Close())
}
