package gossip

import (
	"errors"
	"time"

	"github.com/lightswarm/lightswarm/wire"
)

// MaxClockSkew is how far a sign of life's time may be from this node's clock.
const MaxClockSkew = 15 * time.Minute

// Rules decide about records. They are pure: what they need to know of this node's state is in a View. The charter's
// part of them is the same on every node.
type Rules struct {
	// Network is the network's id.
	Network wire.CID
	// Self is this node; its own records that come back are duplicates.
	Self wire.PeerID
	// Learners may sign releases.
	Learners map[wire.PeerID]bool
	// MaxLag is how many versions a training announcement may be below the newest release.
	MaxLag uint32
}

// View is what the rules need to know of a node's state. It is safe for concurrent use.
type View interface {
	// Head is the newest version that the node knows.
	Head() uint64
	// NextRelease is the first version that the node does not have: Head()+1, or 0 when it has none.
	NextRelease() uint64
	// Release is the id of the release that the node has of a version; undefined when it has none.
	Release(version uint64) wire.CID
	// Announced says what is known of one announcement: Accepted when it is new, else Duplicate or TooFarAhead.
	Announced(peer wire.PeerID, sequence uint64) Reason
	// LastPresence is the time in the newest sign of life of a peer, zero when there was none.
	LastPresence(peer wire.PeerID) time.Time
}

// Release opens and judges a release. Of one that a learner signed in a NewerFormat, the signer alone is returned.
func (r *Rules) Release(v View, raw []byte) (wire.SignedRelease, Reason) {
	rel, reason := r.openRelease(raw)
	if reason == Accepted && rel.Version < v.NextRelease() {
		reason = Stale
		if known := v.Release(rel.Version); known.Defined() && known != rel.ID {
			reason = Forked
		}
	}
	return rel, reason
}

// Announcement opens and judges an announcement.
func (r *Rules) Announcement(v View, raw []byte) (wire.SignedAnnouncement, Reason) {
	a, reason := r.openAnnouncement(raw)
	if reason != Accepted {
		return a, reason
	}
	if a.Signer == r.Self {
		return a, Duplicate
	}
	if reason := v.Announced(a.Signer, a.Sequence); reason != Accepted {
		return a, reason
	}
	head := v.Head()
	switch {
	case a.PolicyVersion > head:
		return a, UnknownVersion
	case a.Purpose == wire.PurposeTrain && head-a.PolicyVersion > uint64(r.MaxLag):
		return a, Stale
	}
	return a, Accepted
}

// Presence opens and judges a sign of life.
func (r *Rules) Presence(v View, now time.Time, raw []byte) (wire.SignedPresence, Reason) {
	p, reason := r.openPresence(raw)
	switch {
	case reason != Accepted:
		return p, reason
	case p.Signer == r.Self:
		return p, Duplicate
	case !p.Created.After(v.LastPresence(p.Signer)) || now.Sub(p.Created).Abs() > MaxClockSkew:
		return p, Stale
	}
	return p, Accepted
}

// open judges what does not depend on this node: it is all that the node's own records have to pass.
func (r *Rules) open(kind Kind, raw []byte) (reason Reason) {
	switch kind {
	case Release:
		_, reason = r.openRelease(raw)
	case Announcement:
		_, reason = r.openAnnouncement(raw)
	case Presence:
		_, reason = r.openPresence(raw)
	}
	return reason
}

func (r *Rules) openRelease(raw []byte) (wire.SignedRelease, Reason) {
	rel, err := wire.OpenRelease(raw)
	if errors.Is(err, wire.ErrNewerMajor) {
		// Nobody but a learner shall make people upgrade.
		if _, signer, err := wire.Open(wire.DomainRelease, raw); err == nil && r.Learners[signer] {
			rel.Signer = signer
		}
	}
	switch {
	case err != nil:
		return rel, reasonOf(err)
	case rel.Network != r.Network:
		return rel, OtherNetwork
	case !r.Learners[rel.Signer]:
		return rel, NotALearner
	}
	return rel, Accepted
}

func (r *Rules) openAnnouncement(raw []byte) (wire.SignedAnnouncement, Reason) {
	a, err := wire.OpenAnnouncement(raw)
	switch {
	case err != nil:
		return a, reasonOf(err)
	case a.Network != r.Network:
		return a, OtherNetwork
	}
	return a, Accepted
}

func (r *Rules) openPresence(raw []byte) (wire.SignedPresence, Reason) {
	p, err := wire.OpenPresence(raw)
	switch {
	case err != nil:
		return p, reasonOf(err)
	case p.Network != r.Network:
		return p, OtherNetwork
	}
	return p, Accepted
}

// reasonOf names why a record could not be opened.
func reasonOf(err error) Reason {
	switch {
	case errors.Is(err, wire.ErrTooLarge):
		return Oversized
	case errors.Is(err, wire.ErrSignature):
		return BadSignature
	case errors.Is(err, wire.ErrNewerMajor):
		return NewerFormat
	}
	return Malformed
}
