package rollout

import (
	"slices"
	"time"

	"github.com/lightswarm/lightswarm/wire"
)

// action is what a worker does next.
type action uint8

const (
	actEvaluate action = iota + 1 // run step.block for step.purpose
	actTrain                      // run one training group
	actWait                       // wait for a newer version, until step.patience has passed
	actIdle                       // wait for a newer version, however long
)

type step struct {
	action   action
	purpose  wire.Purpose
	block    uint64
	patience time.Duration
}

// claimFunc is Evaluations.Claim.
type claimFunc func(version uint64, purpose wire.Purpose, block uint64) Claim

// pacer decides what to run, from releases alone. It has no clock and no I/O; its owner is the worker's loop.
//
// A release starts afresh: first the evaluation that it asks for, in the peer's own order, each block sampled and then
// greedy, except the blocks that someone claims to have measured. An evaluation that was begun is finished, even when
// newer releases come; a release that was never the newest between evaluations is not measured by this peer. Then as
// many training groups as the pace allows, none if the release is final. Then it waits. If no newer release comes
// within the patience, groups may have been lost on the way to a learner that is waiting for them, so the same pace is
// granted again, with twice the patience each time, up to maxPatience.
//
// Blocks that were claimed are measured as soon as the claim does not hold any more, also under a newer release; and at
// the latest, if the claim was not confirmed, when a newer release asks for an evaluation.
type pacer struct {
	charterPace uint32
	order       func(version uint64) []int // the peer's own order of the evaluation blocks
	basePatience,
	maxPatience time.Duration

	started bool
	version uint64
	final   bool
	// due is what is left of the evaluation of version measures; ready is the first of it that is to be run now, or
	// its length. With insist set, claims count for nothing there.
	due      []step
	measures uint64
	ready    int
	insist   bool
	// groups were started under version; allowed is how many may be.
	groups, allowed, pace uint64
	patience              time.Duration
}

// take makes r the release that is worked on. Taking the same version again changes nothing. It is false if what is left
// of an evaluation comes first: then r is to be taken later.
func (p *pacer) take(r Release) bool {
	if p.started && r.Version == p.version {
		return true
	}
	if r.Evaluate || r.Final {
		if len(p.due) > 0 {
			p.insist = true
			return false
		}
		for _, block := range p.order(r.Version) {
			for _, purpose := range []wire.Purpose{wire.PurposeEvaluateSampled, wire.PurposeEvaluateGreedy} {
				p.due = append(p.due, step{action: actEvaluate, purpose: purpose, block: uint64(block)})
			}
		}
		p.measures = r.Version
	}
	p.started, p.version, p.final = true, r.Version, r.Final
	p.pace = uint64(p.charterPace)
	if r.GroupsPerVersion > 0 {
		p.pace = uint64(r.GroupsPerVersion)
	}
	p.groups, p.allowed = 0, p.pace
	p.patience = p.basePatience
	return true
}

// measuring looks at the claims and reports whether a block is to be measured now, on version measures.
func (p *pacer) measuring(claim claimFunc) bool {
	left, ready := p.due[:0], -1
	for _, s := range p.due {
		c := claim(p.measures, s.purpose, s.block)
		if c == Settled {
			continue
		}
		if ready < 0 && (c == Unclaimed || p.insist) {
			ready = len(left)
		}
		left = append(left, s)
	}
	p.due, p.ready = left, ready
	if ready < 0 {
		p.ready = len(left)
	}
	p.insist = p.insist && len(left) > 0
	return p.ready < len(left)
}

// next returns what to do after the last look at the claims, and counts it as started: a block of version measures, or
// something under the release that was taken.
func (p *pacer) next() step {
	switch {
	case p.ready < len(p.due):
		s := p.due[p.ready]
		p.due = slices.Delete(p.due, p.ready, p.ready+1)
		p.ready = len(p.due)
		return s
	case p.final:
		return step{action: actIdle}
	case p.groups < p.allowed:
		p.groups++
		return step{action: actTrain}
	}
	return step{action: actWait, patience: p.patience}
}

// expired says that no newer release came within the patience.
func (p *pacer) expired() {
	p.allowed = p.groups + p.pace
	p.patience = min(2*p.patience, p.maxPatience)
}
