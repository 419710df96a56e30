// Package advantage turns the returns of a group of rollouts into advantages.
//
// An advantage belongs to a rollout and is copied to all its calls and tokens, so that a rollout with many calls has
// no more say in its group's baseline than one with few. Everything here is pure, and every product that is added to
// something is rounded first, so that all machines compute the same bits.
package advantage

import "math"

// Estimator computes advantages.
type Estimator interface {
	// Estimate returns the advantages of a batch of groups; returns[g][i] is the return of rollout i of group g,
	// finite. A group has at least two rollouts. The result has the shape of returns.
	Estimate(returns [][]float64) [][]float64
}

// epsilon keeps a division by a standard deviation finite; GRPO's published value.
const epsilon = 1e-6

// GRPO subtracts the group's mean and divides by its standard deviation (over the group, not a sample of it):
// A_i = (R_i - mean) / (std + 1e-6). Shao et al. 2024, arXiv 2402.03300. It gives groups that nearly all fail or
// nearly all succeed the same weight as evenly split ones.
type GRPO struct{}

// Estimate implements Estimator.
func (GRPO) Estimate(returns [][]float64) [][]float64 {
	return each(returns, func(group []float64) []float64 {
		centred := centre(group)
		scale(centred, 1/(deviation(centred)+epsilon))
		return centred
	})
}

// DrGRPO subtracts the group's mean: A_i = R_i - mean. Liu et al. 2025, arXiv 2503.20783, who show that dividing by
// the standard deviation biases training towards tasks that are too easy or too hard.
type DrGRPO struct{}

// Estimate implements Estimator.
func (DrGRPO) Estimate(returns [][]float64) [][]float64 { return each(returns, centre) }

// RLOO compares each rollout with the mean of the others: A_i = R_i - 1/(G-1) sum_{j!=i} R_j = G/(G-1) (R_i - mean).
// Ahmadian et al. 2024, arXiv 2402.14740. The baseline does not depend on the rollout itself, so the gradient is
// unbiased.
type RLOO struct{}

// Estimate implements Estimator.
func (RLOO) Estimate(returns [][]float64) [][]float64 {
	return each(returns, func(group []float64) []float64 {
		centred := centre(group)
		n := float64(len(group))
		scale(centred, n/(n-1))
		return centred
	})
}

// ReinforcePP is REINFORCE++ with the group baseline (Hu 2025, arXiv 2501.03262): the group's mean is subtracted and
// the result is divided by the standard deviation over the whole batch, so that every group is scaled alike.
type ReinforcePP struct{}

// Estimate implements Estimator.
func (ReinforcePP) Estimate(returns [][]float64) [][]float64 {
	centred := each(returns, centre)
	var all []float64
	for _, group := range centred {
		all = append(all, group...)
	}
	s := 1 / (deviation(all) + epsilon)
	for _, group := range centred {
		scale(group, s)
	}
	return centred
}

// Flat reports whether a group teaches nothing: it has fewer than two rollouts, or all their returns are equal, so
// that every estimator's advantages are zero.
func Flat(group []float64) bool {
	for _, r := range group {
		if r != group[0] {
			return false
		}
	}
	return true
}

func each(groups [][]float64, f func([]float64) []float64) [][]float64 {
	out := make([][]float64, len(groups))
	for i, group := range groups {
		out[i] = f(group)
	}
	return out
}

// centre returns the group minus its mean.
func centre(group []float64) []float64 {
	mean := 0.0
	for _, r := range group {
		mean += r
	}
	mean /= float64(len(group))
	out := make([]float64, len(group))
	for i, r := range group {
		out[i] = r - mean
	}
	return out
}

// deviation is the standard deviation of values whose mean is zero.
func deviation(centred []float64) float64 {
	if len(centred) == 0 {
		return 0
	}
	sum := 0.0
	for _, x := range centred {
		sum += float64(x * x)
	}
	return math.Sqrt(sum / float64(len(centred)))
}

func scale(x []float64, by float64) {
	for i := range x {
		x[i] *= by
	}
}
