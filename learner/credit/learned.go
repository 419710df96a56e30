package credit

import "math"

// Learning is an Assigner with a critic that learns from what it is shown. What it knows is passed in and out, so that a
// caller saves it with the weights that it belongs to, and forgets with them what they forget.
type Learning interface {
	Assigner
	// With returns the same assigner with another memory.
	With(m Memory) Learning
	// Learn returns the memory after the groups of a step, whose order matters to the last bits.
	Learn(groups [][]Rollout) Memory
	// Explained is the share of the variance of the calls' returns that the critic explains as it is,
	// 1 - sum (G - V)^2 / sum (G - mean)^2: 1 at best, 0 for one that always says the mean, NaN if the returns do not differ.
	Explained(groups [][]Rollout) float64
}

// LearnedGAE gives calls the estimates of GAE with a learned critic: a linear value head on the policy's last hidden state
// before the call's first token (Schulman et al. 2016, arXiv 1506.02438, equation 16 and section 5),
//
//	V(s) = w phi(s),    phi(s) = (s / sqrt(d), 1)   for a state of d numbers,
//
// which is 0 until it has learned. A step is judged by the head as it was before that step; then w minimises, over the calls
// of this step and all before,
//
//	sum_k Decay^k sum_t 1/2 (w phi(s_t) - G_t)^2 + Ridge/2 |w|^2,
//
// where k counts the steps since and G_t is the return from call t on, as ToGo has it with Discount.
//
// The square is PPO's value loss (Schulman et al. 2017, arXiv 1707.06347, equation 9). PPO takes gradient steps on it, in a
// model for values alone or in the policy's own, and implementations often clip how far a value may move. Here no gradient
// goes from values into the policy, which they thus cannot disturb, and the least value of the loss is computed instead (ridge
// regression, as for the linear baseline of Duan et al. 2016, arXiv 1604.06778): there is no learning rate and no clip to set.
// The price is that the head knows only what the last hidden state, as the policy's loss has shaped it, tells linearly. In the
// sums, states stay as the weights of their step made them, and returns as the policies of their time got them, which is what
// Decay is for.
//
// The estimates are what package advantage takes for returns: it subtracts the group's mean, of which a perfect critic would
// leave nothing, and which is the critic's error for the task otherwise. PPO implementations subtract the batch's mean and
// divide by its deviation; so does advantage.ReinforcePPBatch.
type LearnedGAE struct {
	// Discount and Lambda are those of GAE.
	Discount, Lambda float64
	// Decay is from 0 to below 1.
	Decay float64
	// Ridge is positive. It holds weights back as so many calls would whose returns are 0.
	Ridge float64

	memory Memory
	head   Head
}

// Assign implements Assigner.
func (l LearnedGAE) Assign(r Rollout) []float64 {
	values := l.head.Values([]Rollout{r})[0]
	return GAE{Discount: l.Discount, Lambda: l.Lambda}.Advantages(r, values)
}

// With implements Learning.
func (l LearnedGAE) With(m Memory) Learning {
	l.memory, l.head = m, m.Fit(l.Ridge)
	return l
}

// Learn implements Learning. Calls without a State are passed over.
func (l LearnedGAE) Learn(groups [][]Rollout) Memory {
	after, fresh := l.memory, false
	l.each(groups, func(state []float32, value float64) {
		if !fresh {
			after, fresh = l.memory.aged(l.Decay, len(state)), true
		}
		after.add(features(state), value)
	})
	return after
}

// Explained implements Learning. Calls without a State are passed over.
func (l LearnedGAE) Explained(groups [][]Rollout) float64 {
	var calls, sum, squares, surprise float64
	l.each(groups, func(state []float32, value float64) {
		calls++
		sum += value
		squares += float64(value * value)
		off := value - l.head.Value(state)
		surprise += float64(off * off)
	})
	if spread := squares - float64(sum*sum)/calls; spread > float64(1e-12*squares) {
		return 1 - surprise/spread
	}
	return math.NaN()
}

// each calls f with the state before each call, and the return from it on.
func (l LearnedGAE) each(groups [][]Rollout, f func(state []float32, value float64)) {
	for _, group := range groups {
		for _, r := range group {
			for i, value := range (ToGo{Discount: l.Discount}).Assign(r) {
				if state := r.Calls[i].State; len(state) > 0 {
					f(state, value)
				}
			}
		}
	}
}
