package node

import (
	"maps"
	"slices"
	"sync"

	"github.com/lightswarm/lightswarm/node/store"
	"github.com/lightswarm/lightswarm/wire"
)

const (
	// maxJudgedAhead is how many verdicts of one peer are remembered beyond a missing one. Then the missing announcement
	// is given up on.
	maxJudgedAhead = 4096
	// maxCursors bounds the peers that are remembered: anybody can sign announcements with any number of keys.
	maxCursors = 8192
)

// cursors remembers, for each peer, up to which sequence the learner has decided on every announcement, so that a
// restarted node pulls again what it had not got round to. Cursors of peers with accepted work are in the store as well.
// A cursor that is forgotten is 0 again: what was decided before is pulled once more, and refused as a duplicate or as
// stale. It is safe for concurrent use.
type cursors struct {
	store *store.Store

	// mu is held over the store, so that a peer's cursors get there in order. The store does not wait for the disk with
	// them: they are kept lazily.
	mu     sync.Mutex
	byPeer *roster[*cursor] // guarded by mu
}

type cursor struct {
	next   uint64          // all below are judged
	ahead  map[uint64]bool // judged, and above next
	stored bool            // in the store
}

func newCursors(s *store.Store) *cursors {
	return &cursors{store: s, byPeer: newRoster[*cursor](maxCursors)}
}

// next is the first sequence of a peer's announcements that is not decided.
func (c *cursors) next(p wire.PeerID) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, err := c.of(p)
	if err != nil {
		return 0
	}
	return known.next
}

// judged notes that an announcement is decided, durably if it was accepted. Only then is there a cursor on the disk: one
// that costs no accepted work would let anybody fill it.
func (c *cursors) judged(p wire.PeerID, sequence uint64, accepted bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, err := c.of(p)
	if err != nil {
		return err
	}
	c.byPeer.touch(p, accepted)
	moved := known.judge(sequence)
	if known.stored && !moved || !known.stored && !accepted {
		return nil
	}
	known.stored = true
	return c.store.SetCursor(p, known.next)
}

// of returns a peer's cursor, from the store the first time. c.mu is held.
func (c *cursors) of(p wire.PeerID) (*cursor, error) {
	if known := c.byPeer.get(p); known != nil {
		return *known, nil
	}
	next, err := c.store.Cursor(p)
	if err != nil {
		return nil, err
	}
	known := &cursor{next: next, ahead: make(map[uint64]bool), stored: next > 0}
	c.byPeer.add(p, known)
	c.byPeer.touch(p, known.stored)
	return known, nil
}

// judge notes one sequence and reports whether next moved.
func (c *cursor) judge(sequence uint64) (moved bool) {
	if sequence < c.next {
		return false
	}
	c.ahead[sequence] = true
	if len(c.ahead) > maxJudgedAhead {
		c.next = slices.Min(slices.Collect(maps.Keys(c.ahead)))
		moved = true
	}
	for c.ahead[c.next] {
		delete(c.ahead, c.next)
		c.next++
		moved = true
	}
	return moved
}
