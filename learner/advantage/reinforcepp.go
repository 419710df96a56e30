package advantage

import "math"

// ReinforcePP is REINFORCE++ with the group baseline (Hu 2025, arXiv 2501.03262): what is left after subtracting each
// group's mean is divided by its standard deviation over the whole batch, so that every group is scaled alike.
type ReinforcePP struct{}

// Estimate implements Estimator.
func (ReinforcePP) Estimate(returns [][]float64) []Baseline {
	sum, n := 0.0, 0
	baselines := each(returns, func(group []float64, mean float64) float64 {
		sum += squares(group, mean)
		n += len(group)
		return 0
	})
	scale := 1 / (math.Sqrt(sum/float64(max(n, 1))) + epsilon)
	for i := range baselines {
		baselines[i].Scale = scale
	}
	return baselines
}

// ReinforcePPBatch is REINFORCE++ without a group baseline: A = (R - mean) / std over all rollouts of the batch (Hu
// 2025, arXiv 2501.03262; its KL term is a matter of the loss here). A task that is solved more often than others is
// praised as a whole, so that groups whose returns are all equal teach too, and change what the others teach.
type ReinforcePPBatch struct{}

// Estimate implements Estimator.
func (ReinforcePPBatch) Estimate(returns [][]float64) []Baseline {
	var all []float64
	for _, group := range returns {
		all = append(all, group...)
	}
	baselines := make([]Baseline, len(returns))
	if len(all) == 0 {
		return baselines
	}
	mean := average(all)
	for i := range baselines {
		baselines[i] = Baseline{Mean: mean, Scale: 1 / (math.Sqrt(squares(all, mean)/float64(len(all))) + epsilon)}
	}
	return baselines
}

// LearnsFromFlat says that a group of equal returns may teach.
func (ReinforcePPBatch) LearnsFromFlat() bool { return true }
