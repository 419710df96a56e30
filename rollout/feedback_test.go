package rollout

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lightswarm/lightswarm/rollout/agent"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

func given(v float64) *float64   { return &v }
func worth(v float32) *float32   { return &v }
func named(n string) bundle.Call { return bundle.Call{Agent: n} }

func TestHeed(t *testing.T) {
	rules := []wire.ToolReward{
		{Tool: "calculator", Status: wire.ToolFailed, Reward: -0.25}, {Status: wire.ToolFailed, Reward: -0.5},
		{Tool: "calculator", Status: wire.ToolOK, Reward: 0.125},
	}
	feedback := agent.Feedback{
		Reward:     given(0.75),
		Components: map[string]float64{"style": 0.5, "a": 2, "": 1, "line\n": 1, "huge": 1e300},
		Calls: map[int]agent.CallFeedback{
			0: {Agent: "critic"}, 1: {Agent: "stranger", Reward: given(0.25)}, 7: {Agent: "critic", Reward: given(1)},
		},
		Tools: []agent.ToolOutcome{
			{Call: 0, Tool: "calculator", Failed: true}, {Call: 0, Tool: "calculator"}, {Call: 1, Tool: "calculator"},
			{Call: 1, Tool: "search", Failed: true}, {Call: 1, Tool: "search"}, {Call: 9, Tool: "calculator"},
		},
	}
	tools := func(first, second float32) []bundle.Call {
		return []bundle.Call{{Agent: "critic", Reward: worth(first)}, {Agent: "solver", Reward: worth(second)}}
	}
	old := []bundle.Component{{Name: "environment", Value: 1}}
	for name, c := range map[string]struct {
		rules    []wire.ToolReward
		agent    wire.AgentRewards
		feedback *agent.Feedback
		want     bundle.Rollout
	}{
		"nothing is said":  {rules: rules, agent: 3, want: bundle.Rollout{Reward: 0.5, Components: old, Calls: []bundle.Call{named("solver"), named("solver")}}},
		"roles alone":      {feedback: &feedback, want: bundle.Rollout{Reward: 0.5, Components: old, Calls: []bundle.Call{named("critic"), named("solver")}}},
		"rewards of tools": {rules: rules, feedback: &feedback, want: bundle.Rollout{Reward: 0.5, Components: old, Calls: tools(-0.125, -0.375)}},
		"and of calls":     {rules: rules, agent: wire.AgentRewardCalls, feedback: &feedback, want: bundle.Rollout{Reward: 0.5, Components: old, Calls: tools(-0.125, -0.125)}},
		"the agent's own": {
			agent: wire.AgentRewardFinal, feedback: &feedback,
			want: bundle.Rollout{
				Reward: 0.75, Components: []bundle.Component{{Name: "a", Value: 2}, {Name: "style", Value: 0.5}},
				Calls: []bundle.Call{named("critic"), named("solver")},
			},
		},
		"more than there is": {
			agent: wire.AgentRewardFinal, feedback: &agent.Feedback{Reward: given(1e300)},
			want: bundle.Rollout{Reward: 1, Calls: []bundle.Call{named("solver"), named("solver")}},
		},
		"the range holds the sum": {
			agent: wire.AgentRewardCalls, feedback: &agent.Feedback{Calls: map[int]agent.CallFeedback{0: {Reward: given(0.75)}, 1: {Reward: given(-5)}}},
			want: bundle.Rollout{Reward: 0.5, Components: old, Calls: []bundle.Call{{Agent: "solver", Reward: worth(0.5)}, {Agent: "solver", Reward: worth(-1)}}},
		},
	} {
		m := wire.EnvironmentManifest{
			Agents: []string{"solver", "critic"}, RewardMin: -1, RewardMax: 1, ToolRewards: c.rules, AgentRewards: c.agent,
		}
		got := bundle.Rollout{Reward: 0.5, Components: old, Calls: []bundle.Call{named("solver"), named("solver")}}
		heed(m, &got, c.feedback)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Whatever is said, all rewards and their running sum stay in the range, as learners ask.
func TestRewardsStayInRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := wire.EnvironmentManifest{Agents: []string{"solver"}, AgentRewards: wire.AgentRewardFinal | wire.AgentRewardCalls}
		m.RewardMin = rapid.Float32Range(-3, 3).Draw(t, "least")
		m.RewardMax = m.RewardMin + rapid.Float32Range(0.01, 3).Draw(t, "range")
		var r bundle.Rollout
		f := &agent.Feedback{Reward: given(rapid.Float64().Draw(t, "reward")), Calls: map[int]agent.CallFeedback{}}
		r.Calls = make([]bundle.Call, rapid.IntRange(0, 9).Draw(t, "calls"))
		for i := range r.Calls {
			f.Calls[i] = agent.CallFeedback{Reward: given(rapid.OneOf(rapid.Float64(), rapid.Float64Range(-2, 2)).Draw(t, fmt.Sprint("call ", i)))}
		}
		heed(m, &r, f)
		total := float64(r.Reward)
		all := []float64{total}
		for _, c := range r.Calls {
			if c.Reward != nil {
				total += float64(*c.Reward)
				all = append(all, float64(*c.Reward), total)
			}
		}
		for _, v := range all {
			if math.IsNaN(v) || v < float64(m.RewardMin) || v > float64(m.RewardMax) {
				t.Fatalf("%v is outside [%v, %v]: %v", v, m.RewardMin, m.RewardMax, all)
			}
		}
	})
}
