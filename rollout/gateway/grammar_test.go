package gateway_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/policy/grammar"
	"github.com/lightswarm/lightswarm/rollout/agent"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/calc"
	"github.com/lightswarm/lightswarm/rollout/gateway"
	"github.com/lightswarm/lightswarm/wire"
)

// demanding is an agent that wants forms that the policy has never learned to write, one call for each.
type demanding struct {
	t *testing.T
	foreign
}

func (d demanding) Run(ctx context.Context, llm agent.LLM, e env.Episode) (agent.Result, error) {
	s, err := d.gateway.Open(ctx, gateway.SessionOptions{LLM: llm, Agents: []string{"solver"}})
	if err != nil {
		return agent.Result{}, err
	}
	defer s.End()
	schema := object{
		"type": "object", "required": []string{"answer", "sure"}, "additionalProperties": false,
		"properties": object{"answer": object{"type": "integer"}, "sure": object{"type": "boolean"}},
	}
	tools := []object{
		{"type": "function", "function": object{"name": "submit", "strict": true, "parameters": schema}},
		{"type": "function", "function": object{"name": "wait", "parameters": object{"type": "object", "properties": object{}}}},
	}
	messages := []object{{"role": "user", "content": "Is it so?"}}
	var value struct {
		Answer *float64
		Sure   *bool
	}
	valid := func(text string) bool {
		return json.Unmarshal([]byte(text), &value) == nil && value.Answer != nil && value.Sure != nil
	}
	for name, c := range map[string]struct {
		body object
		good func(chat.Message) bool
	}{
		"json_object": {object{"response_format": object{"type": "json_object"}}, func(m chat.Message) bool {
			var v map[string]any
			return json.Unmarshal([]byte(m.Content), &v) == nil
		}},
		"json_schema": {
			object{"response_format": object{"type": "json_schema", "json_schema": object{"name": "a", "strict": true, "schema": schema}}},
			func(m chat.Message) bool { return valid(m.Content) },
		},
		"required": {object{"tools": tools, "tool_choice": "required", "parallel_tool_calls": false}, func(m chat.Message) bool {
			return len(m.ToolCalls) == 1 && m.Content == "" &&
				(m.ToolCalls[0].Name == "wait" && m.ToolCalls[0].Arguments == "{}" || m.ToolCalls[0].Name == "submit" && valid(m.ToolCalls[0].Arguments))
		}},
		"named": {object{"tools": tools, "tool_choice": object{"type": "function", "function": object{"name": "submit"}}}, func(m chat.Message) bool {
			return len(m.ToolCalls) == 1 && m.ToolCalls[0].Name == "submit" && valid(m.ToolCalls[0].Arguments)
		}},
		"strict": {object{"tools": tools}, func(m chat.Message) bool {
			return !slices.ContainsFunc(m.ToolCalls, func(c chat.ToolCall) bool { return c.Name == "submit" && !valid(c.Arguments) })
		}},
	} {
		c.body["model"], c.body["messages"] = "policy", messages
		said, finish, err := d.ask(ctx, s, c.body)
		if err != nil {
			return agent.Result{}, err
		}
		if finish == "length" && name == "strict" {
			continue // a text, which may be cut
		}
		if finish == "length" || !c.good(said) {
			d.t.Errorf("%s: %s %+v", name, finish, said)
		}
	}
	return agent.Result{End: agent.Answered}, nil
}

// TestDemandsAreEnforced has the built-in policy asked, through the gateway, for forms that it does not know: whatever it
// is sampled as has the form, and the bundle says what it was sampled within.
func TestDemandsAreEnforced(t *testing.T) {
	p, session := builtIn(t)
	network := networkOf(t, calc.New(), wire.RolloutRules{
		GroupSize: 4, MaxCalls: 8, MaxCompletionTokens: 40, Sampling: wire.Sampling{Temperature: 1.7},
	})
	network.Agent = demanding{t, foreign{gateway: serve(t)}}
	grammars := map[string]bool{}
	for counter := range uint64(4) {
		b := sent(t, play(t, &network, p, counter))
		for i, r := range b.Rollouts {
			if len(r.Calls) != 5 {
				t.Fatalf("rollout %d has %d calls, %s", i, len(r.Calls), r.Outcome)
			}
			for _, c := range r.Calls {
				grammars[c.Grammar] = true
				within, err := grammar.Parse(c.Grammar)
				if err != nil {
					t.Fatal(err)
				}
				scores, err := session.(policyScorer).ScoreWithin(t.Context(), slices.Concat(c.Prompt, c.Completion), len(c.Prompt), within, 40)
				if err != nil || len(scores) != len(c.LogProbs) {
					t.Fatalf("rollout %d: %d scores, %v", i, len(scores), err)
				}
			}
		}
	}
	if len(grammars) != 5 {
		t.Errorf("%d grammars for five demands", len(grammars))
	}
}

// policyScorer is what the session can do besides.
type policyScorer interface {
	ScoreWithin(ctx context.Context, tokens []int32, from int, g *grammar.Grammar, room int) ([]float32, error)
}
