package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lightswarm/lightswarm/rollout/agent"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/calc"
	"github.com/lightswarm/lightswarm/rollout/gateway"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

// rewarding is the built-in environment with two roles and rewards for calls.
type rewarding struct{ env.Environment }

func (r rewarding) Manifest() wire.EnvironmentManifest {
	m := r.Environment.Manifest()
	m.Name, m.Agents = "rewarding", []string{"solver", "critic"}
	m.RewardMin, m.RewardMax = -2, 2
	m.ToolRewards = []wire.ToolReward{{Tool: "search", Status: wire.ToolFailed, Reward: -0.5}, {Status: wire.ToolOK, Reward: 0.25}}
	m.AgentRewards = wire.AgentRewardFinal | wire.AgentRewardCalls
	return m
}

// reporter makes two calls, exports spans of them and posts its reward.
type reporter struct{ gateway *gateway.Gateway }

func (r reporter) Run(ctx context.Context, llm agent.LLM, _ env.Episode) (agent.Result, error) {
	s, err := r.gateway.Open(ctx, gateway.SessionOptions{LLM: llm, Agents: []string{"solver", "critic"}})
	if err != nil {
		return agent.Result{}, err
	}
	defer s.End()
	var ids [2]string
	for i := range ids {
		var answer struct{ ID string }
		if err := post(ctx, s.BaseURL()+"/chat/completions", `{"messages":[{"role":"user","content":"1+1?"}]}`, &answer); err != nil {
			return agent.Result{}, err
		}
		ids[i] = answer.ID
	}
	text := func(key, value string) string {
		return fmt.Sprintf(`{"key":%q,"value":{"stringValue":%q}}`, key, value)
	}
	number := 0
	span := func(parent int, name, status string, attributes ...string) string {
		number++
		return fmt.Sprintf(`{"traceId":"%032x","spanId":"%016x","parentSpanId":"%016x","name":%q,"startTimeUnixNano":"%d","endTimeUnixNano":"%d","status":{%s},"attributes":[%s]}`,
			1, number, parent, name, 10*number, 10*number+5, status, strings.Join(attributes, ","))
	}
	spans := []string{
		span(0, "critic", "", text("openinference.span.kind", "AGENT")),
		span(1, "chat", "", text("gen_ai.operation.name", "chat"), text("gen_ai.response.id", ids[0])),
		span(1, "search", `"code":2`, text("openinference.span.kind", "TOOL")),
		span(1, "calculator", "", text("openinference.span.kind", "TOOL")),
		span(0, "chat", "", text("gen_ai.operation.name", "chat"), text("gen_ai.response.id", ids[1]),
			`{"key":"evaluations.0.evaluation.score","value":{"doubleValue":0.125}}`),
	}
	export := `{"resourceSpans":[{"scopeSpans":[{"spans":[` + strings.Join(spans, ",") + `]}]}]}`
	if err := post(ctx, s.BaseURL()+"/traces", export, &struct{}{}); err != nil {
		return agent.Result{}, err
	}
	if err := post(ctx, s.BaseURL()+"/reward", `{"reward":0.75,"components":{"style":1}}`, &struct{}{}); err != nil {
		return agent.Result{}, err
	}
	return agent.Result{End: agent.Answered, Answer: "2", Feedback: s.End().Feedback}, nil
}

// post sends JSON and reads the answer.
func post(ctx context.Context, url, body string, answer any) error {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader([]byte(body)))
	if err != nil {
		return err
	}
	q.Header.Set("Content-Type", "application/json")
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, r.Status)
	}
	return json.NewDecoder(r.Body).Decode(answer)
}

// What an agent posts and exports is in the bundle, as far as the environment wants it.
func TestFeedbackIsRecorded(t *testing.T) {
	p, _ := builtIn(t)
	g := serve(t)
	value := func(v float32) *float32 { return &v }
	for name, c := range map[string]struct {
		environment env.Environment
		want        []bundle.Call
		components  []bundle.Component
	}{
		"wanted": {
			rewarding{calc.New()}, []bundle.Call{{Agent: "critic", Reward: value(-0.25)}, {Agent: "solver", Reward: value(0.125)}},
			[]bundle.Component{{Name: "style", Value: 1}},
		},
		"not wanted": {calc.New(), []bundle.Call{{Agent: "solver"}, {Agent: "solver"}}, nil},
	} {
		network := networkOf(t, c.environment, wire.RolloutRules{
			GroupSize: 1, MaxCalls: 2, MaxCompletionTokens: 8, Sampling: wire.Sampling{Temperature: 1},
		})
		network.Agent = reporter{g}
		b := sent(t, play(t, &network, p, 0))
		got := b.Rollouts[0]
		for i := range got.Calls {
			got.Calls[i] = bundle.Call{Agent: got.Calls[i].Agent, Reward: got.Calls[i].Reward}
		}
		if diff := cmp.Diff(c.want, got.Calls); diff != "" {
			t.Errorf("%s: calls (-want +got):\n%s", name, diff)
		}
		if c.components != nil {
			if diff := cmp.Diff(c.components, got.Components); diff != "" || got.Reward != 0.75 {
				t.Errorf("%s: reward %v, components (-want +got):\n%s", name, got.Reward, diff)
			}
		} else if got.Reward == 0.75 {
			t.Errorf("%s: the agent's reward counts", name)
		}
	}
}
