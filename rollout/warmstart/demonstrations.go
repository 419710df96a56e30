package warmstart

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/policy/pretrain"
	"github.com/lightswarm/lightswarm/rollout/agent"
	"github.com/lightswarm/lightswarm/rollout/env"
)

// WrongPermille is how many of a thousand demonstrations show a wrong habit, where the environment names one.
const WrongPermille = 670

// source makes the demonstrations of one split.
type source struct {
	environment env.Environment
	split       string
	// purpose and seed name the sequence.
	purpose string
	seed    uint64
	// wrong is how many of a thousand show a wrong habit.
	wrong uint64
	// maxCalls is how many calls a rollout may have.
	maxCalls int
	// agent plays, if it is not nil, instead of the built-in one; teaches says whether the policy learns a role of it.
	agent   agent.Agent
	teaches func(role string) bool
	forms   *forms
	// timeout is how long a run of the agent may take, 0 for any time.
	timeout time.Duration
	// played, if it is not nil, is told of each demonstration of the first ones that has been played. It is called by one
	// goroutine at a time.
	played func(split string, done, of int)
}

// draw is what demonstration n shows, and the stream of what else there is to choose.
func (s source) draw(n uint64) (task uint64, wrong bool, choices *stream) {
	m := s.environment.Manifest()
	choices = newStream(m, s.purpose, s.seed, n)
	task = choices.next() % m.Tasks(s.split)
	return task, choices.below(1000) < s.wrong, choices
}

// all is the endless sequence, which plays each demonstration when it is its turn.
func (s source) all(ctx context.Context) iter.Seq2[pretrain.Demonstration, error] {
	return func(yield func(pretrain.Demonstration, error) bool) {
		for n := uint64(0); ; n++ {
			task, wrong, choices := s.draw(n)
			d, err := s.play(ctx, task, choosing(wrong, choices))
			if !yield(d, err) || err != nil {
				return
			}
		}
	}
}

// choosing is how a demonstration's habit is chosen, if a wrong one is wanted.
func choosing(wrong bool, choices *stream) func(habits []string) string {
	return func(habits []string) string {
		if !wrong || len(habits) == 0 {
			return ""
		}
		return habits[choices.below(uint64(len(habits)))]
	}
}

// few is an endless sequence over few tasks: those of the first demonstrations, all of them in order and then draws from
// them, or all tasks of a split that has no more. Whether a habit is shown is drawn each time, so that no task stands for
// either way. Tasks are played once, a number of them at a time, when the first demonstration is wanted.
func (s source) few(ctx context.Context, first, workers int) iter.Seq2[pretrain.Demonstration, error] {
	every := s.environment.Manifest().Tasks(s.split) <= uint64(first)
	play := sync.OnceValues(func() ([]ways, error) {
		if every {
			return s.playTasks(ctx, int(s.environment.Manifest().Tasks(s.split)), workers, s.everyWay)
		}
		return s.playTasks(ctx, first, workers, s.drawnWays)
	})
	return func(yield func(pretrain.Demonstration, error) bool) {
		played, err := play()
		if err != nil {
			yield(nil, err)
			return
		}
		for n := uint64(0); ; n++ {
			i, wrong, choices := s.draw(n)
			switch {
			case every:
			case n < uint64(first):
				i = n
			default:
				i = choices.below(uint64(first))
			}
			d := played[i].right
			if shown := played[i].wrong; wrong && len(shown) > 0 {
				d = shown[choices.below(uint64(len(shown)))]
			}
			if !yield(d, nil) {
				return
			}
		}
	}
}

// ways are what can be shown of one task; wrong is empty if nothing wrong ever is.
type ways struct {
	right pretrain.Demonstration
	wrong []pretrain.Demonstration
}

// drawnWays plays the task of demonstration n, by one of its habits too.
func (s source) drawnWays(ctx context.Context, n int) (w ways, err error) {
	task, _, choices := s.draw(uint64(n))
	named := false
	w.right, err = s.play(ctx, task, func(habits []string) string {
		named = len(habits) > 0
		return ""
	})
	if err == nil && s.wrong > 0 && named {
		w.wrong = make([]pretrain.Demonstration, 1)
		w.wrong[0], err = s.play(ctx, task, choosing(true, choices))
	}
	return w, err
}

// everyWay plays a task, and by each of its habits.
func (s source) everyWay(ctx context.Context, task int) (w ways, err error) {
	var habits []string
	w.right, err = s.play(ctx, uint64(task), func(names []string) string {
		habits = names
		return ""
	})
	for i := 0; err == nil && s.wrong > 0 && i < len(habits); i++ {
		var d pretrain.Demonstration
		d, err = s.play(ctx, uint64(task), func([]string) string { return habits[i] })
		w.wrong = append(w.wrong, d)
	}
	return w, err
}

// playTasks plays n tasks.
func (s source) playTasks(ctx context.Context, n, workers int, play func(context.Context, int) (ways, error)) ([]ways, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	played := make([]ways, n)
	var next atomic.Int64
	var telling sync.Mutex
	done := 0
	var playing sync.WaitGroup
	for range max(1, workers) {
		playing.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1) - 1)
				if i >= n {
					return
				}
				var err error
				if played[i], err = play(ctx, i); err != nil {
					cancel(err)
					return
				}
				telling.Lock()
				if done++; s.played != nil {
					s.played(s.split, done, n)
				}
				telling.Unlock()
			}
		})
	}
	playing.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return played, nil
}

// play makes the demonstration of a task: of the habit that is chosen among its own, of its solution if that is none.
func (s source) play(ctx context.Context, task uint64, choose func(habits []string) string) (d pretrain.Demonstration, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("demonstrate task %d of %s: %w", task, s.split, err)
		}
	}()
	episode, err := s.environment.Reset(ctx, s.split, task)
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, episode.Close()) }()
	solution, err := env.Solve(ctx, episode, "")
	if err != nil {
		return d, err
	}
	habit := choose(solution.Habits)
	if habit != "" {
		defer func() {
			if err != nil {
				err = fmt.Errorf("habit %q: %w", habit, err)
			}
		}()
	}
	if s.agent != nil {
		return s.record(ctx, episode, habit)
	}
	if solution.Unsolved {
		return d, ErrUnsolved
	}
	if habit != "" {
		if solution, err = env.Solve(ctx, episode, habit); err != nil {
			return d, err
		}
	}
	m := s.environment.Manifest()
	d, err = demonstrate(ctx, episode, m.Agents[0], solution, s.maxCalls)
	if err != nil || habit != "" {
		return d, err
	}
	score, err := episode.Score(ctx, solution.Answer)
	if err == nil && score.Reward != m.RewardMax {
		err = fmt.Errorf("the environment's own solution gets %v, and the largest reward is %v: see lightswarm env check", score.Reward, m.RewardMax)
	}
	return d, err
}

// ErrUnsolved says that an environment has solutions for agent programs alone.
var ErrUnsolved = errors.New("the environment says how an agent program's calls are answered, and nothing of the built-in agent's: name the program with --agent")

// ErrTooManyCalls says that a solution has more calls than rollouts allow, or that an agent makes more.
var ErrTooManyCalls = errors.New("the solution has more calls than a rollout may have")

// demonstrate plays a solution in an episode by the built-in agent, and returns the conversation.
func demonstrate(ctx context.Context, e env.Episode, role string, solution env.Solution, maxCalls int) (pretrain.Demonstration, error) {
	if n := len(solution.Calls) + 1; n > maxCalls {
		return nil, fmt.Errorf("%w: %d, and %d are allowed", ErrTooManyCalls, n, maxCalls)
	}
	s := script{solution: solution}
	result, err := agent.ToolLoop{Role: role}.Run(ctx, &s, e)
	if err != nil {
		return nil, err
	}
	answer := chat.Message{Role: chat.Assistant, Content: result.Answer}
	c := pretrain.Conversation{Role: role, Messages: append(slices.Clip(s.last.Messages), answer), Tools: s.last.Tools}
	for i := len(e.Messages()); i < len(c.Messages); i++ {
		if c.Messages[i].Role == chat.Assistant {
			c.Said = append(c.Said, i)
		}
	}
	return pretrain.Demonstration{c}, nil
}

// script is the agent.LLM that does what a solution says. Its calls begin one after the other.
type script struct {
	solution env.Solution
	calls    int
	last     agent.Request
}

// Complete implements agent.LLM. Calls get the ids that a policy's have.
func (s *script) Complete(_ context.Context, r agent.Request) (agent.Reply, error) {
	s.last = r
	reply := agent.Reply{Message: chat.Message{Role: chat.Assistant}, Call: s.calls}
	if s.calls < len(s.solution.Calls) {
		call := s.solution.Calls[s.calls]
		call.ID = "call_0"
		reply.Message.ToolCalls = []chat.ToolCall{call}
	} else {
		reply.Message.Content = s.solution.Answer
	}
	s.calls++
	return reply, nil
}
