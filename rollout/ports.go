package rollout

import (
	"context"

	"github.com/lightswarm/lightswarm/wire"
)

// Announcer takes finished bundles. It is safe for concurrent use.
type Announcer interface {
	// Announce makes a bundle known. In one durable step it stores the body under a.Bundle and the announcement,
	// and ends the reservation of a.Counter if a.Purpose is train; telling others may come later, and may be
	// repeated after a restart. It fills in Sequence and Created, and keeps body.
	//
	// Blocks of an evaluation may be announced twice by different peers: their bundles are the same.
	Announce(ctx context.Context, a wire.Announcement, body []byte) error
}

// Counters gives out a peer's draw counters 0, 1, 2, … durably, each for the policy version that it is reserved under.
// Under another version a counter would draw another group: whoever runs it again then could exchange a group that he
// does not like for a better one, and nobody would see. A counter that is left out is seen. It is safe for concurrent
// use.
type Counters interface {
	// Resume returns the counters that were reserved under a version and never announced, ascending, and ends all
	// other reservations: those counters are left out. A worker asks once, before it reserves its first counter.
	Resume(ctx context.Context, version uint64) ([]uint64, error)
	// Reserve returns the next counter. When it returns, a restart would find it by Resume.
	Reserve(ctx context.Context, version uint64) (uint64, error)
}

// Claim is what is known of an evaluation block.
type Claim uint8

const (
	// Unclaimed means that nobody is known to have measured it.
	Unclaimed Claim = iota
	// Claimed means that a peer says that it has measured it. If that does not prove true, it becomes Unclaimed after a while.
	Claimed
	// Settled means that it has its results. It stays so.
	Settled
)

// Evaluations knows which evaluation blocks have been measured, by this peer or another. It is safe for concurrent use.
type Evaluations interface {
	// Claim says what is known of a block. A wrong Unclaimed costs a repetition, nothing else; a wrong Claimed a delay.
	Claim(version uint64, purpose wire.Purpose, block uint64) Claim
}
