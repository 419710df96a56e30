package credit

// CounterfactualAgent asks of each agent of a rollout what would have come of it had that agent acted otherwise. COMA
// (Foerster et al. 2018, arXiv 1705.08926, equation 4) subtracts from the return its expectation over the agent's own
// actions; here the group's other rollouts in which the agent acted are the sample that estimates it,
//
//	A(i, a) = R(i, a) - mean over k != i of R(k, a),
//
// with R(i, a) the mean of the returns that Return gives to agent a's calls in rollout i. All of the agent's calls in
// the rollout get this. So an agent that is called in hard cases alone is compared with how hard cases end, not with all.
// An agent that acted in one rollout alone is compared with nothing and gets 0. An agent's advantages, one for each
// rollout, sum to zero. There is no learned critic, and what other agents did is averaged over, not held fixed.
type CounterfactualAgent struct{}

// Assign implements Assigner: the comparison is all there is.
func (CounterfactualAgent) Assign(r Rollout) []float64 { return make([]float64, len(r.Calls)) }

// Compare implements Comparer.
func (CounterfactualAgent) Compare(group []Rollout) [][]float64 {
	type record struct {
		sum      float64
		rollouts int
	}
	agents := make(map[string]*record)
	values := make([][]float64, len(group))
	for i, r := range group {
		values[i] = Return{}.Assign(r)
		acted := make(map[string]bool)
		for j, c := range r.Calls {
			if acted[c.Agent] {
				continue
			}
			acted[c.Agent] = true
			if agents[c.Agent] == nil {
				agents[c.Agent] = new(record)
			}
			agents[c.Agent].sum += values[i][j]
			agents[c.Agent].rollouts++
		}
	}
	for i, r := range group {
		for j, c := range r.Calls {
			others := agents[c.Agent].rollouts - 1
			if others == 0 {
				values[i][j] = 0
				continue
			}
			rest := agents[c.Agent].sum - values[i][j]
			values[i][j] -= rest / float64(others)
		}
	}
	return values
}
