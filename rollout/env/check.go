package env

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/wire"
)

// Player acts in an episode without a policy. An environment's author gives two of them, so that Check can tell
// whether its tasks can be solved and whether they have to be.
type Player interface {
	// Play uses the episode's tools and returns the final answer. The split and the index say which task it is,
	// so that an oracle can look the solution up.
	Play(ctx context.Context, split string, index uint64, e Episode) (answer string, err error)
}

// PlayerFunc is a function as a Player.
type PlayerFunc func(ctx context.Context, split string, index uint64, e Episode) (string, error)

// Play implements Player.
func (f PlayerFunc) Play(ctx context.Context, split string, index uint64, e Episode) (string, error) {
	return f(ctx, split, index, e)
}

// Check tests what an environment promises, on the first tasks of every split:
//
//   - a task starts alike every time;
//   - the oracle reaches the manifest's largest reward, every time;
//   - where determinism is exact, a task played twice gives the same messages, tools, tool results, answer and score;
//   - the null player's mean reward is below the largest;
//   - no wrong habit of the oracle's Solver gets the largest reward every time;
//   - no reward leaves the manifest's range;
//   - the index after a split's last is refused.
//
// It returns the first broken promise. oracle is nil for environments that do not say how their tasks are solved: what
// concerns solutions is not tested then.
func Check(ctx context.Context, e Environment, oracle, null Player, tasks uint64) error {
	m := e.Manifest()
	for _, split := range m.Splits {
		if _, err := e.Reset(ctx, split.Name, split.Tasks); err == nil {
			return fmt.Errorf("%s: task %d is accepted, one beyond the split's last", split.Name, split.Tasks)
		}
		n := min(tasks, split.Tasks)
		var nullSum float64
		habits := map[string]*habitPlays{}
		for index := range n {
			at := fmt.Sprintf("%s task %d", split.Name, index)
			player, name := oracle, "oracle"
			if player == nil {
				player, name = null, "null player"
			}
			first, err := play(ctx, e, player, split.Name, index)
			if err != nil {
				return fmt.Errorf("%s: %s: %w", at, name, err)
			}
			second, err := play(ctx, e, player, split.Name, index)
			if err != nil {
				return fmt.Errorf("%s: %s, again: %w", at, name, err)
			}
			if !slices.Equal(first.opening(), second.opening()) {
				return fmt.Errorf("%s: it starts differently each time: %q and %q", at, first.opening(), second.opening())
			}
			if m.Determinism != wire.DeterminismStochastic && !slices.Equal(first.transcript, second.transcript) {
				return fmt.Errorf("%s: two executions differ: %q and %q", at, first.transcript, second.transcript)
			}
			if oracle != nil && first.reward != m.RewardMax {
				return fmt.Errorf("%s: the oracle's reward is %v, not %v", at, first.reward, m.RewardMax)
			}
			for _, habit := range first.habits {
				p, err := play(ctx, e, WithHabit(habit), split.Name, index)
				if err != nil {
					return fmt.Errorf("%s: habit %q: %w", at, habit, err)
				}
				if !(p.reward >= m.RewardMin && p.reward <= m.RewardMax) {
					return fmt.Errorf("%s: habit %q: reward %v is outside [%v, %v]", at, habit, p.reward, m.RewardMin, m.RewardMax)
				}
				if habits[habit] == nil {
					habits[habit] = &habitPlays{}
				}
				habits[habit].add(p.reward == m.RewardMax)
			}
			nothing, err := play(ctx, e, null, split.Name, index)
			if err != nil {
				return fmt.Errorf("%s: null player: %w", at, err)
			}
			if !(nothing.reward >= m.RewardMin && nothing.reward <= m.RewardMax) {
				return fmt.Errorf("%s: reward %v is outside [%v, %v]", at, nothing.reward, m.RewardMin, m.RewardMax)
			}
			nullSum += float64(nothing.reward)
		}
		if n > 0 && nullSum/float64(n) >= float64(m.RewardMax) {
			return fmt.Errorf("%s: the null player gets the largest reward", split.Name)
		}
		for _, habit := range slices.Sorted(maps.Keys(habits)) {
			if h := habits[habit]; h.right == h.plays {
				return fmt.Errorf("%s: the wrong habit %q always gets the largest reward", split.Name, habit)
			}
		}
	}
	return nil
}

// habitPlays counts how often a habit was played, and how often it was right all the same.
type habitPlays struct{ plays, right int }

func (h *habitPlays) add(right bool) {
	h.plays++
	if right {
		h.right++
	}
}

// played is one execution: everything that the player saw and did, and the reward.
type played struct {
	transcript []string
	habits     []string // what the oracle's solution names
	reward     float32
}

// opening is what the execution started from: messages and tools.
func (p *played) opening() []string { return p.transcript[:2] }

func play(ctx context.Context, e Environment, p Player, split string, index uint64) (result played, err error) {
	episode, err := e.Reset(ctx, split, index)
	if err != nil {
		return played{}, err
	}
	defer func() { err = errors.Join(err, episode.Close()) }()
	w := &witness{Episode: episode}
	w.note("messages %+v", episode.Messages())
	w.note("tools %+v", episode.Tools())
	answer, err := p.Play(ctx, split, index, w)
	if err != nil {
		return played{}, err
	}
	score, err := episode.Score(ctx, answer)
	if err != nil {
		return played{}, err
	}
	w.note("answer %q score %+v", answer, score)
	return played{transcript: w.transcript, habits: w.habits, reward: score.Reward}, nil
}

// witness writes down an episode's tool calls.
type witness struct {
	Episode
	transcript []string
	habits     []string
}

func (w *witness) Call(ctx context.Context, name, arguments string) (string, error) {
	result, err := w.Episode.Call(ctx, name, arguments)
	w.note("call %s %q: %q %v", name, arguments, result, err)
	return result, err
}

// Solve implements Solver for an episode that does.
func (w *witness) Solve(ctx context.Context) (Solution, error) {
	s, err := Solve(ctx, w.Episode, "")
	w.habits = s.Habits
	return s, err
}

// SolveBy implements Habitual for an episode that does.
func (w *witness) SolveBy(ctx context.Context, habit string) (Solution, error) {
	return Solve(ctx, w.Episode, habit)
}

// Reply implements Replier for an episode that does.
func (w *witness) Reply(ctx context.Context, q Question) (chat.Message, error) {
	return Reply(ctx, w.Episode, q)
}

func (w *witness) note(format string, args ...any) {
	w.transcript = append(w.transcript, fmt.Sprintf(format, args...))
}
