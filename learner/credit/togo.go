package credit

// ToGo gives every call what came of it: its own reward, those of the calls after it, and the rollout's, which comes with
// the last call. What lies k calls ahead counts Discount^k (the discounted return from a step on; Sutton and Barto,
// Reinforcement Learning, 2nd edition, equation 3.8). A call is neither praised nor blamed for what was before it.
//
// With a Discount below 1 this is the discounted assignment. Of a rollout whose calls have no rewards of their own, and
// without a discount, it makes what Return makes.
type ToGo struct {
	// Discount is above 0 and at most 1; 0 stands for 1, no discount.
	Discount float64
}

// Assign implements Assigner.
func (t ToGo) Assign(r Rollout) []float64 {
	discount := t.Discount
	if discount == 0 {
		discount = 1
	}
	returns := make([]float64, len(r.Calls))
	ahead := r.Reward
	for i := len(r.Calls) - 1; i >= 0; i-- {
		if own := r.Calls[i].Reward; own != nil {
			ahead += *own
		}
		returns[i] = ahead
		ahead *= discount
	}
	return returns
}
