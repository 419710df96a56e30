package watch

import (
	"fmt"
	"slices"

	"github.com/lightswarm/lightswarm/learner"
	"github.com/lightswarm/lightswarm/wire"
)

// stepRule is a rule that evaluations say nothing about.
type stepRule struct{}

func (stepRule) evaluated(*learner.Evaluation) (verdict, string) { return unknown, "" }

const (
	// window is how many steps a mean is over.
	window = 5
	// mostlySolved is the share of solved training rollouts from which on low entropy and a flat reward are what is wanted,
	// and from partlySolved on they are no reason for an alert.
	mostlySolved = 0.9
	partlySolved = 0.8
)

// entropy compares the newest steps with the first ones.
type entropy struct {
	stepRule
	first, last, solved recent
}

func (r *entropy) step(s *learner.Step) (verdict, string) {
	if s.Rollouts == 0 || learner.Figure(s.Entropy, s.TrainedTokens > 0) == nil {
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
	case now < 0.2*before && solved < partlySolved:
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
	noise := noise(older, newer)
	solved := r.solved.mean()
	switch {
	case gain <= noise && solved < partlySolved:
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

// normWindow is over how many steps the gradient's usual norm is taken, fewestNorms how many are needed to know it. What lasts
// for half of them is usual.
const (
	normWindow  = 100
	fewestNorms = 8
)

// gradient compares a gradient with the median of the newest ones.
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
	known, usual := len(r.norms) >= fewestNorms, r.norms.median()
	r.norms.add(s.GradientNorm, normWindow)
	switch {
	case known && usual > 0 && s.GradientNorm > 10*usual:
		return bad, fmt.Sprintf("the gradient's norm is %.3g, where %.3g was usual", s.GradientNorm, usual)
	case known && s.GradientNorm > 3*usual:
		return between, ""
	}
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

// fewestGroups is of how many groups a share says something: of fewer, one peer may well have supplied most by chance.
const fewestGroups = 20

// dominance looks at the groups of the peer that supplied most of those of the newest steps.
type dominance struct {
	stepRule
	steps []supply // as few as have fewestGroups
}

// supply is whose groups a step used. The share of a peer that did not supply most is not known, and counts as none.
type supply struct {
	groups, most int
	peer         wire.PeerID
}

func (r *dominance) step(s *learner.Step) (verdict, string) {
	if s.Groups == 0 {
		return unknown, ""
	}
	r.steps = append(r.steps, supply{s.Groups, s.MostGroups, s.Most})
	all, byPeer := 0, make(map[wire.PeerID]int)
	for i, from := range slices.Backward(r.steps) {
		if all >= fewestGroups {
			r.steps = slices.Delete(r.steps, 0, i+1)
			break
		}
		all += from.groups
		byPeer[from.peer] += from.most
	}
	share := float64(byPeer[s.Most]) / float64(all)
	nodes := max(s.Active, s.Peers)
	switch {
	case all < fewestGroups:
		return unknown, ""
	case nodes < fewestPeers || share < 0.6:
		return good, ""
	case share >= 0.8:
		return bad, fmt.Sprintf("%.0f%% of the groups come from peer %s, where %d nodes are at work", 100*share, s.Most, nodes)
	}
	return between, ""
}
