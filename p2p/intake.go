package p2p

import (
	"sync"
	"time"

	"github.com/lightswarm/lightswarm/p2p/gossip"
	"github.com/lightswarm/lightswarm/p2p/head"
	"github.com/lightswarm/lightswarm/wire"
)

// intake is where accepted records from gossip and pulls meet: it keeps out what the other way brought already and
// calls the node's handlers one at a time.
type intake struct {
	view   view
	memory *gossip.Memory
	seen   func(wire.SignedPresence)

	mu             sync.Mutex // Held during a handler, so that handlers are called one at a time.
	onRelease      func(wire.SignedRelease)
	onAnnouncement func(wire.SignedAnnouncement)
	onPresence     func(wire.SignedPresence)
	onRefused      func(wire.SignedRelease, gossip.Reason)
}

// release hands a release over, unless the node has its version.
func (in *intake) release(r wire.SignedRelease) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if r.Version >= in.view.NextRelease() && in.onRelease != nil {
		in.onRelease(r)
	}
}

// refused hands over a learner's release that the node cannot follow.
func (in *intake) refused(r wire.SignedRelease, reason gossip.Reason) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.onRefused != nil {
		in.onRefused(r, reason)
	}
}

// announcement hands an announcement over, unless it is known, and reports whether it did.
func (in *intake) announcement(a wire.SignedAnnouncement) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.memory.Take(a.Signer, a.Sequence) {
		return false
	}
	if in.onAnnouncement != nil {
		in.onAnnouncement(a)
	}
	return true
}

// presence hands a sign of life over, unless a newer one is known.
func (in *intake) presence(p wire.SignedPresence) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if !p.Created.After(in.memory.LastPresence(p.Signer)) {
		return
	}
	in.memory.Heard(p.Signer, p.Created, p.NextSequence)
	in.seen(p)
	if in.onPresence != nil {
		in.onPresence(p)
	}
}

// view is the node's state as the rules see it.
type view struct {
	source head.Source
	memory *gossip.Memory
}

// Head implements gossip.View.
func (v view) Head() uint64 { return v.source.Head() }

// NextRelease implements gossip.View.
func (v view) NextRelease() uint64 {
	if h := v.source.Head(); h > 0 {
		return h + 1
	}
	if first, err := v.source.Releases(0, 1); err == nil && len(first) > 0 {
		return 1
	}
	return 0
}

// Release implements gossip.View.
func (v view) Release(version uint64) wire.CID {
	found, err := v.source.Releases(version, 1)
	if err != nil || len(found) == 0 {
		return wire.CID{}
	}
	r, err := wire.OpenRelease(found[0])
	if err != nil || r.Version != version {
		return wire.CID{}
	}
	return r.ID
}

// Announced implements gossip.View.
func (v view) Announced(peer wire.PeerID, sequence uint64) gossip.Reason {
	return v.memory.Announced(peer, sequence)
}

// LastPresence implements gossip.View.
func (v view) LastPresence(peer wire.PeerID) time.Time { return v.memory.LastPresence(peer) }
