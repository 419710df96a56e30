package protocol_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/protocol"
	"github.com/lightswarm/lightswarm/wire"
)

// script is an environment that opens an episode, and then answers everything with one line.
type script struct {
	answer string
	asked  []string
}

func (s *script) Ask(_ context.Context, line []byte) ([]byte, error) {
	s.asked = append(s.asked, string(line))
	if len(s.asked) == 1 {
		return []byte(`{"messages":[{"role":"user","content":"Go."}],"tools":[]}`), nil
	}
	return []byte(s.answer), nil
}
func (*script) Close() error { return nil }

// begin opens an episode of an environment that answers with one line from then on.
func begin(t *testing.T, answer string) (*protocol.Episode, *script) {
	t.Helper()
	m := wire.EnvironmentManifest{
		Name: "scripted", Version: "1.0.0", Licence: "Apache-2.0", Kind: "exec", Entry: "script", RewardMax: 1,
		Determinism: wire.DeterminismStochastic, Agents: []string{"writer"}, Splits: []wire.Split{{Name: "train", Tasks: 1}},
	}
	p, err := env.NewPackage(m, map[string][]byte{"script": []byte("#!")})
	if err != nil {
		t.Fatal(err)
	}
	s := &script{answer: answer}
	e, err := protocol.Begin(t.Context(), s, p, "train", 0)
	if err != nil {
		t.Fatal(err)
	}
	return e, s
}

// What an environment is asked about a call is all that the agent says in it, and its answer is a message.
func TestReply(t *testing.T) {
	e, s := begin(t, `{"content":"","calls":[{"name":"look","arguments":"{}"},{"name":"look","arguments":"not JSON"}]}`)
	q := env.Question{
		Role: "writer", Tools: []string{"look"}, Habit: "haste",
		Messages: []chat.Message{
			{Role: chat.System, Content: "Be <brief>."}, {Role: chat.User, Content: "Go."},
			{Role: chat.Assistant, ToolCalls: []chat.ToolCall{{ID: "call_7_0", Name: "look", Arguments: "{}"}}, Tokens: []int32{1}},
			{Role: chat.ToolRole, Content: "1", ToolCallID: "call_7_0"},
		},
	}
	said, err := env.Reply(t.Context(), e, q)
	if err != nil {
		t.Fatal(err)
	}
	want := chat.Message{Role: chat.Assistant, ToolCalls: []chat.ToolCall{
		{ID: "call_0", Name: "look", Arguments: "{}"}, {ID: "call_1", Name: "look", Arguments: "not JSON"},
	}}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("reply (-want +got):\n%s", diff)
	}
	const asked = `{"op":"reply","habit":"haste","role":"writer","messages":[` +
		`{"role":"system","content":"Be <brief>.","calls":[]},{"role":"user","content":"Go.","calls":[]},` +
		`{"role":"assistant","content":"","calls":[{"name":"look","arguments":"{}"}]},{"role":"tool","content":"1","calls":[]}],"tools":["look"]}`
	if s.asked[1] != asked {
		t.Errorf("asked %s\nwant  %s", s.asked[1], asked)
	}
	if _, err := e.Reply(t.Context(), env.Question{Role: "writer"}); err != nil {
		t.Fatal(err)
	}
	if want := `{"op":"reply","role":"writer","messages":[],"tools":[]}`; s.asked[2] != want {
		t.Errorf("asked %s, want %s", s.asked[2], want)
	}
}

func TestRepliesThatDoNotDo(t *testing.T) {
	many, err := json.Marshal(map[string]any{"calls": make([]map[string]string, 33)})
	if err != nil {
		t.Fatal(err)
	}
	for answer, want := range map[string]string{
		`{}`:                          "reply: its answer has neither content nor calls",
		`{"content":null,"calls":[]}`: "reply: its answer has neither content nor calls",
		`{"answer":"7"}`:              "unknown field",
		`{"content":7}`:               "is not the JSON that was wanted",
		`{"calls":[{"name":"a b"}]}`:  `calls[0].name "a b" cannot be a tool's`,
		`{"calls":[{"name":"a","arguments":{}}]}`: "is not the JSON that was wanted",
		`{"content":"a"} {}`:                      "there is more after it",
		`{"error":"no such request: reply"}`:      "reply: it reports: no such request: reply",
		`nothing`:                                 "is not the JSON that was wanted",
		string(many):                              "it has 33 calls; at most 32 are allowed",
	} {
		e, _ := begin(t, answer)
		_, err := e.Reply(t.Context(), env.Question{Role: "writer"})
		var f *protocol.Failure
		if !errors.As(err, &f) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want …%s…", answer, err, want)
		}
		if _, again := e.Score(t.Context(), ""); !errors.Is(again, err) {
			t.Errorf("%s: the episode goes on: %v", answer, again)
		}
	}
	e, s := begin(t, `{"content":"a"}`)
	long := env.Question{Role: "writer", Messages: []chat.Message{{Role: chat.User, Content: strings.Repeat("a", protocol.MaxLine)}}}
	if _, err := e.Reply(t.Context(), long); err == nil || !strings.Contains(err.Error(), "reply: a request of 1048") || len(s.asked) != 1 {
		t.Errorf("%v, asked %d times", err, len(s.asked))
	}
}

// An environment that answers calls one by one may name its habits alone.
func TestSolveWithHabitsAlone(t *testing.T) {
	for answer, want := range map[string]env.Solution{
		`{"habits":["haste"]}`: {Habits: []string{"haste"}, Unsolved: true},
		`{"habits":[]}`:        {Habits: []string{}, Unsolved: true},
		`{"answer":"7"}`:       {Answer: "7"},
	} {
		e, _ := begin(t, answer)
		got, err := e.Solve(t.Context())
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", answer, err, diff)
		}
		if want.Unsolved {
			if _, err := env.Oracle().Play(t.Context(), "train", 0, e); !errors.Is(err, env.ErrNoSolution) {
				t.Errorf("%s: the oracle plays: %v", answer, err)
			}
		}
	}
	for _, answer := range []string{`{}`, `{"habits":null}`, `{"calls":[],"answer":null}`, `{"habits":["a"],"calls":[{"name":"a","arguments":""}]}`} {
		e, _ := begin(t, answer)
		if s, err := e.Solve(t.Context()); err == nil || !strings.Contains(err.Error(), "its answer has no answer") {
			t.Errorf("%s: %+v, %v", answer, s, err)
		}
	}
	e, _ := begin(t, `{"habits":["haste"]}`)
	if s, err := e.SolveBy(t.Context(), "haste"); err == nil {
		t.Errorf("a habit without an answer: %+v", s)
	}
}
