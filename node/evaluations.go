package node

import (
	"slices"
	"sync"
	"time"

	"github.com/lightswarm/lightswarm/rollout"
	"github.com/lightswarm/lightswarm/wire"
)

const (
	// keptEvaluations is how many of the newest versions' evaluation blocks are remembered.
	keptEvaluations = 16
	// claimHolds is how long an announcement keeps others from measuring a block. A learner that has got the results says
	// so well before.
	claimHolds = 30 * time.Second
	// maxClaims is how many peers' announcements of a block count: together, however many identities somebody made up,
	// they put off its measurement by maxClaims times claimHolds at most.
	maxClaims = 3
)

// evaluations remembers which evaluation blocks somebody measured. That a peer announced one is a hint that holds for a
// while; what this node measured, or a learner says it has, is settled. It is safe for concurrent use.
type evaluations struct {
	mu       sync.Mutex
	versions map[uint64]map[evaluationBlock]*claim // guarded by mu
}

type evaluationBlock struct {
	purpose wire.Purpose
	block   uint64
}

// claim is what is known of a block.
type claim struct {
	settled bool
	peers   []wire.PeerID // whose announcements counted, at most maxClaims
	until   time.Time     // the last of them holds until then
}

var _ rollout.Evaluations = (*evaluations)(nil)

// add notes an announcement; of a training bundle it is no news. blocks is how many a version has at most, so that
// made-up block numbers take no memory.
func (e *evaluations) add(a *wire.SignedAnnouncement, blocks int, now time.Time) {
	if a.Purpose == wire.PurposeTrain || a.Counter >= uint64(blocks) {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	c := e.claim(a.PolicyVersion, a.Purpose, a.Counter)
	if len(c.peers) < maxClaims && !slices.Contains(c.peers, a.Signer) {
		c.peers = append(c.peers, a.Signer)
		c.until = now.Add(claimHolds)
	}
}

// made notes that this node has measured a block.
func (e *evaluations) made(a *wire.SignedAnnouncement) {
	if a.Purpose == wire.PurposeTrain {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.claim(a.PolicyVersion, a.Purpose, a.Counter).settled = true
}

// confirm notes what a learner has.
func (e *evaluations) confirm(r wire.EvaluationResults, blocks int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, purpose := range [...]wire.Purpose{wire.PurposeEvaluateSampled, wire.PurposeEvaluateGreedy} {
		for block := range uint64(min(blocks, 8*wire.MaxResultBytes)) {
			if r.Has(purpose, block) {
				e.claim(r.Version, purpose, block).settled = true
			}
		}
	}
}

// claim returns what is known of a block, to be changed. e.mu is held.
func (e *evaluations) claim(version uint64, purpose wire.Purpose, block uint64) *claim {
	if e.versions == nil {
		e.versions = make(map[uint64]map[evaluationBlock]*claim)
	}
	of := e.versions[version]
	if of == nil {
		of = make(map[evaluationBlock]*claim)
		e.versions[version] = of
	}
	for len(e.versions) > keptEvaluations {
		oldest := version
		for v := range e.versions {
			oldest = min(oldest, v)
		}
		delete(e.versions, oldest)
	}
	id := evaluationBlock{purpose, block}
	if of[id] == nil {
		of[id] = &claim{}
	}
	return of[id]
}

// Claim implements rollout.Evaluations.
func (e *evaluations) Claim(version uint64, purpose wire.Purpose, block uint64) rollout.Claim {
	return e.at(time.Now(), version, purpose, block)
}

func (e *evaluations) at(now time.Time, version uint64, purpose wire.Purpose, block uint64) rollout.Claim {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch c := e.versions[version][evaluationBlock{purpose, block}]; {
	case c == nil:
		return rollout.Unclaimed
	case c.settled:
		return rollout.Settled
	case now.Before(c.until):
		return rollout.Claimed
	}
	return rollout.Unclaimed
}
