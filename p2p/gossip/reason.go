package gossip

import pubsub "github.com/libp2p/go-libp2p-pubsub"

// Reason is why a record was accepted or not. The strings are stable: they name counters.
type Reason string

// The reasons.
const (
	Accepted Reason = "accepted"

	// Rejected, and held against the peer that passed it on.
	Oversized    Reason = "oversized"     // More bytes than a gossiped record may have.
	Malformed    Reason = "malformed"     // Not an encoding of a valid record of this kind.
	BadSignature Reason = "bad_signature" // Not signed, or not by whom it says.
	OtherNetwork Reason = "other_network" // For another network than the topic's.
	NotALearner  Reason = "not_a_learner" // A release by a peer that the charter does not let sign any.

	// Ignored, and held against nobody.
	NewerFormat    Reason = "newer_format"    // Written by a newer program; this one needs an upgrade.
	Duplicate      Reason = "duplicate"       // Seen before.
	Stale          Reason = "stale"           // Overtaken: an old version, an old sign of life.
	Forked         Reason = "forked"          // A release of a version of which this node has another release.
	UnknownVersion Reason = "unknown_version" // For a release that this node does not have yet.
	RateLimited    Reason = "rate_limited"    // More of one peer at once than is passed on.
	TooFarAhead    Reason = "too_far_ahead"   // A sequence far beyond the last one seen without gaps.
)

// Reasons lists all reasons.
var Reasons = [...]Reason{
	Accepted, Oversized, Malformed, BadSignature, OtherNetwork, NotALearner,
	NewerFormat, Duplicate, Stale, Forked, UnknownVersion, RateLimited, TooFarAhead,
}

// Rejects reports whether the reason is held against whoever passed the record on.
func (r Reason) Rejects() bool {
	switch r {
	case Oversized, Malformed, BadSignature, OtherNetwork, NotALearner:
		return true
	}
	return false
}

// result is the reason in GossipSub's terms.
func (r Reason) result() pubsub.ValidationResult {
	switch {
	case r == Accepted:
		return pubsub.ValidationAccept
	case r.Rejects():
		return pubsub.ValidationReject
	}
	return pubsub.ValidationIgnore
}

// Kind is a kind of gossiped record.
type Kind int

// The kinds.
const (
	Release Kind = iota
	Announcement
	Presence
	kinds int = iota
)

// String returns the kind's name, as in its topic.
func (k Kind) String() string { return [kinds]string{"release", "announcement", "presence"}[k] }
