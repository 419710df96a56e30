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
		"starts differently":    {coin{3, right, func() string { count++; return strings.Repeat("?", count) }, true}, "it starts differently each time"},
		"changes between plays": {coin{3, func(string) float32 { count++; return float32(count%2) / 2 }, same, true}, "two executions differ"},
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

// Of an environment that does not say how its tasks are solved, the rest is tested.
func TestCheckWithoutOracle(t *testing.T) {
	count := 0
	for want, c := range map[string]coin{
		"":                               {3, func(string) float32 { return 0.5 }, func() string { return "?" }, true},
		"the null player gets the large": {3, func(string) float32 { return 1 }, func() string { return "?" }, true},
		"it starts differently":          {3, func(string) float32 { return 0 }, func() string { count++; return strings.Repeat("?", count) }, true},
		"outside [0, 1]":                 {3, func(string) float32 { return -1 }, func() string { return "?" }, true},
		"one beyond the split's last":    {3, func(string) float32 { return 0 }, func() string { return "?" }, false},
	} {
		if err := env.Check(t.Context(), &c, nil, env.Null(), 5); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// lazy is a toss that has a wrong habit, which ends in an answer of the test's choice.
type lazy struct {
	*toss
	habit string
}

func (lazy) Solve(context.Context) (env.Solution, error) {
	return env.Solution{Calls: []chat.ToolCall{{Name: "look"}}, Answer: "heads", Habits: []string{"lazy"}}, nil
}

func (e lazy) SolveBy(_ context.Context, habit string) (env.Solution, error) {
	if habit != "lazy" || e.habit == "" {
		return env.Solution{}, errors.New("no such habit")
	}
	return env.Solution{Answer: e.habit}, nil
}

type lazyCoin struct {
	coin
	habit string
}

func (c *lazyCoin) Reset(ctx context.Context, split string, index uint64) (env.Episode, error) {
	e, err := c.coin.Reset(ctx, split, index)
	if err != nil {
		return nil, err
	}
	return lazy{e.(*toss), c.habit}, nil
}

func TestCheckPlaysHabits(t *testing.T) {
	for habit, want := range map[string]string{
		"tails": "", "heads": `the wrong habit "lazy" always gets the largest reward`, "edge": `habit "lazy": reward 7 is outside`, "": "no such habit",
	} {
		c := &lazyCoin{coin{3, func(answer string) float32 {
			return map[string]float32{"heads": 1, "edge": 7}[answer]
		}, func() string { return "?" }, true}, habit}
		err := env.Check(t.Context(), c, env.Oracle(), env.Null(), 5)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("habit %q: %v, want %q", habit, err, want)
		}
	}
}
