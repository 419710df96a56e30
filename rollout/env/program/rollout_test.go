package program_test

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
	"github.com/lightswarm/lightswarm/rollout/env/program"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

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

// A hostile environment costs its own rollouts alone: their outcome is env_error, and the others of the group, and later
// groups, are played.
func TestHostileRolloutsAreEnvErrors(t *testing.T) {
	e := program.OpenHostile(t)
	set, err := env.NewSet(e)
	if err != nil {
		t.Fatal(err)
	}
	reference, err := env.Reference(e)
	if err != nil {
		t.Fatal(err)
	}
	a := &actor{acts: []string{"echo", "fork", "memory", "output", "exit", "echo"}}
	n := &rollout.Network{
		ID: wire.SumCID([]byte("network")),
		Charter: &wire.Charter{
			Environments: []wire.EnvironmentRef{reference},
			Rollout:      wire.RolloutRules{GroupSize: uint32(len(a.acts)), MaxCalls: 3, MaxCompletionTokens: 40, GroupsPerVersion: 5},
		},
		Environments: set,
		Agent:        a,
	}
	p := &rollout.Policy{Session: idle{}, Engine: bundle.EngineExact}
	peer := testPeer()
	for counter, want := range [][]bundle.OutcomeKind{
		{bundle.OutcomeScored, bundle.OutcomeScored, bundle.OutcomeEnvError, bundle.OutcomeEnvError, bundle.OutcomeEnvError, bundle.OutcomeEnvError},
		slices.Repeat([]bundle.OutcomeKind{bundle.OutcomeScored}, len(a.acts)),
	} {
		b, err := rollout.RunGroup(t.Context(), n, p, peer, uint64(counter))
		if err != nil {
			t.Fatal(err)
		}
		var got []bundle.OutcomeKind
		for _, r := range b.Rollouts {
			got = append(got, r.Outcome)
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("group %d: %v, want %v", counter, got, want)
		}
		n.Agent = &actor{acts: []string{"echo"}}
	}
}

func testPeer() wire.PeerID {
	return wire.NewPeerID(make([]byte, 32))
}
