package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/rollout/agent"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/calc"
	"github.com/lightswarm/lightswarm/rollout/gateway"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

// foreign is an agent as others write them: it speaks Chat Completions over HTTP, and like the frameworks it writes
// arguments anew, has empty texts for null, adds names and makes up its own ids for calls.
type foreign struct {
	gateway *gateway.Gateway
	stats   chan gateway.Summary
}

type object = map[string]any

func (f foreign) Run(ctx context.Context, llm agent.LLM, e env.Episode) (agent.Result, error) {
	s, err := f.gateway.Open(ctx, gateway.SessionOptions{LLM: llm, Agents: []string{"solver"}})
	if err != nil {
		return agent.Result{}, err
	}
	defer func() { f.stats <- s.End() }()
	var messages, tools []object
	for _, m := range e.Messages() {
		messages = append(messages, object{"role": m.Role, "content": []object{{"type": "text", "text": m.Content}}})
	}
	for _, t := range e.Tools() {
		tools = append(tools, object{"type": "function", "function": object{
			"name": t.Name, "description": t.Description, "parameters": json.RawMessage(t.Parameters),
		}})
	}
	for turn := 0; ; turn++ {
		said, finish, err := f.ask(ctx, s, object{"model": "gpt-4o", "temperature": 0, "messages": messages, "tools": tools})
		switch {
		case err != nil:
			return agent.Result{}, err
		case finish == "exhausted":
			return agent.Result{End: agent.Exhausted}, nil
		case finish == "length":
			return agent.Result{End: agent.Cut}, nil
		case finish == "stop":
			return agent.Result{End: agent.Answered, Answer: said.Content}, nil
		}
		echo := object{"role": "assistant", "content": said.Content, "name": "model"}
		var calls, results []object
		for i, c := range said.ToolCalls {
			id := fmt.Sprintf("mine-%d-%d", turn, i)
			arguments := c.Arguments
			var v any
			if json.Unmarshal([]byte(arguments), &v) == nil {
				b, err := json.MarshalIndent(v, "", " ")
				if err != nil {
					return agent.Result{}, err
				}
				arguments = string(b)
			}
			calls = append(calls, object{"id": id, "type": "function", "function": object{"name": c.Name, "arguments": arguments}})
			result, err := e.Call(ctx, c.Name, c.Arguments)
			if err != nil {
				return agent.Result{}, &agent.EnvironmentError{Err: err}
			}
			results = append(results, object{"role": "tool", "tool_call_id": id, "name": c.Name, "content": result})
		}
		echo["tool_calls"] = calls
		messages = append(append(messages, echo), results...)
	}
}

// ask makes one call; finish is the answer's finish_reason, or "exhausted".
func (f foreign) ask(ctx context.Context, s *gateway.Session, body object) (said chat.Message, finish string, err error) {
	b, err := json.Marshal(body)
	if err != nil {
		return said, "", err
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+f.gateway.Address()+"/v1/chat/completions", bytes.NewReader(b))
	if err != nil {
		return said, "", err
	}
	q.Header.Set("Authorization", "Bearer "+s.Key())
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		return said, "", err
	}
	defer r.Body.Close()
	var answer struct {
		Choices []struct {
			Message struct {
				Content   string
				ToolCalls []struct {
					Function struct{ Name, Arguments string }
				} `json:"tool_calls"`
			}
			Finish string `json:"finish_reason"`
		}
		Error struct{ Message, Code string }
	}
	if err := json.NewDecoder(r.Body).Decode(&answer); err != nil {
		return said, "", err
	}
	switch {
	case answer.Error.Code == "calls_exhausted":
		return said, "exhausted", nil
	case r.StatusCode != http.StatusOK:
		return said, "", fmt.Errorf("%d: %+v", r.StatusCode, answer.Error)
	}
	c := answer.Choices[0]
	said.Content = c.Message.Content
	for _, call := range c.Message.ToolCalls {
		said.ToolCalls = append(said.ToolCalls, chat.ToolCall{Name: call.Function.Name, Arguments: call.Function.Arguments})
	}
	return said, c.Finish, nil
}

// TestForeignAgentsRecordTheSame runs groups with the built-in agent and with one behind the gateway, which wants the
// same of the policy in its own words: the bundles are the same to the bit, but for what only the second asks of sampling.
func TestForeignAgentsRecordTheSame(t *testing.T) {
	p, _ := builtIn(t)
	network := networkOf(t, calc.New(), wire.RolloutRules{
		GroupSize: 4, MaxCalls: 2, MaxCompletionTokens: 24, Sampling: wire.Sampling{Temperature: 1.7},
	})
	const groups = 20
	behind := network
	stats := make(chan gateway.Summary, groups*4)
	behind.Agent = foreign{serve(t), stats}
	seen, unasked := map[string]int{}, cmpopts.IgnoreFields(bundle.Call{}, "Asked")
	for counter := range uint64(groups) {
		want := play(t, &network, p, counter)
		got := play(t, &behind, p, counter)
		if asked := got.Rollouts[0].Calls[0].Asked; asked != `{"temperature":0}` {
			t.Errorf("the agent is said to have asked %q", asked)
		}
		if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b wire.CID) bool { return a == b }), unasked); diff != "" {
			t.Fatalf("group %d (-built in +behind the gateway):\n%s", counter, diff)
		}
		for _, r := range got.Rollouts {
			seen[r.Outcome.String()]++
			for i := 1; i < len(r.Calls); i++ {
				seen["later calls"]++
				before := slices.Concat(r.Calls[i-1].Prompt, r.Calls[i-1].Completion)
				if p := r.Calls[i].Prompt; len(p) < len(before) || !slices.Equal(p[:len(before)], before) {
					t.Errorf("group %d: call %d does not continue what was sampled", counter, i)
				}
			}
		}
	}
	if seen["scored"] == 0 || seen["later calls"] == 0 {
		t.Errorf("nothing was tried: %v", seen)
	}
	t.Log(seen)
	if len(stats) != groups*4 {
		t.Errorf("%d sessions ended", len(stats))
	}
}
