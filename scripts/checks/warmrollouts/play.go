package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/rollout/agent"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/gateway"
	"github.com/lightswarm/lightswarm/rollout/process"
)

// The task of every rollout, what the policy calls for it, and the right answer.
const (
	task, call, solution = "Eve has 83 cups, sells 14 and buys 23. How many now?", `{"expression":"83-14+23"}`, "92"
)

// patience bounds a rollout, and the import of modules, on a machine that does much else.
const patience = 2 * time.Minute

// atOnce is a policy that answers at once: it calls the calculator, then says what that has said.
type atOnce struct{ calls atomic.Int32 }

// Complete implements agent.LLM.
func (a *atOnce) Complete(_ context.Context, r agent.Request) (agent.Reply, error) {
	m := chat.Message{Role: chat.Assistant}
	if last := r.Messages[len(r.Messages)-1]; last.Role == chat.ToolRole {
		m.Content = last.Content
	} else {
		m.ToolCalls = []chat.ToolCall{{Name: "calculator", Arguments: call}}
	}
	m.Tokens = []int32{1}
	return agent.Reply{
		Message: m, Call: int(a.calls.Add(1) - 1), Prompt: []int32{1}, LogProbs: []float32{-1}, Pieces: []string{m.Content},
	}, nil
}

// episode is an episode with one task.
type episode string

// Messages implements env.Episode.
func (e episode) Messages() []chat.Message {
	return []chat.Message{{Role: chat.User, Content: string(e)}}
}

// Tools implements env.Episode.
func (episode) Tools() []chat.Tool { return nil }

// Call implements env.Episode.
func (episode) Call(context.Context, string, string) (string, error) {
	return "", errors.New("the agent has its own tools")
}

// Score implements env.Episode.
func (episode) Score(context.Context, string) (env.Score, error) { return env.Score{}, nil }

// Close implements env.Episode.
func (episode) Close() error { return nil }

// withAgent gives f an agent that is ready, and closes it.
func withAgent(ctx context.Context, command process.Command, f func(*process.Agent) error) (err error) {
	g, err := gateway.Serve(gateway.Options{})
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		err = errors.Join(err, g.Close(closing))
	}()
	a, err := process.New(process.Options{Gateway: g, Command: command, Roles: []string{"solver"}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := a.Ready(ctx); err != nil {
		return err
	}
	return f(a)
}

// solve plays one rollout of an agent of examples/calculator.
func solve(ctx context.Context, a *process.Agent) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	policy := &atOnce{}
	result, err := a.Run(ctx, policy, episode(task))
	switch calls := policy.calls.Load(); {
	case err != nil:
		return err
	case result.End != agent.Answered || strings.TrimSpace(result.Answer) != solution || calls != 2:
		return fmt.Errorf("the rollout ended with %q after %d calls, want %q after 2", result.Answer, calls, solution)
	}
	return nil
}

// rate is how many rollouts a second an agent plays, several at once: those that ended within d, at least atLeast.
func rate(ctx context.Context, a *process.Agent, d time.Duration, atLeast int) (float64, error) {
	if err := solve(ctx, a); err != nil { // whatever the first one alone has to do
		return 0, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	began := time.Now()
	var ended atomic.Int32
	var running sync.WaitGroup
	for range inFlight {
		running.Go(func() {
			for ctx.Err() == nil && (time.Since(began) < d || int(ended.Load()) < atLeast) {
				if err := solve(ctx, a); err != nil {
					cancel(err)
					return
				}
				ended.Add(1)
			}
		})
	}
	running.Wait()
	return float64(ended.Load()) / time.Since(began).Seconds(), context.Cause(ctx)
}
