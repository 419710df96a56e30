package store

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/lightswarm/lightswarm/wire"
)

// Pin adds CIDs to a named set, whose blocks are never removed to make room, durably. A CID's block may be stored
// later. A name has no zero byte.
func (s *Store) Pin(set string, cids ...wire.CID) error {
	return s.update(durable, func(t *transaction) error {
		for _, cid := range cids {
			if err := t.pin(set, cid); err != nil {
				return err
			}
		}
		return nil
	})
}

// SetPins makes the named set exactly the CIDs, durably.
func (s *Store) SetPins(set string, cids ...wire.CID) error {
	return s.update(durable, func(t *transaction) error {
		keep := make(map[wire.CID]bool, len(cids))
		for _, cid := range cids {
			keep[cid] = true
			if err := t.pin(set, cid); err != nil {
				return err
			}
		}
		members, err := members(t, set)
		if err != nil {
			return err
		}
		for _, cid := range members {
			if keep[cid] {
				continue
			}
			if err := t.unpin(set, cid); err != nil {
				return err
			}
		}
		return nil
	})
}

// Pinned lists a set's CIDs, in no particular order.
func (s *Store) Pinned(set string) ([]wire.CID, error) {
	return members(s.db, set)
}

func members(r pebble.Reader, set string) ([]wire.CID, error) {
	prefix := key(tagPinSet, setField(set))
	var cids []wire.CID
	err := scanPrefix(r, prefix, func(k, _ []byte) (bool, error) {
		cid, err := wire.ParseCID(k[len(prefix):])
		if err != nil {
			return false, fmt.Errorf("damaged pin in the database: %w", err)
		}
		cids = append(cids, cid)
		return true, nil
	})
	return cids, err
}

// pinned says whether any set has the CID.
func (t *transaction) pinned(cid wire.CID) (found bool, err error) {
	err = scanPrefix(t, key(tagPin, cid.Bytes()), func(_, _ []byte) (bool, error) {
		found = true
		return false, nil
	})
	return found, err
}

func (t *transaction) pin(set string, cid wire.CID) error {
	pinKey := key(tagPin, cid.Bytes(), setField(set))
	if there, err := has(t, pinKey); err != nil || there {
		return err
	}
	t.put(pinKey, nil)
	t.put(key(tagPinSet, setField(set), cid.Bytes()), nil)
	stored, err := has(t, key(tagBlockInfo, cid.Bytes()))
	if err != nil || !stored {
		return err
	}
	info, err := t.blockInfo(cid)
	if err != nil {
		return err
	}
	t.remove(key(tagBlockOrder, uint64Field(info.order)))
	return nil
}

func (t *transaction) unpin(set string, cid wire.CID) error {
	t.remove(key(tagPin, cid.Bytes(), setField(set)))
	t.remove(key(tagPinSet, setField(set), cid.Bytes()))
	stillPinned, err := t.pinned(cid)
	if err != nil || stillPinned {
		return err
	}
	stored, err := has(t, key(tagBlockInfo, cid.Bytes()))
	if err != nil || !stored {
		return err
	}
	info, err := t.blockInfo(cid)
	if err != nil {
		return err
	}
	t.put(key(tagBlockOrder, uint64Field(info.order)), cid.Bytes())
	return nil
}
