package learner

import (
	"fmt"
	"math"

	"github.com/lightswarm/lightswarm/wire"
)

// Schedule is the learning rate over the steps of a chain.
type Schedule struct {
	// Peak is the rate after the warm-up.
	Peak float64
	// Warmup is how many steps it takes to rise to Peak, linearly.
	Warmup uint64
	// Decay is how many steps after the warm-up it takes to fall to Floor, linearly; 0 keeps Peak.
	Decay uint64
	// Floor is the rate after the decay.
	Floor float64
}

// Rate is the learning rate of the step that makes a version, which is at least 1.
func (s Schedule) Rate(version uint64) float64 {
	switch {
	case version <= s.Warmup:
		return s.Peak * float64(version) / float64(s.Warmup+1)
	case s.Decay == 0:
		return s.Peak
	case version-s.Warmup >= s.Decay:
		return s.Floor
	}
	left := float64(s.Decay-(version-s.Warmup)) / float64(s.Decay)
	return s.Floor + float64((s.Peak-s.Floor)*left)
}

// Stop says when a chain ends.
type Stop struct {
	// MaxVersion is the last version; 0 sets no limit.
	MaxVersion uint64
	// Target is the success that ends the chain when Hold successive evaluations reached it; 0 for none.
	Target float64
	// Hold is how many successive evaluations must reach the target, at least 1.
	Hold int
	// Purpose says which evaluations count.
	Purpose wire.Purpose
}

// Reached says whether a chain whose newest version is head ends. Evaluations are in the order of versions; incomplete
// ones say nothing.
func (s Stop) Reached(head uint64, evaluations []Evaluation) bool {
	if s.MaxVersion > 0 && head >= s.MaxVersion {
		return true
	}
	if s.Target <= 0 {
		return false
	}
	held := 0
	for _, e := range evaluations {
		switch {
		case e.Purpose != s.Purpose || !e.Complete():
		case e.Success() >= s.Target:
			held++
		default:
			held = 0
		}
	}
	return held >= max(s.Hold, 1)
}

// Yield is which part of the groups taught something lately: what a step saw counts three quarters as much with each step
// after it. The zero value knows of no step. Equal steps give equal bits on all machines.
type Yield struct{ groups, learned float64 }

// yieldKept is what counts of a step when one more was made.
const yieldKept = 0.75

// After is the yield once a step used up some groups and learned from so many of them.
func (y Yield) After(groups, learned int) Yield {
	if groups == 0 {
		return y
	}
	return Yield{
		groups:  float64(yieldKept*y.groups) + float64(groups),
		learned: float64(yieldKept*y.learned) + float64(learned),
	}
}

// Part is that part, 0 to 1; 1 if no step is known.
func (y Yield) Part() float64 {
	if y.groups == 0 {
		return 1
	}
	return y.learned / y.groups
}

// check says what is wrong with a yield that was stored.
func (y Yield) check() error {
	if y.learned >= 0 && y.learned <= y.groups && !math.IsInf(y.groups, 0) {
		return nil
	}
	return fmt.Errorf("a yield of %v in %v groups", y.learned, y.groups)
}

// Expect is how many groups a step takes if they teach as those before it did: Groups over the part that teaches, and no
// more than Dynamic lets it.
func (r BatchRule) Expect(y Yield) int {
	return int(min(math.Ceil(float64(r.Groups)/y.Part()), float64(r.Most())))
}

// Pace says how many groups a release asks of each node.
type Pace struct {
	// Ahead is how much more than one batch the nodes produce under one version, as a part of the batch: groups that
	// are ready when the next step starts, at the price of a lag of one version.
	Ahead float64
	// Most bounds what one node is asked for.
	Most uint32
}

// Quota is the groups that each of the active nodes runs under the next version so that, together with those that wait
// already, a batch and what is to be ahead of it exist. It is 0, which keeps the charter's pace, when no node is known to
// be active, and otherwise at least 1, so that no node is left without work.
func (p Pace) Quota(batch, waiting, active int) uint32 {
	if active <= 0 {
		return 0
	}
	wanted := math.Ceil(float64(batch)*(1+p.Ahead)) - float64(waiting)
	each := math.Ceil(wanted / float64(active))
	return uint32(max(1, min(each, float64(p.Most))))
}
