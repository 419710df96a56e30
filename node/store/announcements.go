package store

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/lightswarm/lightswarm/wire"
)

// Bounds of the announcements that are kept. The oldest make room; a peer that asks for them finds a gap.
const (
	// maxOwn is how many of the node's own announcements are kept.
	maxOwn = 1 << 16
	// maxOthers is how many announcements of all other peers together are kept.
	maxOthers = 1 << 16
	// maxCursors is how many peers' cursors are kept.
	maxCursors = 1 << 16
)

func announcementKey(peer wire.PeerID, sequence uint64) []byte {
	return key(tagAnnouncement, peerField(peer), uint64Field(sequence))
}

func (s *Store) loadAnnouncements() error {
	var err error
	if s.nextSequence, err = getUint64(s.db, sequenceKey); err != nil {
		return err
	}
	err = scanPrefix(s.db, key(tagArrival), func(k, _ []byte) (bool, error) {
		s.nextArrival = binary.BigEndian.Uint64(k[1:]) + 1
		s.arrivals++
		return true, nil
	})
	if err != nil {
		return err
	}
	return scanPrefix(s.db, key(tagCursor), func(_, _ []byte) (bool, error) {
		s.cursors++
		return true, nil
	})
}

// Own is an announcement of the node itself on its way into the store.
type Own struct {
	// Bundle is the bundle's CID and Data its bytes, which are kept and pinned until ForgetBundles.
	Bundle wire.CID
	Data   []byte
	// Version is the policy version that sampled the bundle.
	Version uint64
	// Sign returns the signed bytes of the announcement with a sequence number. It is called once, without waiting
	// for anything but the processor.
	Sign func(sequence uint64) ([]byte, error)
	// Draw, if it is not nil, is the draw counter that the bundle completes; see Draws.
	Draw *uint64
}

// Announce gives an announcement of the node's own the next sequence number, 0, 1, 2, …, and keeps it with its
// bundle, durably and in one change. No number is skipped and none is used twice, also across crashes.
func (s *Store) Announce(o Own) (signed []byte, err error) {
	err = s.update(durable, func(t *transaction) error {
		sequence := t.nextSequence
		if signed, err = o.Sign(sequence); err != nil {
			return err
		}
		t.nextSequence++
		t.put(sequenceKey, uint64Field(t.nextSequence))
		t.put(announcementKey(t.self, sequence), signed)
		if sequence >= t.maxOwn {
			t.remove(announcementKey(t.self, sequence-t.maxOwn))
		}
		if o.Draw != nil {
			t.remove(key(tagDraw, uint64Field(*o.Draw)))
		}
		if err := t.pin(bundleSet(o.Version), o.Bundle); err != nil {
			return err
		}
		return t.putBlock(o.Bundle, o.Data)
	})
	if err != nil {
		return nil, fmt.Errorf("keep announcement: %w", err)
	}
	return signed, nil
}

// NextSequence is above the sequence numbers of the node's own announcements that are durable.
func (s *Store) NextSequence() uint64 { return s.visible().nextSequence }

// PutAnnouncement keeps another peer's announcement, lazily, for those who ask for it. added is false if it is there
// already. The caller has verified it.
func (s *Store) PutAnnouncement(peer wire.PeerID, sequence uint64, signed []byte) (added bool, err error) {
	k := announcementKey(peer, sequence)
	err = s.update(lazy, func(t *transaction) error {
		there, err := has(t, k)
		if err != nil || there {
			return err
		}
		added = true
		arrival := t.nextArrival
		t.put(k, signed)
		t.put(key(tagArrival, uint64Field(arrival)), k)
		t.nextArrival++
		t.arrivals++
		return t.pruneArrivals()
	})
	return added && err == nil, err
}

// pruneArrivals removes the oldest announcements of other peers beyond the bound.
func (t *transaction) pruneArrivals() error {
	for t.arrivals > t.maxOthers {
		err := scanPrefix(t, key(tagArrival), func(k, v []byte) (bool, error) {
			t.remove(append([]byte{}, v...))
			t.remove(append([]byte{}, k...))
			return false, nil
		})
		if err != nil {
			return err
		}
		t.arrivals--
	}
	return nil
}

// Announcements returns up to limit announcements of a peer, signed, with sequence from or above, ascending. The peer
// may be the node itself; of its announcements, those are left out that are not durable yet.
func (s *Store) Announcements(peer wire.PeerID, from uint64, limit int) ([][]byte, error) {
	if limit <= 0 || len(peer) > 255 {
		return nil, nil
	}
	end := after(key(tagAnnouncement, peerField(peer)))
	if peer == s.self {
		next := s.visible().nextSequence
		if from >= next {
			return nil, nil
		}
		end = announcementKey(peer, next)
	}
	var list [][]byte
	err := scan(s.db, announcementKey(peer, from), end, func(_, v []byte) (bool, error) {
		list = append(list, append([]byte{}, v...))
		return len(list) < limit, nil
	})
	return list, err
}

// Cursor is the first sequence of a peer's announcements that the node has not dealt with; 0 if it never set one.
func (s *Store) Cursor(peer wire.PeerID) (uint64, error) {
	return getUint64(s.db, key(tagCursor, peerField(peer)))
}

// SetCursor keeps a peer's cursor, lazily: what was dealt with durably before the call stays before the cursor. When
// there are too many, others are forgotten.
func (s *Store) SetCursor(peer wire.PeerID, sequence uint64) error {
	return s.update(lazy, func(t *transaction) error {
		k := key(tagCursor, peerField(peer))
		there, err := has(t, k)
		if err != nil {
			return err
		}
		t.put(k, uint64Field(sequence))
		if there {
			return nil
		}
		t.cursors++
		return t.pruneCursors(k)
	})
}

// pruneCursors removes cursors beyond the bound: those next to the one that was just added, which are any.
func (t *transaction) pruneCursors(added []byte) error {
	end := after(key(tagCursor))
	for _, part := range [][2][]byte{{append(slices.Clip(added), 0), end}, {key(tagCursor), added}} {
		if t.cursors <= t.maxCursors {
			return nil
		}
		var surplus [][]byte
		err := scan(t, part[0], part[1], func(k, _ []byte) (bool, error) {
			surplus = append(surplus, append([]byte{}, k...))
			return t.cursors-len(surplus) > t.maxCursors, nil
		})
		if err != nil {
			return err
		}
		for _, k := range surplus {
			t.remove(k)
		}
		t.cursors -= len(surplus)
	}
	return nil
}

// bundleSet pins the node's own bundles of one policy version. Names sort as versions do.
func bundleSet(version uint64) string { return fmt.Sprintf("bundles/%020d", version) }

// ForgetBundles unpins the node's own bundles of policy versions below one: nobody trains on them any more. They stay
// until their room is needed.
func (s *Store) ForgetBundles(below uint64) error {
	return s.update(lazy, func(t *transaction) error {
		first, end := key(tagPinSet, setField(bundleSet(0))), key(tagPinSet, setField(bundleSet(below)))
		type pin struct {
			set string
			cid wire.CID
		}
		var pins []pin
		err := scan(t, first, end, func(k, _ []byte) (bool, error) {
			name := len(bundleSet(0))
			cid, err := wire.ParseCID(k[1+name+1:])
			if err != nil {
				return false, fmt.Errorf("damaged pin in the database: %w", err)
			}
			pins = append(pins, pin{string(k[1 : 1+name]), cid})
			return true, nil
		})
		if err != nil {
			return err
		}
		for _, p := range pins {
			if err := t.unpin(p.set, p.cid); err != nil {
				return err
			}
		}
		return nil
	})
}
