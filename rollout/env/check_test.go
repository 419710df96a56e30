package env_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/wire"
)

// coin is an environment whose flaws a test chooses.
type coin struct {
	tasks   uint64
	reward  func(answer string) float32
	opening func() string
	refuse  bool
}

func (c *coin) Manifest() wire.EnvironmentManifest {
	return wire.EnvironmentManifest{
		Name: "coin", RewardMin: 0, RewardMax: 1, Splits: []wire.Split{{Name: "train", Tasks: c.tasks}},
	}
}

func (c *coin) Reset(_ context.Context, _ string, index uint64) (env.Episode, error) {
	if c.refuse && index >= c.tasks {
		return nil, errors.New("no such task")
	}
	return &toss{c}, nil
}

type toss struct{ *coin }

func (e *toss) Messages() []chat.Message {
	return []chat.Message{{Role: chat.User, Content: e.opening()}}
}
func (e *toss) Tools() []chat.Tool                                   { return nil }
func (e *toss) Call(context.Context, string, string) (string, error) { return "heads", nil }
func (e *toss) Score(_ context.Context, answer string) (env.Score, error) {
	return env.Score{Reward: e.reward(answer)}, nil
}
func (e *toss) Close() error { return nil }

func TestCheckFindsBrokenPromises(t *testing.T) {
	oracle := env.PlayerFunc(func(ctx context.Context, _ string, _ uint64, e env.Episode) (string, error) {
		return e.Call(ctx, "look", "")
	})
	null := env.PlayerFunc(func(context.Context, string, uint64, env.Episode) (string, error) { return "", nil })
	right := func(answer string) float32 {
		if answer == "heads" {
			return 1
		}
		return 0
	}
	same := func() string { return "heads or tails?" }
	count := 0
	for name, c := range map[string]struct {
		environment coin
		want        string
	}{
		"sound":                 {coin{3, right, same, true}, ""},
		"unbounded split":       {coin{3, right, same, false}, "one beyond the split's last"},
		"unsolvable":            {coin{3, func(string) float32 { return 0 }, same, true}, "the oracle's reward is 0, not 1"},
		"solved by nothing":     {coin{3, func(string) float32 { return 1 }, same, true}, "the null player gets the largest reward"},
		"reward out of range":   {coin{3, func(a string) float32 { return 3*right(a) - 2 }, same, true}, "outside [0, 1]"},
		"changes between plays": {coin{3, right, func() string { count++; return strings.Repeat("?", count) }, true}, "two executions differ"},
	} {
		err := env.Check(t.Context(), &c.environment, oracle, null, 5)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}
