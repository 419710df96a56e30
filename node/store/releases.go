package store

import (
	"encoding/binary"
	"errors"

	"github.com/lightswarm/lightswarm/p2p/head"
)

var _ head.Source = (*Store)(nil)

func (s *Store) loadReleases() error {
	k, _, err := last(s.db, key(tagRelease))
	if err != nil || k == nil {
		return err
	}
	s.nextVersion = binary.BigEndian.Uint64(k[1:]) + 1
	return nil
}

// PutRelease keeps a release's signed bytes durably. A version has one release: another one for it is an error, the
// same one again is not. The caller has verified it.
func (s *Store) PutRelease(version uint64, signed []byte) error {
	return s.update(durable, func(t *transaction) error { return t.putRelease(version, signed) })
}

// ErrOtherRelease says that a version already has a release with other bytes.
var ErrOtherRelease = errors.New("the version already has another release")

func (t *transaction) putRelease(version uint64, signed []byte) error {
	releaseKey := key(tagRelease, uint64Field(version))
	old, ok, err := get(t, releaseKey)
	switch {
	case err != nil:
		return err
	case ok && string(old) != string(signed):
		return ErrOtherRelease
	case ok:
		return nil
	}
	t.put(releaseKey, signed)
	t.nextVersion = max(t.nextVersion, version+1)
	return nil
}

// Release returns the signed bytes of a version; ok is false if there are none.
func (s *Store) Release(version uint64) (signed []byte, ok bool, err error) {
	return get(s.db, key(tagRelease, uint64Field(version)))
}

// Releases returns up to limit releases' signed bytes of version from or above, ascending. It leaves out what is not
// durable yet.
func (s *Store) Releases(from uint64, limit int) ([][]byte, error) {
	var list [][]byte
	if limit <= 0 {
		return nil, nil
	}
	end := s.visible().nextVersion
	if from >= end {
		return nil, nil
	}
	err := scan(s.db, key(tagRelease, uint64Field(from)), key(tagRelease, uint64Field(end)), func(_, v []byte) (bool, error) {
		list = append(list, append([]byte{}, v...))
		return len(list) < limit, nil
	})
	return list, err
}

// Head is the newest version with a durable release, 0 if there is none.
func (s *Store) Head() uint64 { return max(s.visible().nextVersion, 1) - 1 }
