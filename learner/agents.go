package learner

import (
	"fmt"
	"path"
	"slices"
)

// CheckAgents says which of the patterns that choose agents is none.
func CheckAgents(patterns []string) error {
	for _, p := range patterns {
		if _, err := path.Match(p, ""); err != nil {
			return fmt.Errorf("%q is no pattern of agents' names: %w; use names, with * and ? for parts, such as writer or check*", p, err)
		}
	}
	return nil
}

// trains says whether an agent is trained as far as the algorithm goes; CheckAgents has passed.
func (a Algorithm) trains(agent string) bool {
	return len(a.Agents) == 0 || slices.ContainsFunc(a.Agents, func(pattern string) bool {
		ok, _ := path.Match(pattern, agent)
		return ok
	})
}
