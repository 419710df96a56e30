package env

import (
	"context"
	"errors"
	"fmt"

	"github.com/lightswarm/lightswarm/policy/chat"
)

// Solver is an Episode that knows how its task is solved. Nothing but checks and the warm start of a policy ask for that:
// agents never get to see it.
type Solver interface {
	// Solve returns what reaches the largest reward. It changes nothing in the episode.
	Solve(ctx context.Context) (Solution, error)
}

// Habitual is a Solver that also knows of wrong habits: ways in which the task could be done that do not solve it. A policy
// that is shown a habit more often than the solution prefers it, which leaves reinforcement learning something to change.
type Habitual interface {
	Solver
	// SolveBy returns what an agent would do that has a habit, one of those that Solve names. It changes nothing in the
	// episode.
	SolveBy(ctx context.Context, habit string) (Solution, error)
}

// Replier is an Episode that knows how a policy should answer an agent's calls, whatever the agent is: for the warm start of a
// policy that is to be trained with an agent which has prompts, tools and roles of its own.
type Replier interface {
	// Reply returns what an ideal policy would answer to a call or, with a habit that Solve names, one with that habit.
	// It changes nothing in the episode. Of the message Content and ToolCalls count.
	Reply(ctx context.Context, q Question) (chat.Message, error)
}

// Question is a call of an agent, as its environment gets to know it.
type Question struct {
	// Role is the agent's role that calls.
	Role string
	// Messages is the conversation of the call, Tools the names of the tools that it offers.
	Messages []chat.Message
	Tools    []string
	// Habit is a wrong habit, empty for none.
	Habit string
}

// ErrNoReplies says that an episode is no Replier.
var ErrNoReplies = errors.New("the environment does not say how agents' calls are answered")

// Reply returns what an episode says to a call.
func Reply(ctx context.Context, e Episode, q Question) (chat.Message, error) {
	r, ok := e.(Replier)
	if !ok {
		return chat.Message{}, ErrNoReplies
	}
	return r.Reply(ctx, q)
}

// Limits on the habits that a solution names.
const (
	MaxHabits    = 8
	MaxHabitName = 64
)

// Solution is what an agent would do to solve a task, or would do with a wrong habit.
type Solution struct {
	// Calls are the tool calls, one after the other; their IDs are not used.
	Calls []chat.ToolCall
	// Answer is the final answer.
	Answer string
	// Habits are the names of the task's wrong habits. An episode whose solution has some is Habitual, or a Replier.
	Habits []string
	// Unsolved says that there is nothing but Habits: the episode is a Replier, and says what to do call by call.
	Unsolved bool
}

// ErrNoSolution says that an episode is no Solver, or that its solution is Unsolved.
var ErrNoSolution = errors.New("the environment does not say how its tasks are solved")

// Solve returns an episode's solution, or what it says of a habit if that is not empty.
func Solve(ctx context.Context, e Episode, habit string) (Solution, error) {
	if habit != "" {
		h, ok := e.(Habitual)
		if !ok {
			return Solution{}, fmt.Errorf("%w by habit %q", ErrNoSolution, habit)
		}
		return h.SolveBy(ctx, habit)
	}
	s, ok := e.(Solver)
	if !ok {
		return Solution{}, ErrNoSolution
	}
	return s.Solve(ctx)
}

// Oracle plays what the episode's own Solver says.
func Oracle() Player { return WithHabit("") }

// WithHabit plays what the episode says of a habit.
func WithHabit(habit string) Player {
	return PlayerFunc(func(ctx context.Context, _ string, _ uint64, e Episode) (string, error) {
		solution, err := Solve(ctx, e, habit)
		if err == nil && solution.Unsolved {
			err = fmt.Errorf("%w but for the calls of an agent program", ErrNoSolution)
		}
		if err != nil {
			return "", err
		}
		for _, call := range solution.Calls {
			if _, err := e.Call(ctx, call.Name, call.Arguments); err != nil {
				return "", err
			}
		}
		return solution.Answer, nil
	})
}

// Null answers nothing, without using a tool.
func Null() Player {
	return PlayerFunc(func(context.Context, string, uint64, Episode) (string, error) { return "", nil })
}
