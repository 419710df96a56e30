// Package advantage turns the returns of a group of rollouts into advantages.
//
// All estimators subtract a baseline and scale the difference. The baseline is the mean of the group's rollouts for most,
// the batch's for one, and what a role returned so far for those that remember. It is taken over rollouts, one value
// each, so that a rollout with many calls has no more say in it than one with few; it is then applied to every call's
// return. Everything here is pure, and every product that is added to something is rounded first, so that all machines
// compute the same bits.
package advantage

import "math"

// Baseline maps a return to an advantage.
type Baseline struct {
	// Mean is the return that has no advantage.
	Mean float64
	// Scale is positive.
	Scale float64
}

// Of returns the advantage of a return: Scale (r - Mean).
func (b Baseline) Of(r float64) float64 { return float64(b.Scale * (r - b.Mean)) }

// Estimator computes baselines.
type Estimator interface {
	// Estimate returns one baseline for each group of a batch; returns[g][i] is the return of rollout i of group g,
	// finite. A group has at least two rollouts.
	Estimate(returns [][]float64) []Baseline
}

// epsilon keeps a division by a standard deviation finite; GRPO's published value.
const epsilon = 1e-6

// GRPO divides by the group's standard deviation (over the group, not a sample of it):
// A_i = (R_i - mean) / (std + 1e-6). Shao et al. 2024, arXiv 2402.03300. It gives groups that nearly all fail or
// nearly all succeed the same weight as evenly split ones.
type GRPO struct{}

// Estimate implements Estimator.
func (GRPO) Estimate(returns [][]float64) []Baseline {
	return each(returns, func(group []float64, mean float64) float64 {
		return 1 / (math.Sqrt(squares(group, mean)/float64(len(group))) + epsilon)
	})
}

// DrGRPO does not scale: A_i = R_i - mean. Liu et al. 2025, arXiv 2503.20783, who show that dividing by the standard
// deviation biases training towards tasks that are too easy or too hard.
type DrGRPO struct{}

// Estimate implements Estimator.
func (DrGRPO) Estimate(returns [][]float64) []Baseline {
	return each(returns, func([]float64, float64) float64 { return 1 })
}

// RLOO compares each rollout with the mean of the others: A_i = R_i - 1/(G-1) sum_{j!=i} R_j = G/(G-1) (R_i - mean).
// Ahmadian et al. 2024, arXiv 2402.14740. The baseline does not depend on the rollout itself, so the gradient is
// unbiased.
type RLOO struct{}

// Estimate implements Estimator.
func (RLOO) Estimate(returns [][]float64) []Baseline {
	return each(returns, func(group []float64, _ float64) float64 {
		n := float64(len(group))
		return n / (n - 1)
	})
}

// LearnsFromFlat says whether a group whose returns are all equal may have advantages other than zero. Where it may not,
// the caller leaves such groups out before it estimates. An estimator for which it may has a method of this name.
func LearnsFromFlat(e Estimator) bool {
	l, ok := e.(interface{ LearnsFromFlat() bool })
	return ok && l.LearnsFromFlat()
}

// Flat reports whether all values are equal: a comparison among them finds nothing.
func Flat(values []float64) bool {
	for _, v := range values {
		if v != values[0] {
			return false
		}
	}
	return true
}

func each(groups [][]float64, scale func(group []float64, mean float64) float64) []Baseline {
	baselines := make([]Baseline, len(groups))
	for i, group := range groups {
		mean := average(group)
		baselines[i] = Baseline{Mean: mean, Scale: scale(group, mean)}
	}
	return baselines
}

func average(group []float64) float64 {
	mean := 0.0
	for _, r := range group {
		mean += r
	}
	return mean / float64(len(group))
}

// squares is the sum of squared distances from the mean.
func squares(group []float64, mean float64) float64 {
	sum := 0.0
	for _, r := range group {
		d := r - mean
		sum += float64(d * d)
	}
	return sum
}
