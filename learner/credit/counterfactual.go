package credit

// CounterfactualAgent asks of each agent of a rollout what would have come of it had that agent acted otherwise. COMA
// (Foerster et al. 2018, arXiv 1705.08926, equation 4) subtracts from the return its expectation over the agent's own
// actions; here the group's other rollouts in which the agent acted are the sample that estimates it,
//
//	A(i, a) = R(i, a) - mean over k != i of R(k, a),
//
// with R(i, a) the return that Return gives to agent a's calls in rollout i. All of the agent's calls in the rollout get
// this. So an agent that is called in hard cases alone is compared with how hard cases end, not with all.
// An agent that acted in one rollout alone is compared with nothing and gets 0. An agent's advantages, one for each
// rollout, sum to zero. There is no learned critic, and what other agents did is averaged over, not held fixed.
type CounterfactualAgent struct{}

// Assign implements Assigner: the comparison is all there is.
func (CounterfactualAgent) Assign(r Rollout) []float64 { return make([]float64, len(r.Calls)) }

// Compare implements Comparer.
func (CounterfactualAgent) Compare(group []Rollout) [][]float64 {
	agents := make(map[string]tally)
	values := make([][]float64, len(group))
	for i, r := range group {
		values[i] = Return{}.Assign(r)
		acted := make(map[string]bool)
		for j, c := range r.Calls {
			if !acted[c.Agent] {
				acted[c.Agent] = true
				agents[c.Agent] = tally{agents[c.Agent].sum + values[i][j], agents[c.Agent].rollouts + 1}
			}
		}
	}
	for i, r := range group {
		for j, c := range r.Calls {
			if others, ok := agents[c.Agent].without(values[i][j]); ok {
				values[i][j] -= others
			} else {
				values[i][j] = 0
			}
		}
	}
	return values
}
