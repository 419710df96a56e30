package agent_test

import (
	"context"
	"errors"
	"testing"

	"github.com/lightswarm/lightswarm/rollout/agent"
)

// turns is a policy whose calls end as the test says.
type turns chan chan error

func (c turns) Complete(context.Context, agent.Request) (agent.Reply, error) {
	end := make(chan error)
	c <- end
	return agent.Reply{}, <-end
}

func TestAnAgentThatGotOverARefusal(t *testing.T) {
	policy := make(turns)
	w := &agent.Watch{LLM: policy}
	var calls []chan error
	done := make(chan struct{})
	begin := func() {
		go func() {
			w.Complete(t.Context(), agent.Request{})
			done <- struct{}{}
		}()
		calls = append(calls, <-policy)
	}
	for i, step := range []struct {
		call int
		err  error
		want agent.End
	}{
		{1, agent.ErrNoRoom, agent.Cut},
		{0, nil, agent.Cut}, // it began before
		{2, errors.New("broken"), agent.Cut},
		{3, agent.ErrCut, 0},
		{4, agent.ErrExhausted, agent.Exhausted},
		{5, agent.ErrNoRoom, agent.Cut},
		{6, nil, 0},
	} {
		for len(calls) <= step.call {
			begin()
		}
		calls[step.call] <- step.err
		<-done
		if got := w.Refused(); got != step.want {
			t.Errorf("step %d: %v, want %v", i, got, step.want)
		}
		if began, ended := w.Begun(), w.Begun()-w.Running(); began != len(calls) || ended != i+1 {
			t.Errorf("step %d: %d calls began and %d ended, want %d and %d", i, began, ended, len(calls), i+1)
		}
	}
}
