package credit

import (
	"fmt"
	"path"
	"slices"
)

// Agents chooses agents by their names, with * for any part of one, ? for a letter and [..] for one of some letters, as
// path.Match has them; none chooses all. What the paper calls the components of interest (Luo et al. 2025, arXiv
// 2508.03680, section 3.1).
type Agents []string

// Check says which of the patterns is none, and what to do.
func (a Agents) Check() error {
	for _, pattern := range a {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			return fmt.Errorf("%q is no pattern of agents' names; use names, with * for parts of them, such as writer or check*", pattern)
		}
	}
	return nil
}

// Has says whether the agent is chosen. A pattern that Check refuses chooses nobody.
func (a Agents) Has(agent string) bool {
	return len(a) == 0 || slices.ContainsFunc(a, func(pattern string) bool {
		ok, err := path.Match(pattern, agent)
		return ok && err == nil
	})
}
