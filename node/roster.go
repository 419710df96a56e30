package node

import (
	"container/list"

	"github.com/lightswarm/lightswarm/wire"
)

// roster remembers something of a bounded number of peers. When it is full, a new peer takes the place of the one that
// was touched longest ago, and of one with accepted work only if all have some: whoever makes up identities drives out
// made-up identities alone. It is not safe for concurrent use.
type roster[T any] struct {
	limit   int
	entries map[wire.PeerID]*list.Element
	// Entries without and with accepted work, touched last in front.
	unproven, proven list.List
}

type rosterEntry[T any] struct {
	peer   wire.PeerID
	value  T
	proven bool
}

func newRoster[T any](limit int) *roster[T] {
	return &roster[T]{limit: limit, entries: make(map[wire.PeerID]*list.Element)}
}

// get returns what is remembered of a peer, to be changed, and nil if nothing is.
func (r *roster[T]) get(p wire.PeerID) *T {
	if e := r.entries[p]; e != nil {
		return &e.Value.(*rosterEntry[T]).value
	}
	return nil
}

// add remembers something of a peer that is not known.
func (r *roster[T]) add(p wire.PeerID, value T) *T {
	if len(r.entries) >= r.limit {
		from := &r.unproven
		if from.Len() == 0 {
			from = &r.proven
		}
		delete(r.entries, from.Remove(from.Back()).(*rosterEntry[T]).peer)
	}
	e := &rosterEntry[T]{peer: p, value: value}
	r.entries[p] = r.unproven.PushFront(e)
	return &e.value
}

// touch notes that a peer that is known did something, with accepted set that its work was accepted.
func (r *roster[T]) touch(p wire.PeerID, accepted bool) {
	element := r.entries[p]
	e := element.Value.(*rosterEntry[T])
	switch {
	case e.proven:
		r.proven.MoveToFront(element)
	case accepted:
		r.unproven.Remove(element)
		e.proven = true
		r.entries[p] = r.proven.PushFront(e)
	default:
		r.unproven.MoveToFront(element)
	}
}
