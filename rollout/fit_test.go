package rollout

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/rollout/agent"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

// verbose is an agent whose rollouts make calls with prompts of so many random ids, each rollout in its turn.
type verbose struct {
	prompts []int
	next    int
}

func (v *verbose) Run(ctx context.Context, llm agent.LLM, _ env.Episode) (agent.Result, error) {
	tokens := v.prompts[v.next]
	random := rand.New(rand.NewPCG(1, uint64(v.next)))
	v.next++
	for range 8 {
		prompt := make([]int32, tokens)
		for i := range prompt {
			prompt[i] = random.Int32N(256)
		}
		if _, err := llm.Complete(ctx, agent.Request{Agent: "solver", Prompt: prompt}); err != nil {
			return agent.Result{}, err
		}
	}
	return agent.Result{End: agent.Answered, Answer: "0"}, nil
}

// Agents that say more than a bundle holds cost a node their rollouts, and neither the others' nor its work.
func TestGroupsFitTheirBundles(t *testing.T) {
	const all = wire.MaxTokensPerCall
	run := func(prompts ...int) (*bundle.Bundle, error) {
		n := calcNetwork(t)
		n.Charter.Rollout.GroupSize, n.Charter.Rollout.MaxCalls, n.MaxConcurrent = uint32(len(prompts)), 8, 1
		n.Agent = &verbose{prompts: prompts}
		s := &fakeSession{behave: func(policy.Request) (chat.Message, error) { return text("yes"), nil }}
		return RunGroup(t.Context(), n, testPolicy(0, s), testPeer(), 0)
	}
	small, err := run(10, 10, 10, 10, 10, 10)
	if err != nil {
		t.Fatal(err)
	}
	b, err := run(10, all, 10, all, all-1, all)
	if err != nil {
		t.Fatal(err)
	}
	body, err := bundle.Encode(b)
	if err != nil {
		t.Fatal(err)
	}
	if len(body) < wire.MaxBundleBytes/2 {
		t.Errorf("the bundle has %d bytes; more would have fitted", len(body))
	}
	dropped := 0
	for i, r := range b.Rollouts {
		switch {
		case r.Outcome == bundle.OutcomeAgentError:
			dropped++
			want := bundle.Rollout{Member: uint32(i), Task: r.Task, Outcome: bundle.OutcomeAgentError}
			if diff := cmp.Diff(want, r); diff != "" {
				t.Error(diff)
			}
		case len(r.Calls) != 8:
			t.Errorf("rollout %d has %d calls", i, len(r.Calls))
		}
	}
	if dropped != 1 || b.Rollouts[1].Outcome != bundle.OutcomeAgentError {
		t.Errorf("%d rollouts are dropped, the first of the largest: %s", dropped, b.Rollouts[1].Outcome)
	}
	if diff := cmp.Diff(small.Rollouts[0], b.Rollouts[0]); diff != "" {
		t.Errorf("a small rollout is another one: %s", diff)
	}
}

// Grammars take room too, where there is hardly a token.
func TestGrammarsFitTheirBundles(t *testing.T) {
	n := calcNetwork(t)
	n.Charter.Rollout.GroupSize, n.Charter.Rollout.MaxCalls, n.MaxConcurrent = 4, 8, 1
	n.Agent = &verbose{prompts: []int{40, 40, 10, 40}}
	s := &fakeSession{behave: func(policy.Request) (chat.Message, error) { return text("yes"), nil }}
	b, err := RunGroup(t.Context(), n, testPolicy(0, s), testPeer(), 0)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 1))
	call := b.Rollouts[2].Calls[0]
	b.Rollouts[2].Calls = nil
	for range wire.MaxCallsPerRollout {
		var g [wire.MaxGrammarBytes]byte
		for i := range g {
			g[i] = byte(random.IntN(256))
		}
		call.Grammar = string(g[:])
		b.Rollouts[2].Calls = append(b.Rollouts[2].Calls, call)
	}
	if _, err := bundle.Encode(b); !errors.Is(err, wire.ErrTooLarge) {
		t.Fatalf("the bundle is not too large: %v", err)
	}
	n.fit(b)
	if _, err := bundle.Encode(b); err != nil {
		t.Error(err)
	}
	for i, r := range b.Rollouts {
		if dropped := r.Outcome == bundle.OutcomeAgentError; dropped != (i == 2) {
			t.Errorf("rollout %d is dropped: %v", i, dropped)
		}
	}
}

// So does what agents ask of sampling.
func TestWhatIsAskedFitsItsBundle(t *testing.T) {
	n := calcNetwork(t)
	b, err := RunGroup(t.Context(), n, testPolicy(0, &fakeSession{}), testPeer(), 0)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(2, 2))
	call, task := b.Rollouts[0].Calls[0], b.Rollouts[0].Task
	// There is hardly a token, so that nothing but what is asked shows that it is much.
	call.Prompt, call.Completion, call.LogProbs = call.Prompt[:1], call.Completion[:1], call.LogProbs[:1]
	b.Rollouts = nil
	const members = 40 // hardly more than fit: each that is dropped costs another encoding
	for i := range uint32(members) {
		r := bundle.Rollout{Member: i, Task: task, Outcome: bundle.OutcomeScored}
		for range wire.MaxCallsPerRollout {
			asked := make([]byte, wire.MaxAskedBytes)
			for k := range asked {
				asked[k] = byte('!' + random.IntN('~'-'!'))
			}
			call.Asked = string(asked)
			r.Calls = append(r.Calls, call)
		}
		b.Rollouts = append(b.Rollouts, r)
	}
	if _, err := bundle.Encode(b); !errors.Is(err, wire.ErrTooLarge) {
		t.Fatalf("the bundle is not too large: %v", err)
	}
	n.fit(b)
	if _, err := bundle.Encode(b); err != nil {
		t.Error(err)
	}
	if b.Rollouts[members-1].Outcome != bundle.OutcomeScored {
		t.Error("the last rollout is dropped as well")
	}
}
