package calc

import (
	"context"

	"github.com/lightswarm/lightswarm/rollout/env"
)

// Oracle solves every task: it runs the right expression and answers with the result.
func Oracle() env.Player {
	return env.PlayerFunc(func(ctx context.Context, split string, index uint64, e env.Episode) (string, error) {
		c := call(NewProblem(split, index).Expression)
		return e.Call(ctx, c.Name, c.Arguments)
	})
}

// Null answers nothing, without using the tool.
func Null() env.Player {
	return env.PlayerFunc(func(context.Context, string, uint64, env.Episode) (string, error) { return "", nil })
}
