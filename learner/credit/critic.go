package credit

// Critic estimates how rollouts go on.
type Critic interface {
	// Values returns the expected return from each call of each rollout on, before the call's completion is known, with
	// the discount of whoever asks. It is pure, and what it says of a call must not depend on what came of that call.
	Values(group []Rollout) [][]float64
}

// GAE gives calls generalised advantage estimates (Schulman et al. 2016, arXiv 1506.02438, equation 16), each
// call being one step:
//
//	delta_t = r_t + Discount V_{t+1} - V_t,    A_t = delta_t + Discount Lambda A_{t+1}.
//
// r_t is the call's own reward, and the last call's also has the rollout's; after the last call the value is 0. With
// Lambda and Discount 1, A_t + V_t is what ToGo gives.
type GAE struct {
	Critic Critic
	// Discount, the paper's gamma, is above 0 and at most 1. 0 stands for 1.
	Discount float64
	// Lambda is from 0, which trusts the critic, to 1, which trusts what happened.
	Lambda float64
}

// Assign implements Assigner: the estimates are advantages already.
func (GAE) Assign(r Rollout) []float64 { return make([]float64, len(r.Calls)) }

// Compare implements Comparer.
func (g GAE) Compare(group []Rollout) [][]float64 {
	values := g.Critic.Values(group)
	advantages := make([][]float64, len(group))
	for i, r := range group {
		advantages[i] = g.Advantages(r, values[i])
	}
	return advantages
}

// Advantages returns the estimates for one rollout, given one value for each of its calls. It does without the Critic.
func (g GAE) Advantages(r Rollout, values []float64) []float64 {
	discount := g.Discount
	if discount == 0 {
		discount = 1
	}
	advantages := make([]float64, len(r.Calls))
	next, ahead := 0.0, 0.0
	for i := len(r.Calls) - 1; i >= 0; i-- {
		reward := r.Calls[i].given()
		if i == len(r.Calls)-1 {
			reward += r.Reward
		}
		delta := reward + float64(discount*next) - values[i]
		ahead = delta + float64(float64(discount*g.Lambda)*ahead)
		advantages[i], next = ahead, values[i]
	}
	return advantages
}
