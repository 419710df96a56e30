// Package credit spreads a rollout's return over its calls.
//
// It is the upper of LightningRL's two levels (Luo et al. 2025, arXiv 2508.03680, section 3.3): an Assigner gives each
// call of a rollout a return, and the lower level, packages advantage and loss, treats each call as a single-turn
// problem with that return. An Assigner that has to see a whole group, because it compares calls of several rollouts,
// is a Comparer: it adds advantages to those that package advantage makes of the returns. One that learns what calls are
// worth is Learning.
//
// Everything here is pure, and every product that is added to something is rounded first, so that all machines compute
// the same bits.
package credit

// Rollout is what an Assigner sees of one rollout.
type Rollout struct {
	// Reward is the environment's judgement of the whole rollout.
	Reward float64
	// Calls are in the order in which the agent made them.
	Calls []Call
}

// Call is what an Assigner sees of one call.
type Call struct {
	// Agent names the role that made the call.
	Agent string
	// Reward was given to the call itself; nil for none.
	Reward *float64
	// Prompt is the exact token ids of what the policy was shown. Those that do not compare calls do without.
	Prompt []int32
	// State is the policy's last hidden state behind the prompt, for an Assigner that is Learning; nil for none.
	State []float32
}

// given is the call's own reward, 0 for none.
func (c Call) given() float64 {
	if c.Reward == nil {
		return 0
	}
	return *c.Reward
}

// Assigner gives each call of a rollout a return.
type Assigner interface {
	// Assign returns one value for each call, in order. It is pure: it depends on r alone and does not change it.
	Assign(r Rollout) []float64
}

// Comparer is an Assigner that compares the calls of a group by itself.
type Comparer interface {
	Assigner
	// Compare returns an advantage for each call of each rollout, in order. It is added as it is to what an estimator of
	// package advantage makes of the call's return; an Assigner whose comparison is all there is assigns returns of 0.
	// It is pure, and the order of the rollouts does not matter.
	Compare(group []Rollout) [][]float64
}

// Return gives every call the rollout's whole return: its final reward plus whatever its calls were given. This is
// the identical assignment that the paper uses.
type Return struct{}

// Assign implements Assigner.
func (Return) Assign(r Rollout) []float64 {
	total := whole(r)
	returns := make([]float64, len(r.Calls))
	for i := range returns {
		returns[i] = total
	}
	return returns
}

// whole is a rollout's return.
func whole(r Rollout) float64 {
	total := r.Reward
	for _, c := range r.Calls {
		if c.Reward != nil {
			total += *c.Reward
		}
	}
	return total
}
