package env

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/wire"
)

// repliesTasks is how many tasks of each split CheckReplies looks at, at most: each takes several executions.
const repliesTasks = 5

// CheckReplies tests what an environment that answers agents' calls (Replier) promises, on the first tasks of every split,
// with the call that an agent begins a task with, in each of the manifest's roles and with each habit that it names:
//
//   - if it answers one such call it answers all of them;
//   - where determinism is exact, it answers alike every time, and what comes after is as if it had not been asked.
//
// player plays the tasks: an oracle, or the null player of environments that do not say how their tasks are solved. It
// returns how many calls were answered, 0 if the environment answers none, and the first broken promise. Which tools the
// agent has of its own is not known here, so that a reply may call any.
func CheckReplies(ctx context.Context, e Environment, player Player, tasks uint64) (answered int, err error) {
	m := e.Manifest()
	for _, split := range m.Splits {
		for index := range min(tasks, split.Tasks, repliesTasks) {
			at := fmt.Sprintf("%s task %d", split.Name, index)
			plain, err := play(ctx, e, player, split.Name, index)
			if err != nil {
				return answered, fmt.Errorf("%s: %w", at, err)
			}
			for _, role := range m.Agents {
				for _, habit := range append([]string{""}, plain.habits...) {
					what := fmt.Sprintf("%s: the reply to a call as %s", at, role)
					if habit != "" {
						what += fmt.Sprintf(", with habit %q", habit)
					}
					said, after, err := playReply(ctx, e, player, split.Name, index, role, habit)
					if refused := (*noReply)(nil); errors.As(err, &refused) && answered == 0 {
						return 0, ctx.Err()
					}
					if err != nil {
						return answered, fmt.Errorf("%s: %w", what, err)
					}
					answered++
					if m.Determinism != wire.DeterminismExact {
						continue
					}
					if !reflect.DeepEqual(after.transcript, plain.transcript) {
						return answered, fmt.Errorf("%s: it changes the task: %q, and without it %q", what, after.transcript, plain.transcript)
					}
					again, _, err := playReply(ctx, e, player, split.Name, index, role, habit)
					if err != nil {
						return answered, fmt.Errorf("%s, again: %w", what, err)
					}
					if !reflect.DeepEqual(said, again) {
						return answered, fmt.Errorf("%s: two executions differ: %+v and %+v", what, said, again)
					}
				}
			}
		}
	}
	return answered, nil
}

// noReply is an error of Reply.
type noReply struct{ error }

func (e *noReply) Unwrap() error { return e.error }

// playReply asks for the reply to the first call of a task, and then plays it.
func playReply(ctx context.Context, e Environment, player Player, split string, index uint64, role, habit string) (said chat.Message, result played, err error) {
	asking := PlayerFunc(func(ctx context.Context, split string, index uint64, episode Episode) (string, error) {
		q := Question{Role: role, Messages: episode.Messages(), Habit: habit}
		for _, t := range episode.Tools() {
			q.Tools = append(q.Tools, t.Name)
		}
		var err error
		if said, err = Reply(ctx, episode, q); err != nil {
			return "", &noReply{err}
		}
		return player.Play(ctx, split, index, episode)
	})
	result, err = play(ctx, e, asking, split, index)
	return said, result, err
}
