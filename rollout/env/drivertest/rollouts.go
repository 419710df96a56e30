package drivertest

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/rollout"
	"github.com/lightswarm/lightswarm/rollout/agent"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

// HostileRollouts tests that an environment in which a tool does what it is named for costs its own rollouts alone: their
// outcome is env_error, and the others of the group, and later groups, are scored. Its tool echo does no harm, and it gives
// the answer's reward.
func HostileRollouts(t *testing.T, e env.Environment, harmful ...string) {
	for _, harm := range [][]string{harmful, nil} {
		a := &actor{acts: slices.Concat([]string{"echo"}, harm, []string{"echo"})}
		outcomes := make(map[bundle.OutcomeKind]int)
		for _, r := range PlayGroup(t, e, a, len(a.acts)) {
			outcomes[r.Outcome]++
		}
		if outcomes[bundle.OutcomeScored] != 2 || outcomes[bundle.OutcomeEnvError] != len(harm) {
			t.Errorf("after %v: outcomes %v", a.acts, outcomes)
		}
	}
}

// actor is an agent that asks no policy: its runs do one thing each, in turn.
type actor struct {
	acts []string
	runs atomic.Int32
}

func (a *actor) Run(ctx context.Context, _ agent.LLM, e env.Episode) (agent.Result, error) {
	act := a.acts[int(a.runs.Add(1)-1)%len(a.acts)]
	if _, err := e.Call(ctx, act, ""); err != nil {
		return agent.Result{}, &agent.EnvironmentError{Err: err}
	}
	return agent.Result{End: agent.Answered, Answer: `{"reward":1}`}, nil
}

// PlayGroup plays a group of rollouts in an environment with an agent that asks no policy.
func PlayGroup(t *testing.T, e env.Environment, a agent.Agent, size int) []bundle.Rollout {
	t.Helper()
	set, err := env.NewSet(e)
	if err != nil {
		t.Fatal(err)
	}
	reference, err := env.Reference(e)
	if err != nil {
		t.Fatal(err)
	}
	b, err := rollout.RunGroup(t.Context(), &rollout.Network{
		ID: wire.SumCID([]byte("network")),
		Charter: &wire.Charter{
			Environments: []wire.EnvironmentRef{reference},
			Rollout:      wire.RolloutRules{GroupSize: uint32(size), MaxCalls: 3, MaxCompletionTokens: 40, GroupsPerVersion: 5},
		},
		Environments: set,
		Agent:        a,
	}, &rollout.Policy{Session: idle{}, Engine: bundle.EngineExact}, wire.NewPeerID(make([]byte, 32)), 0)
	if err != nil {
		t.Fatal(err)
	}
	return b.Rollouts
}

// idle is a policy that nobody asks.
type idle struct{}

func (idle) Policy() policy.Digest { return policy.Digest{1} }
func (idle) Close()                {}
func (idle) Generate(context.Context, policy.Request) (policy.Completion, error) {
	return policy.Completion{}, errors.New("nobody should ask")
}
func (idle) Score(context.Context, []int32, int) ([]float32, error) {
	return nil, errors.New("nobody should ask")
}
