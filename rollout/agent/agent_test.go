package agent_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/rollout/agent"
	"github.com/lightswarm/lightswarm/rollout/env"
)

// script answers calls in order: with a message, or an error.
type script struct {
	answers []any
	seen    []agent.Request
}

func (s *script) Complete(_ context.Context, r agent.Request) (agent.Reply, error) {
	s.seen = append(s.seen, r)
	answer := s.answers[0]
	s.answers = s.answers[1:]
	if err, ok := answer.(error); ok {
		return agent.Reply{}, err
	}
	return agent.Reply{Message: answer.(chat.Message), Call: len(s.seen) - 1}, nil
}

// echo is an episode whose tool repeats its arguments.
type echo struct{ broken error }

func (echo) Messages() []chat.Message { return []chat.Message{{Role: chat.User, Content: "go"}} }
func (echo) Tools() []chat.Tool       { return []chat.Tool{{Name: "echo"}} }
func (e echo) Call(_ context.Context, name, arguments string) (string, error) {
	return name + ":" + arguments, e.broken
}
func (echo) Score(context.Context, string) (env.Score, error) { return env.Score{}, nil }
func (echo) Close() error                                     { return nil }

func text(s string) chat.Message { return chat.Message{Role: chat.Assistant, Content: s} }

func calls(arguments ...string) chat.Message {
	m := chat.Message{Role: chat.Assistant}
	for i, a := range arguments {
		m.ToolCalls = append(m.ToolCalls, chat.ToolCall{ID: fmt.Sprintf("call_%d", i), Name: "echo", Arguments: a})
	}
	return m
}

func TestToolLoopEnds(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		answers []any
		episode echo
		want    agent.Result
		err     error
	}{
		"answer at once":           {answers: []any{text("7")}, want: agent.Result{End: agent.Answered, Answer: "7"}},
		"answer after tools":       {answers: []any{calls("a"), calls("b", "c"), text("7")}, want: agent.Result{End: agent.Answered, Answer: "7"}},
		"malformed":                {answers: []any{calls("a"), fmt.Errorf("call 1: %w", agent.ErrMalformed)}, want: agent.Result{End: agent.Malformed}},
		"cut":                      {answers: []any{agent.ErrCut}, want: agent.Result{End: agent.Cut}},
		"exhausted":                {answers: []any{calls("a"), agent.ErrExhausted}, want: agent.Result{End: agent.Exhausted}},
		"the machinery fails":      {answers: []any{broken}, err: broken},
		"the environment fails":    {answers: []any{calls("a")}, episode: echo{broken}, err: broken},
		"the context is the fault": {answers: []any{context.Canceled}, err: context.Canceled},
	} {
		llm := &script{answers: c.answers}
		got, err := agent.ToolLoop{Role: "solver"}.Run(t.Context(), llm, c.episode)
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		var failed *agent.EnvironmentError
		if errors.As(err, &failed) != (c.episode.broken != nil) {
			t.Errorf("%s: error %#v", name, err)
		}
	}
}

func TestToolLoopCarriesTheConversation(t *testing.T) {
	llm := &script{answers: []any{calls("a"), calls("b", "c"), text("7")}}
	if _, err := (agent.ToolLoop{Role: "solver"}).Run(t.Context(), llm, echo{}); err != nil {
		t.Fatal(err)
	}
	opening := echo{}.Messages()
	second := append(opening, calls("a"), chat.Message{Role: chat.ToolRole, Content: "echo:a", ToolCallID: "call_0"})
	third := append(second, calls("b", "c"),
		chat.Message{Role: chat.ToolRole, Content: "echo:b", ToolCallID: "call_0"},
		chat.Message{Role: chat.ToolRole, Content: "echo:c", ToolCallID: "call_1"})
	want := []agent.Request{
		{Agent: "solver", Messages: opening, Tools: echo{}.Tools()},
		{Agent: "solver", Messages: second, Tools: echo{}.Tools()},
		{Agent: "solver", Messages: third, Tools: echo{}.Tools()},
	}
	if diff := cmp.Diff(want, llm.seen); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// checked is an episode that says whether its tool failed.
type checked struct{ echo }

func (checked) CallChecked(_ context.Context, name, arguments string) (string, bool, error) {
	return name + ":" + arguments, arguments == "bad", nil
}

func TestToolLoopReportsTools(t *testing.T) {
	for end, answer := range map[agent.End]any{
		agent.Answered: text("7"), agent.Cut: agent.ErrCut, agent.Exhausted: agent.ErrExhausted, agent.Malformed: agent.ErrMalformed,
	} {
		llm := &script{answers: []any{calls("a", "bad"), calls("c"), answer}}
		got, err := agent.ToolLoop{Role: "solver"}.Run(t.Context(), llm, checked{})
		want := &agent.Feedback{Tools: []agent.ToolOutcome{{Call: 0, Tool: "echo"}, {Call: 0, Tool: "echo", Failed: true}, {Call: 1, Tool: "echo"}}}
		if diff := cmp.Diff(want, got.Feedback); diff != "" || got.End != end || err != nil {
			t.Errorf("%+v, %v, feedback (-want +got):\n%s", got, err, diff)
		}
	}
}
