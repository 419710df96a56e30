package credit

// Critic estimates how rollouts go on.
type Critic interface {
	// Values returns the expected undiscounted return from each call of each rollout on, before the call's completion is
	// known. It is pure, and what it says of a call must not depend on what came of that call.
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

// Siblings is a Critic without a model: it takes a call for worth what the group's other rollouts got from the same
// decision point on, or, when none of them came there, their mean return. Asking other rollouts from a state instead of
// a value model is VinePPO's way (Kazemnejad et al. 2024, arXiv 2410.01679), with the siblings that there
// are in place of new samples. A rollout alone in its group is worth 0.
type Siblings struct{}

// Values implements Critic.
func (Siblings) Values(group []Rollout) [][]float64 {
	type tally struct {
		sum      float64
		rollouts int
	}
	// Each rollout counts once at a decision point, with its first call there.
	points := make([]map[string]float64, len(group))
	at := make(map[string]tally)
	var all float64
	for i, r := range group {
		points[i] = make(map[string]float64)
		for j, ahead := range (ToGo{}).Assign(r) {
			key := decision(r.Calls[j])
			if _, again := points[i][key]; again {
				continue
			}
			points[i][key] = ahead
			t := at[key]
			at[key] = tally{t.sum + ahead, t.rollouts + 1}
		}
		all += whole(r)
	}
	values := make([][]float64, len(group))
	for i, r := range group {
		values[i] = make([]float64, len(r.Calls))
		for j, c := range r.Calls {
			key := decision(c)
			t := at[key]
			switch {
			case t.rollouts > 1:
				values[i][j] = (t.sum - points[i][key]) / float64(t.rollouts-1)
			case len(group) > 1:
				values[i][j] = (all - whole(r)) / float64(len(group)-1)
			}
		}
	}
	return values
}
