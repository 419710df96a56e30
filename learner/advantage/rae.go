package advantage

import (
	"cmp"
	"maps"
	"slices"
)

// Role is an agent of an environment.
type Role struct {
	// Environment is the environment's id, as the caller has it.
	Environment string
	Agent       string
}

// Memory is the mean return of roles over past batches. It is a value: nothing here changes one that it was given.
type Memory map[Role]float64

// Roles are those remembered, by environment and agent.
func (m Memory) Roles() []Role { return sorted(m) }

func sorted[V any](m map[Role]V) []Role {
	return slices.SortedFunc(maps.Keys(m), func(a, b Role) int {
		return cmp.Or(cmp.Compare(a.Environment, b.Environment), cmp.Compare(a.Agent, b.Agent))
	})
}

// Remembering is an Estimator whose baselines come from earlier batches instead of the group. Its memory is passed in
// and out, so that a caller saves it with the weights that it belongs to, and forgets with them what they forget.
type Remembering interface {
	Estimator
	// With returns the same estimator with another memory.
	With(m Memory) Remembering
	// Of returns the baseline for the calls of a role.
	Of(role Role) Baseline
	// Remember returns the memory after a batch. returns holds for each role one return for each rollout that it acted
	// in; their order does not matter beyond rounding.
	Remember(returns map[Role][]float64) Memory
}

// maxRoles bounds a memory: agents' names come from peers.
const maxRoles = 1024

// RAE is role-conditioned advantage estimation (Liu et al. 2025, arXiv 2506.24119, section 3.3): the baseline of each
// role of each environment is an exponential moving average of its returns,
//
//	b <- Decay b + (1 - Decay) R,    A = R - b,
//
// 0 before the first. A batch is compared with what was known before it. Roles whose returns differ in level, as those of
// two players do, do not share a baseline; a group whose returns are all equal teaches when they differ from the average.
// The n returns of a batch move the average as their mean n times over would, b <- Decay^n b + (1 - Decay^n) mean, so
// that their order does not matter. At most 1024 roles are remembered; the baseline of others stays 0.
type RAE struct {
	// Decay is from 0 to below 1; 0.95 in the source.
	Decay  float64
	memory Memory
}

// Estimate implements Estimator for a caller without roles, where nothing is remembered: the baseline is 0.
func (r RAE) Estimate(returns [][]float64) []Baseline {
	baselines := make([]Baseline, len(returns))
	for i := range baselines {
		baselines[i].Scale = 1
	}
	return baselines
}

// LearnsFromFlat says that a group of equal returns may teach.
func (RAE) LearnsFromFlat() bool { return true }

// With implements Remembering.
func (r RAE) With(m Memory) Remembering {
	r.memory = m
	return r
}

// Of implements Remembering.
func (r RAE) Of(role Role) Baseline { return Baseline{Mean: r.memory[role], Scale: 1} }

// Remember implements Remembering.
func (r RAE) Remember(returns map[Role][]float64) Memory {
	after := maps.Clone(r.memory)
	if after == nil {
		after = make(Memory)
	}
	// In a fixed order, so that it is the same roles which a full memory leaves out.
	for _, role := range sorted(returns) {
		seen := returns[role]
		if _, known := after[role]; len(seen) == 0 || !known && len(after) >= maxRoles {
			continue
		}
		kept, sum := 1.0, 0.0
		for _, v := range seen {
			kept *= r.Decay
			sum += v
		}
		after[role] = float64(kept*r.memory[role]) + float64((1-kept)*(sum/float64(len(seen))))
	}
	return after
}
