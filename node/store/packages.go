package store

import (
	"errors"
	"fmt"

	"github.com/lightswarm/lightswarm/p2p/packages"
	"github.com/lightswarm/lightswarm/wire"
)

var _ packages.Source = (*Store)(nil)

// MaxPackages bounds the statements about environment packages that a node keeps: as many as it can tell others of.
const MaxPackages = wire.MaxPackageRecords

// ErrPackages says that the node keeps as many environment packages as it may.
var ErrPackages = fmt.Errorf("the node keeps %d environment packages, as many as it may", MaxPackages)

// packageSet is the name of the set that pins an environment package's blocks.
func packageSet(manifest wire.CID) string { return "package/" + manifest.String() }

// KeepPackage keeps an author's statement about an environment package, and pins and keeps the package's blocks, durably
// and in one change. Of one author there is one statement about a manifest: the newest that was kept. The blocks may be
// left out if something else keeps them.
func (s *Store) KeepPackage(p wire.SignedEnvironmentPackage, blocks map[wire.CID][]byte) error {
	return s.update(durable, func(t *transaction) error {
		k := key(tagPackage, p.Manifest.Bytes(), peerField(p.Author))
		there, err := has(t, k)
		if err != nil {
			return err
		}
		if !there {
			n := 0
			err := scanPrefix(t, key(tagPackage), func(_, _ []byte) (bool, error) {
				n++
				return n < MaxPackages, nil
			})
			if err != nil {
				return err
			}
			if n >= MaxPackages {
				return ErrPackages
			}
		}
		t.put(k, p.Raw)
		return t.putPinned(packageSet(p.Manifest), blocks)
	})
}

// Packages implements packages.Source: the statements in the order of their manifests' CIDs. One that is not durable yet
// may be among them; it does no harm if a crash makes the node forget it.
func (s *Store) Packages(manifest wire.CID, most int) (list [][]byte, err error) {
	prefix := key(tagPackage)
	if manifest.Defined() {
		prefix = key(tagPackage, manifest.Bytes())
	}
	if most <= 0 {
		return nil, nil
	}
	err = scanPrefix(s.db, prefix, func(_, v []byte) (bool, error) {
		list = append(list, append([]byte(nil), v...))
		return len(list) < most, nil
	})
	return list, err
}

// DropPackage forgets, durably, every statement about a manifest, and lets its blocks go, unless something else pins them.
// It reports whether there was one.
func (s *Store) DropPackage(manifest wire.CID) (found bool, err error) {
	err = s.update(durable, func(t *transaction) error {
		var keys [][]byte
		err := scanPrefix(t, key(tagPackage, manifest.Bytes()), func(k, _ []byte) (bool, error) {
			keys = append(keys, append([]byte(nil), k...))
			return true, nil
		})
		if err != nil {
			return err
		}
		for _, k := range keys {
			t.remove(k)
		}
		found = len(keys) > 0
		pins, err := members(t, packageSet(manifest))
		for _, cid := range pins {
			err = errors.Join(err, t.unpin(packageSet(manifest), cid))
		}
		return err
	})
	return found, err
}
