package learner

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/lightswarm/lightswarm/wire"
)

// Figure is a number as it is written down: nil if it was not measured, or is infinite or not a number.
func Figure(v float64, measured bool) *float64 {
	if !measured || math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// Part is what the rollouts with a reward of one environment, or of one agent in it, show in a step.
type Part struct {
	// Name is the environment's in the charter, or the agent's.
	Name string
	// Rollouts have a reward, of mean RewardMean, and Solved is the share of them with the largest that the environment
	// gives. An agent's are those in which it made a call.
	Rollouts           int
	RewardMean, Solved float64
	// Calls is the mean number of calls a rollout, CompletionTokens the mean number of tokens that the policy sampled in
	// a call.
	Calls, CompletionTokens float64
}

// EnvironmentPart is what a step's groups of one environment show.
type EnvironmentPart struct {
	Part
	// Groups were used up.
	Groups int
	// Agents are those that made calls, by name: at most mostAgents, those with the most calls.
	Agents []Part
}

// mostAgents bounds the agents of an environment that are told apart: their names come from peers.
const mostAgents = 32

// Lengths counts completions by length: element i those of 2^i to 2^(i+1)-1 tokens.
type Lengths []int

// Add counts a completion of some tokens, at least 1.
func (l *Lengths) Add(tokens int) {
	i := max(0, bits.Len(uint(max(tokens, 0)))-1)
	for len(*l) <= i {
		*l = append(*l, 0)
	}
	(*l)[i]++
}

// show describes what the groups of a step are and what of them is trained on.
func (s *Step) show(rules *Rules, groups []group, p plan) {
	byPeer := make(map[wire.PeerID]int)
	for _, g := range groups {
		byPeer[g.record.Peer]++
		for i := range g.bundle.Rollouts {
			for _, c := range g.bundle.Rollouts[i].Calls {
				s.SampledLengths.Add(len(c.Completion))
			}
		}
	}
	s.Peers = len(byPeer)
	for peer, n := range byPeer {
		if n > s.MostGroups || n == s.MostGroups && peer < s.Most {
			s.Most, s.MostGroups = peer, n
		}
	}
	s.Environments = environments(rules, groups)

	var calls, sum, squares float64
	for _, m := range p.minibatches {
		s.CutTokens += m.cut
		for _, c := range m.completions {
			s.TrainedLengths.Add(c.tokens)
			calls++
			sum += c.advantage
			squares += float64(c.advantage * c.advantage)
		}
	}
	if calls > 0 {
		mean := sum / calls
		s.AdvantageStd = math.Sqrt(max(0, squares/calls-float64(mean*mean)))
	}
}

// partSum sums up a Part.
type partSum struct {
	rollouts, solved, calls, tokens int
	rewards                         float64
}

func (t *partSum) part(name string) Part {
	p := Part{Name: name, Rollouts: t.rollouts}
	if n := float64(t.rollouts); n > 0 {
		p.RewardMean, p.Solved, p.Calls = t.rewards/n, float64(t.solved)/n, float64(t.calls)/n
	}
	if t.calls > 0 {
		p.CompletionTokens = float64(t.tokens) / float64(t.calls)
	}
	return p
}

// environments describes groups by environment, in the charter's order.
func environments(rules *Rules, groups []group) []EnvironmentPart {
	var parts []EnvironmentPart
	for _, e := range rules.Charter.Environments {
		count := 0
		var all partSum
		agents := make(map[string]*partSum)
		for _, g := range groups {
			if g.bundle.Environment != e.Manifest {
				continue
			}
			count++
			for i := range g.bundle.Rollouts {
				r := &g.bundle.Rollouts[i]
				if !r.Outcome.Trainable() {
					continue
				}
				here := make(map[string]bool)
				for _, c := range r.Calls {
					if agents[c.Agent] == nil {
						agents[c.Agent] = new(partSum)
					}
					agents[c.Agent].call(len(c.Completion))
					all.call(len(c.Completion))
					here[c.Agent] = true
				}
				solved := r.Reward >= rules.solved(e.Manifest)
				all.reward(r.Reward, solved)
				for agent := range here {
					agents[agent].reward(r.Reward, solved)
				}
			}
		}
		if count > 0 {
			parts = append(parts, EnvironmentPart{Part: all.part(e.Name), Groups: count, Agents: busiest(agents)})
		}
	}
	return parts
}

func (t *partSum) call(tokens int) {
	t.calls++
	t.tokens += tokens
}

func (t *partSum) reward(r float32, solved bool) {
	t.rollouts++
	t.rewards += float64(r)
	if solved {
		t.solved++
	}
}

// busiest are the agents with the most calls, by name.
func busiest(agents map[string]*partSum) []Part {
	var names []string
	for name := range agents {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(agents[b].calls, agents[a].calls), strings.Compare(a, b))
	})
	names = names[:min(len(names), mostAgents)]
	slices.Sort(names)
	parts := make([]Part, len(names))
	for i, name := range names {
		parts[i] = agents[name].part(name)
	}
	return parts
}
