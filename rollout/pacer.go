package rollout

import (
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

// announcedFunc is Evaluations.Announced.
type announcedFunc func(version uint64, purpose wire.Purpose, block uint64) bool

// pacer decides what to run, from releases alone. It has no clock and no I/O; its owner is the worker's loop.
//
// A release starts afresh: first the evaluation that it asks for, in the peer's own order, each block sampled and then
// greedy, except the blocks that someone has announced meanwhile. An evaluation that was begun is finished, even when
// newer releases come; a release that was never the newest between evaluations is not measured by this peer. Then as
// many training groups as the pace allows, none if the release is final. Then it waits. If no newer release comes
// within the patience, groups may have been lost on the way to a learner that is waiting for them, so the same pace is
// granted again, with twice the patience each time, up to maxPatience.
type pacer struct {
	charterPace uint32
	order       func(version uint64) []int // the peer's own order of the evaluation blocks
	basePatience,
	maxPatience time.Duration

	started bool
	version uint64
	final   bool
	// todo is the evaluation that is left.
	todo []step
	// groups were started under version; allowed is how many may be.
	groups, allowed, pace uint64
	patience              time.Duration
}

// take makes r the release that is worked on. Taking the same version again changes nothing.
func (p *pacer) take(r Release) {
	if p.started && r.Version == p.version {
		return
	}
	p.started, p.version, p.final = true, r.Version, r.Final
	p.todo = nil
	if r.Evaluate || r.Final {
		for _, block := range p.order(r.Version) {
			for _, purpose := range []wire.Purpose{wire.PurposeEvaluateSampled, wire.PurposeEvaluateGreedy} {
				p.todo = append(p.todo, step{action: actEvaluate, purpose: purpose, block: uint64(block)})
			}
		}
	}
	p.pace = uint64(p.charterPace)
	if r.GroupsPerVersion > 0 {
		p.pace = uint64(r.GroupsPerVersion)
	}
	p.groups, p.allowed = 0, p.pace
	p.patience = p.basePatience
}

// measuring reports whether evaluation of the release is left to start.
func (p *pacer) measuring(announced announcedFunc) bool {
	for len(p.todo) > 0 && announced(p.version, p.todo[0].purpose, p.todo[0].block) {
		p.todo = p.todo[1:]
	}
	return len(p.todo) > 0
}

// next returns what to do under the release that was taken, and counts it as started.
func (p *pacer) next(announced announcedFunc) step {
	switch {
	case p.measuring(announced):
		s := p.todo[0]
		p.todo = p.todo[1:]
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
