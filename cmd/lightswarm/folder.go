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
	if !hasDatabase(path) {
		return wire.CID{}, false, nil
	}
	folder, err := config.OpenFolder(path)
	if err != nil {
		return wire.CID{}, false, err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	key, err := folder.Identity()
	if err != nil {
		return wire.CID{}, false, err
	}
	s, err := store.Open(store.Options{
		Folder: folder.Database(), Self: wire.NewKey(key).Peer(), MaxBlockBytes: int64(config.Default().Store.MaxBlockBytes),
	})
	if err != nil {
		return wire.CID{}, false, err
	}
	network, ok, err = s.Network()
	return network, ok, errors.Join(err, s.Close())
}
