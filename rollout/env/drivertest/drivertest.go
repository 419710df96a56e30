// Package drivertest is the test that what every driver makes must pass.
package drivertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/wire"
)

// Subject is an environment under test.
type Subject struct {
	env.Environment
	// Oracle solves every task, Null none.
	Oracle, Null env.Player
	// Tasks is how many tasks of each split are played.
	Tasks uint64
	// Replies says that the environment answers the calls of an agent that has the episode's own tools.
	Replies bool
}

// Test tests the promises of package env: those that env.Check finds broken, and what rollouts rely on besides.
func Test(t *testing.T, s Subject) {
	t.Run("Check", func(t *testing.T) {
		if err := env.Check(t.Context(), s.Environment, s.Oracle, s.Null, s.Tasks); err != nil {
			t.Error(err)
		}
	})
	t.Run("UnknownTasks", s.unknownTasks)
	t.Run("EpisodesAreIndependent", s.independent)
	t.Run("ContextsEnd", s.contexts)
	t.Run("CloseAtAnyTime", s.closing)
	if s.Replies {
		t.Run("Replies", s.replies)
	}
}

// replies: whoever does what the environment says to each call of a loop over its tools solves its tasks.
func (s Subject) replies(t *testing.T) {
	const most = 32 // calls
	m := s.Manifest()
	for index := range min(s.Tasks, s.split().Tasks) {
		e, err := s.Reset(t.Context(), s.split().Name, index)
		if err != nil {
			t.Fatal(err)
		}
		q := env.Question{Role: m.Agents[0], Messages: slices.Clone(e.Messages())}
		for _, tool := range e.Tools() {
			q.Tools = append(q.Tools, tool.Name)
		}
		for range most {
			said, err := env.Reply(t.Context(), e, q)
			if err != nil {
				t.Fatal(err)
			}
			q.Messages = append(q.Messages, said)
			if len(said.ToolCalls) == 0 {
				break
			}
			for _, call := range said.ToolCalls {
				result, err := e.Call(t.Context(), call.Name, call.Arguments)
				if err != nil {
					t.Fatal(err)
				}
				q.Messages = append(q.Messages, chat.Message{Role: chat.ToolRole, Content: result, ToolCallID: call.ID})
			}
		}
		score, err := e.Score(t.Context(), q.Messages[len(q.Messages)-1].Content)
		if err != nil || score.Reward != m.RewardMax {
			t.Errorf("task %d: reward %v, %v, after %+v", index, score.Reward, err, q.Messages)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

func (s Subject) split() wire.Split { return s.Manifest().Splits[0] }

// unknownTasks: what the manifest does not have is refused, and costs nothing.
func (s Subject) unknownTasks(t *testing.T) {
	for _, split := range s.Manifest().Splits {
		for _, index := range []uint64{split.Tasks, split.Tasks + 1, 1<<64 - 1} {
			if e, err := s.Reset(t.Context(), split.Name, index); err == nil {
				t.Errorf("task %d of %q, which has %d, is accepted", index, split.Name, split.Tasks)
				e.Close()
			}
		}
	}
	if e, err := s.Reset(t.Context(), "no such split", 0); err == nil {
		t.Error("an unknown split is accepted")
		e.Close()
	}
}

// independent: episodes that run at once do not see one another, whatever the order of what they do.
func (s Subject) independent(t *testing.T) {
	split := s.split()
	n := min(8, s.Tasks, split.Tasks)
	alone := make([]string, n)
	for i := range n {
		var err error
		if alone[i], err = s.transcript(t.Context(), split.Name, i); err != nil {
			t.Fatal(err)
		}
	}
	together := make([]string, 2*n)
	errs := make([]error, 2*n)
	var playing sync.WaitGroup
	for i := range 2 * n {
		playing.Go(func() { together[i], errs[i] = s.transcript(t.Context(), split.Name, i%n) })
	}
	playing.Wait()
	for i := range 2 * n {
		switch {
		case errs[i] != nil:
			t.Errorf("task %d, with others: %v", i%n, errs[i])
		case s.Manifest().Determinism == wire.DeterminismExact && together[i] != alone[i%n]:
			t.Errorf("task %d: alone %q, with others %q", i%n, alone[i%n], together[i])
		}
	}
}

// transcript is what the oracle sees and gets.
func (s Subject) transcript(ctx context.Context, split string, index uint64) (text string, err error) {
	e, err := s.Reset(ctx, split, index)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	answer, err := s.Oracle.Play(ctx, split, index, e)
	if err != nil {
		return "", err
	}
	score, err := e.Score(ctx, answer)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%+v %+v %q %+v", e.Messages(), e.Tools(), answer, score), nil
}

// contexts: what is asked for under a context that has ended may work or fail with its error, and harms nothing.
func (s Subject) contexts(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if e, err := s.Reset(ended, s.split().Name, 0); err == nil {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	} else if !errors.Is(err, context.Canceled) {
		t.Errorf("Reset under an ended context: %v", err)
	}
	e, err := s.Reset(t.Context(), s.split().Name, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Score(ended, ""); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("Score under an ended context: %v", err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if _, err := s.transcript(t.Context(), s.split().Name, 0); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// closing: an episode may be closed before anything else was done with it, any number of them, in any order; and its
// opening stays as it was.
func (s Subject) closing(t *testing.T) {
	var episodes []env.Episode
	for range 4 {
		e, err := s.Reset(t.Context(), s.split().Name, 0)
		if err != nil {
			t.Fatal(err)
		}
		episodes = append(episodes, e)
	}
	slices.Reverse(episodes)
	before := fmt.Sprint(episodes[0].Messages(), episodes[0].Tools())
	for i, e := range episodes {
		if i == 2 {
			if _, err := e.Score(t.Context(), ""); err != nil {
				t.Error(err)
			}
		}
		if after := fmt.Sprint(e.Messages(), e.Tools()); after != before {
			t.Errorf("episodes of one task start from %q and %q", before, after)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}
