package watch

import (
	"fmt"
	"math"
	"slices"

	"github.com/lightswarm/lightswarm/learner"
)

// stepRule is a rule that evaluations say nothing about.
type stepRule struct{}

func (stepRule) evaluated(*learner.Evaluation) (verdict, string) { return unknown, "" }

// recent holds the newest values, up to a number of them.
type recent []float64

func (r *recent) add(v float64, most int) {
	*r = append(*r, v)
	if len(*r) > most {
		*r = slices.Delete(*r, 0, len(*r)-most)
	}
}

// mean is 0 without values.
func (r recent) mean() float64 {
	sum := 0.0
	for _, v := range r {
		sum += v
	}
	return sum / float64(max(len(r), 1))
}

// variance is the sample variance; 0 of fewer than two values.
func (r recent) variance() float64 {
	mean, sum := r.mean(), 0.0
	for _, v := range r {
		sum += (v - mean) * (v - mean)
	}
	return sum / float64(max(len(r)-1, 1))
}

func (r recent) median() float64 {
	sorted := slices.Sorted(slices.Values(r))
	return sorted[len(sorted)/2]
}

const (
	// window is how many steps a mean is over.
	window = 5
	// mostlySolved is the share of solved training rollouts from which on low entropy and a flat reward are what is wanted.
	mostlySolved = 0.9
)

// entropy compares the newest steps with the first ones.
type entropy struct {
	stepRule
	first, last, solved recent
}

func (r *entropy) step(s *learner.Step) (verdict, string) {
	if s.TrainedTokens == 0 || s.Rollouts == 0 {
		return unknown, ""
	}
	if len(r.first) < window {
		r.first.add(s.Entropy, window)
		return unknown, ""
	}
	r.last.add(s.Entropy, window)
	r.solved.add(s.Solved, window)
	before, now, solved := r.first.mean(), r.last.mean(), r.solved.mean()
	switch {
	case len(r.last) < window || before <= 0:
		return unknown, ""
	case now < 0.2*before && solved < mostlySolved-0.1:
		return bad, fmt.Sprintf("entropy has fallen to %.2g nats a token, from %.2g in the first steps, while %.0f%% of the training rollouts are solved",
			now, before, 100*solved)
	case now > 0.3*before || solved >= mostlySolved:
		return good, ""
	}
	return between, ""
}

// stuckWindow is how many steps the reward is compared over, one half with the other.
const stuckWindow = 50

// reward compares the newer half of many steps with the older one, by the standard error of the difference.
type reward struct {
	stepRule
	means, solved recent
}

func (r *reward) step(s *learner.Step) (verdict, string) {
	if s.Rollouts == 0 {
		return unknown, ""
	}
	r.means.add(s.RewardMean, stuckWindow)
	r.solved.add(s.Solved, window)
	if len(r.means) < stuckWindow {
		return unknown, ""
	}
	older, newer := r.means[:stuckWindow/2], r.means[stuckWindow/2:]
	gain := newer.mean() - older.mean()
	noise := math.Sqrt((older.variance() + newer.variance()) / (stuckWindow / 2))
	solved := r.solved.mean()
	switch {
	case gain <= noise && solved < mostlySolved:
		return bad, fmt.Sprintf("the training reward has not risen for %d steps: %.3g in the newer half, %.3g in the older; %.0f%% of the rollouts are solved",
			stuckWindow, newer.mean(), older.mean(), 100*solved)
	case gain > 2*noise || solved >= mostlySolved:
		return good, ""
	}
	return between, ""
}

// masked looks at the share of tokens that a bound changed.
type masked struct{ stepRule }

func (masked) step(s *learner.Step) (verdict, string) {
	switch {
	case s.TrainedTokens == 0:
		return unknown, ""
	case s.Clipped > 0.3:
		return bad, fmt.Sprintf("the loss bounds %.0f%% of the trained tokens; their effective number is %.0f%%", 100*s.Clipped, 100*s.EffectiveSamples)
	case s.Clipped < 0.2:
		return good, ""
	}
	return between, ""
}

// normWindow is how many usual gradient norms are remembered, fewestNorms how many are needed to know what is usual.
const (
	normWindow  = 20
	fewestNorms = 8
)

// gradient compares a gradient with the median of the usual ones.
type gradient struct {
	stepRule
	norms recent
}

func (r *gradient) step(s *learner.Step) (verdict, string) {
	switch {
	case s.TrainedTokens == 0:
		return unknown, ""
	case s.Skipped != "":
		return bad, "steps are undone: " + s.Skipped
	}
	if len(r.norms) < fewestNorms {
		r.norms.add(s.GradientNorm, normWindow)
		return good, ""
	}
	usual := r.norms.median()
	if usual > 0 && s.GradientNorm > 10*usual {
		return bad, fmt.Sprintf("the gradient's norm is %.3g, where %.3g was usual", s.GradientNorm, usual)
	}
	if s.GradientNorm > 3*usual {
		return between, ""
	}
	r.norms.add(s.GradientNorm, normWindow)
	return good, ""
}

// lag looks at the groups that are as old as permitted, and at those that had become too old.
type lag struct {
	bound uint64
}

func (lag) evaluated(*learner.Evaluation) (verdict, string) { return unknown, "" }

func (r lag) step(s *learner.Step) (verdict, string) {
	expired := s.Drops[learner.StaleAtUse]
	old, all := expired, expired
	for lag, groups := range s.Lags {
		all += groups
		if r.bound > 0 && lag >= r.bound {
			old += groups
		}
	}
	share := float64(old) / float64(max(all, 1))
	switch {
	case all == 0:
		return unknown, ""
	case share >= 0.5:
		return bad, fmt.Sprintf("%.0f%% of the groups are %d versions old, the most that is trained on, or older", 100*share, r.bound)
	case share < 0.25:
		return good, ""
	}
	return between, ""
}

// fewestPeers is from how many nodes at work on one can dominate.
const fewestPeers = 3

// dominance looks at the groups of the peer that supplied most.
type dominance struct{ stepRule }

func (dominance) step(s *learner.Step) (verdict, string) {
	share := float64(s.MostGroups) / float64(max(s.Groups, 1))
	switch {
	case s.Groups == 0:
		return unknown, ""
	case max(s.Active, s.Peers) < fewestPeers || share < 0.6:
		return good, ""
	case share >= 0.8:
		return bad, fmt.Sprintf("%.0f%% of the groups come from peer %s, where %d nodes are at work", 100*share, s.Most, max(s.Active, s.Peers))
	}
	return between, ""
}

// heldOut compares evaluations with the best one, and the training reward with that of then.
type heldOut struct {
	rewards recent
	best    *learner.Evaluation
	// before is the training reward when best came.
	before float64
}

func (r *heldOut) step(s *learner.Step) (verdict, string) {
	if s.Rollouts > 0 {
		r.rewards.add(s.RewardMean, window)
	}
	return unknown, ""
}

func (r *heldOut) evaluated(e *learner.Evaluation) (verdict, string) {
	now := r.rewards.mean()
	if r.best == nil || e.Success() >= r.best.Success() {
		best := *e
		r.best, r.before = &best, now
		return good, ""
	}
	low, _ := r.best.Interval()
	_, high := e.Interval()
	switch {
	case high < low && now > r.before:
		return bad, fmt.Sprintf("held-out success has fallen to %.3f, from %.3f at version %d, while the training reward rose to %.3g, from %.3g",
			e.Success(), r.best.Success(), r.best.Version, now, r.before)
	case e.Success() >= low:
		return good, ""
	}
	return between, ""
}
