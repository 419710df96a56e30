package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/rollout/agent"
)

// contents are the texts of a chat completion's choices.
func (r httpResponse) contents(t testing.TB) (all []string) {
	t.Helper()
	var c struct {
		Choices []struct{ Message struct{ Content string } }
	}
	if err := json.Unmarshal([]byte(r.body), &c); err != nil || r.status != 200 {
		t.Fatalf("%d %s: %v", r.status, r.body, err)
	}
	for _, choice := range c.Choices {
		all = append(all, choice.Message.Content)
	}
	return all
}

// Of several samples the agent sees all that its policy was asked for, whatever becomes of one of them.
func TestAllSamplesAreSeen(t *testing.T) {
	number := func(ctx context.Context, q agent.Request, call int) (chat.Message, error) {
		return says(fmt.Sprint("answer ", call)), nil
	}
	fails := func(at int, err error) *fakeLLM {
		return &fakeLLM{behave: func(ctx context.Context, q agent.Request, call int) (chat.Message, error) {
			if call == at {
				return chat.Message{}, err
			}
			return number(ctx, q, call)
		}}
	}
	s := open(t, testGateway(t, Options{}), fails(2, agent.ErrExhausted))
	if got := postChat(t, s, "hi", `"n":4`).contents(t); !slices.Equal(got, []string{"answer 0", "answer 1"}) {
		t.Errorf("of a rollout with two calls it sees %q", got)
	}
	if sum := s.End(); sum.Replies != 2 || !sum.Truncated {
		t.Errorf("summary %+v", sum)
	}
	s = open(t, testGateway(t, Options{}), fails(0, agent.ErrExhausted))
	if r := postChat(t, s, "hi", `"n":4`); r.status != 409 || r.code(t) != "calls_exhausted" {
		t.Errorf("of a rollout without calls it sees %d %s", r.status, r.body)
	}

	s = open(t, testGateway(t, Options{}), fails(2, errors.New("broken")))
	if r := postChat(t, s, "hi", `"n":3`); r.status != 503 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	want := []string{"answer 0", "answer 1", "answer 3"}
	for range 2 {
		if got := postChat(t, s, "hi", `"n":3`, firstRetry).contents(t); !slices.Equal(got, want) {
			t.Errorf("after a failure of the engine the retry sees %q, want %q", got, want)
		}
	}
	if sum := s.End(); sum.Replies != 3 {
		t.Errorf("summary %+v", sum)
	}

	s = open(t, testGateway(t, Options{}), &fakeLLM{behave: func(_ context.Context, _ agent.Request, call int) (chat.Message, error) {
		return says([]string{"{}", "no", "[]", "{ }"}[call%4]), nil
	}})
	const object = `"response_format":{"type":"json_object"},`
	if got := postChat(t, s, "hi", object+`"n":4`).contents(t); !slices.Equal(got, []string{"{}", "{ }"}) {
		t.Errorf("of the form that it demanded it sees %q", got)
	}
	postChat(t, s, "hi", "")
	if r := postChat(t, s, "hi", object+`"n":2`); r.status != 400 || r.code(t) != "unsupported" {
		t.Errorf("of samples that are all of another form it sees %d %s", r.status, r.body)
	}
}
