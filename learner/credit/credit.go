// Package credit spreads a rollout's return over its calls.
//
// It is the upper of LightningRL's two levels (Luo et al. 2025, arXiv 2508.03680, section 3.3): an Assigner gives each
// call of a rollout a return, and the lower level, packages advantage and loss, treats each call as a single-turn
// problem with that return. Everything here is pure.
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
}

// Assigner gives each call of a rollout a return.
type Assigner interface {
	// Assign returns one value for each call, in order. It is pure: it depends on r alone and does not change it.
	Assign(r Rollout) []float64
}

// Return gives every call the rollout's whole return: its final reward plus whatever its calls were given. This is
// the identical assignment that the paper uses.
type Return struct{}

// Assign implements Assigner.
func (Return) Assign(r Rollout) []float64 {
	total := r.Reward
	for _, c := range r.Calls {
		if c.Reward != nil {
			total += *c.Reward
		}
	}
	returns := make([]float64, len(r.Calls))
	for i := range returns {
		returns[i] = total
	}
	return returns
}
