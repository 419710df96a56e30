package env_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/wire"
)

// talker is an environment that answers calls as a test says.
type talker struct {
	determinism wire.Determinism
	reply       func(q env.Question, e *talk) (string, error)
	asked       int
}

func (*talker) split() wire.Split { return wire.Split{Name: "train", Tasks: 9} }

func (c *talker) Manifest() wire.EnvironmentManifest {
	return wire.EnvironmentManifest{
		Name: "talker", RewardMin: 0, RewardMax: 1, Splits: []wire.Split{c.split()}, Agents: []string{"solver", "critic"}, Determinism: c.determinism,
	}
}

func (c *talker) Reset(_ context.Context, _ string, index uint64) (env.Episode, error) {
	return &talk{talker: c, index: index}, nil
}

type talk struct {
	*talker
	index   uint64
	touched bool
}

func (e *talk) Messages() []chat.Message {
	return []chat.Message{{Role: chat.User, Content: fmt.Sprint(e.index)}}
}
func (e *talk) Tools() []chat.Tool                                   { return []chat.Tool{{Name: "look"}} }
func (e *talk) Call(context.Context, string, string) (string, error) { return "", nil }
func (e *talk) Close() error                                         { return nil }

func (e *talk) Score(context.Context, string) (env.Score, error) {
	if e.touched {
		return env.Score{}, nil
	}
	return env.Score{Reward: 1}, nil
}

func (e *talk) Solve(context.Context) (env.Solution, error) {
	return env.Solution{Answer: "1", Habits: []string{"lazy"}}, nil
}

func (e *talk) Reply(_ context.Context, q env.Question) (chat.Message, error) {
	e.asked++
	said, err := e.reply(q, e)
	return chat.Message{Role: chat.Assistant, Content: said}, err
}

func TestCheckReplies(t *testing.T) {
	count := 0
	sound := func(q env.Question, _ *talk) (string, error) { return q.Role + q.Habit + q.Messages[0].Content, nil }
	other := func(env.Question, *talk) (string, error) { count++; return fmt.Sprint(count), nil }
	for name, c := range map[string]struct {
		determinism wire.Determinism
		reply       func(env.Question, *talk) (string, error)
		answered    int
		want        string
	}{
		"sound": {wire.DeterminismExact, sound, 20, ""},
		"none":  {wire.DeterminismExact, func(env.Question, *talk) (string, error) { return "", env.ErrNoReplies }, 0, ""},
		"not in every role": {wire.DeterminismExact, func(q env.Question, e *talk) (string, error) {
			if q.Role == "critic" {
				return "", errors.New("who is that")
			}
			return sound(q, e)
		}, 2, "train task 0: the reply to a call as critic: who is that"},
		"not with the habit": {wire.DeterminismExact, func(q env.Question, e *talk) (string, error) {
			if q.Habit != "" {
				return "", errors.New("no such habit")
			}
			return sound(q, e)
		}, 1, `as solver, with habit "lazy": no such habit`},
		"another each time":      {wire.DeterminismExact, other, 1, "two executions differ"},
		"another, and says so":   {wire.DeterminismStochastic, other, 20, ""},
		"it changes the episode": {wire.DeterminismExact, func(q env.Question, e *talk) (string, error) { e.touched = true; return sound(q, e) }, 1, "it changes the task"},
		"it sees the tools":      {wire.DeterminismExact, func(q env.Question, _ *talk) (string, error) { return strings.Join(q.Tools, " "), nil }, 20, ""},
	} {
		answered, err := env.CheckReplies(t.Context(), &talker{determinism: c.determinism, reply: c.reply}, env.Oracle(), 100)
		if answered != c.answered || c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %d calls, %v; want %d, %q", name, answered, err, c.answered, c.want)
		}
	}
}
