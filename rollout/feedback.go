package rollout

import (
	"maps"
	"math"
	"slices"

	"github.com/lightswarm/lightswarm/rollout/agent"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

// heed puts what is said of a run into its rollout, as far as the environment lets it count: the roles that calls were
// made in, the agent's own reward, and rewards of calls, for what came of their tools (the paper's automatic intermediate
// rewarding) and those that the agent reports. What was judged by the environment is replaced, never judged again. It is
// pure. The protocol says how rewards are kept within the environment's range.
func heed(m wire.EnvironmentManifest, r *bundle.Rollout, f *agent.Feedback) {
	if f == nil {
		return
	}
	for i := range r.Calls {
		if name := f.Calls[i].Agent; slices.Contains(m.Agents, name) {
			r.Calls[i].Agent = name
		}
	}
	if m.AgentRewards&wire.AgentRewardFinal != 0 && f.Reward != nil {
		r.Reward = float32(clamp(*f.Reward, float64(m.RewardMin), float64(m.RewardMax)))
		r.Components = reported(f.Components)
	}
	given := make(map[int]float64)
	for _, outcome := range f.Tools {
		if rule := ruleFor(m.ToolRewards, outcome); rule != nil {
			given[outcome.Call] += float64(rule.Reward)
		}
	}
	if m.AgentRewards&wire.AgentRewardCalls != 0 {
		for call, said := range f.Calls {
			if said.Reward != nil {
				given[call] += *said.Reward
			}
		}
	}
	reward(m, r, given)
}

// ruleFor is the rule that rewards an outcome, or nil.
func ruleFor(rules []wire.ToolReward, o agent.ToolOutcome) *wire.ToolReward {
	status := wire.ToolOK
	if o.Failed {
		status = wire.ToolFailed
	}
	for i, rule := range rules {
		if rule.Status == status && (rule.Tool == "" || rule.Tool == o.Tool) {
			return &rules[i]
		}
	}
	return nil
}

// reward gives calls their rewards, so that each, and the sum of the rollout's with those before, is in the environment's
// range: the return that learners take.
func reward(m wire.EnvironmentManifest, r *bundle.Rollout, given map[int]float64) {
	low, high := float64(m.RewardMin), float64(m.RewardMax)
	total := float64(r.Reward)
	for i := range r.Calls {
		v, ok := given[i]
		if !ok || math.IsNaN(v) {
			continue
		}
		v = clamp(v, low, high)
		v32 := float32(clamp(v, low-total, high-total))
		// The nearest float32 may be a little beyond.
		for total+float64(v32) > high {
			v32 = math.Nextafter32(v32, float32(math.Inf(-1)))
		}
		for total+float64(v32) < low {
			v32 = math.Nextafter32(v32, float32(math.Inf(1)))
		}
		if v32 < m.RewardMin || v32 > m.RewardMax {
			continue
		}
		total += float64(v32)
		r.Calls[i].Reward = &v32
	}
}

func clamp(v, low, high float64) float64 { return min(max(v, low), high) }

// reported are the parts of an agent's reward that a bundle can hold, in the order of their names.
func reported(parts map[string]float64) (list []bundle.Component) {
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		c := bundle.Component{Name: name, Value: float32(parts[name])}
		if c.Valid() && len(list) < wire.MaxComponents {
			list = append(list, c)
		}
	}
	return list
}
