package env

import (
	"context"
	"errors"

	"github.com/lightswarm/lightswarm/policy/chat"
)

// Solver is an Episode that knows how its task is solved. Nothing but checks asks for that: agents never get to see it.
type Solver interface {
	// Solve returns what reaches the largest reward.
	Solve(ctx context.Context) (Solution, error)
}

// Solution is what an agent would do to solve a task.
type Solution struct {
	// Calls are the tool calls, in order; their IDs are not used.
	Calls []chat.ToolCall
	// Answer is the final answer.
	Answer string
}

// ErrNoSolution says that an episode is no Solver.
var ErrNoSolution = errors.New("the environment does not say how its tasks are solved")

// Oracle plays what the episode's own Solver says.
func Oracle() Player {
	return PlayerFunc(func(ctx context.Context, _ string, _ uint64, e Episode) (string, error) {
		s, ok := e.(Solver)
		if !ok {
			return "", ErrNoSolution
		}
		solution, err := s.Solve(ctx)
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
