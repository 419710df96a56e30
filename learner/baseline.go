package learner

import "github.com/lightswarm/lightswarm/learner/advantage"

// baselines are what the calls of each group are compared with, by the agent that made them.
func (a Algorithm) baselines(groups []scored) []func(agent string) advantage.Baseline {
	baselines := make([]func(string) advantage.Baseline, len(groups))
	if r, ok := a.Advantage.(advantage.Remembering); ok {
		for i, s := range groups {
			environment := s.group.bundle.Environment.String()
			baselines[i] = func(agent string) advantage.Baseline {
				return r.Of(advantage.Role{Environment: environment, Agent: agent})
			}
		}
		return baselines
	}
	means := make([][]float64, len(groups))
	for i, s := range groups {
		means[i] = s.means
	}
	for i, b := range a.Advantage.Estimate(means) {
		baselines[i] = func(string) advantage.Baseline { return b }
	}
	return baselines
}

// roleReturns are the returns of each trained role: for each rollout that it acted in, the mean over its calls.
func roleReturns(groups []scored) map[advantage.Role][]float64 {
	returns := make(map[advantage.Role][]float64)
	for _, s := range groups {
		environment := s.group.bundle.Environment.String()
		for i, r := range s.rollouts {
			sums, calls := make(map[string]float64), make(map[string]int)
			for j, c := range r.Calls {
				if s.trained[i][j] {
					sums[c.Agent] += s.returns[i][j]
					calls[c.Agent]++
				}
			}
			for agent, n := range calls {
				role := advantage.Role{Environment: environment, Agent: agent}
				returns[role] = append(returns[role], sums[agent]/float64(n))
			}
		}
	}
	return returns
}
