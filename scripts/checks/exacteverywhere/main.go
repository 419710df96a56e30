// Command exacteverywhere runs the same draws as any other build of it and prints the CIDs of their bundles. A script
// runs it on several architectures, kernels and thread counts: every line must be the same. The last group is sampled
// within grammars.
//
// It also runs the training forward pass over every recorded call and fails unless it gives the recorded log-probs to
// the bit.
package main

import (
	"context"
	"crypto/ed25519"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/policy/base"
	"github.com/lightswarm/lightswarm/policy/embedded"
	"github.com/lightswarm/lightswarm/policy/grammar"
	"github.com/lightswarm/lightswarm/policy/kernel"
	"github.com/lightswarm/lightswarm/policy/transformer"
	"github.com/lightswarm/lightswarm/rollout"
	"github.com/lightswarm/lightswarm/rollout/agent"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/calc"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

func main() {
	threads := flag.Int("threads", 1, "goroutines of a step")
	groups := flag.Int("groups", 2, "how many draws are recomputed")
	others := flag.Int("others", 0, "how many unrelated groups run on the engine meanwhile")
	cache := flag.Bool("cache", true, "keep the keys and values of ended calls")
	flag.Parse()
	runtime.GOMAXPROCS(max(*threads, runtime.GOMAXPROCS(0)))
	if err := run(context.Background(), *threads, *groups, *others, *cache); err != nil {
		fmt.Fprintln(os.Stderr, "exact-everywhere:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, threads, groups, others int, cache bool) error {
	snapshot, err := base.Load()
	if err != nil {
		return err
	}
	network, peer, err := found(snapshot)
	if err != nil {
		return err
	}
	options := embedded.Options{Threads: threads}
	if !cache {
		options.CacheBytes = -1
	}
	engine := embedded.New(options)
	defer engine.Close()
	if err := engine.Load(ctx, snapshot); err != nil {
		return err
	}
	session, err := engine.Open()
	if err != nil {
		return err
	}
	defer session.Close()
	p, err := rollout.NewPolicy(0, snapshot, session, bundle.EngineExact)
	if err != nil {
		return err
	}

	company, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	for i := range others {
		running.Go(func() {
			for counter := uint64(1000 * (i + 1)); company.Err() == nil; counter++ {
				if _, err := rollout.RunGroup(company, network, p, peer, counter); err != nil {
					return
				}
			}
		})
	}
	defer running.Wait()
	defer stop()

	var calls, tokens int
	for counter := range groups + 1 {
		if counter == groups {
			network = demanding(network)
		}
		b, err := rollout.RunGroup(ctx, network, p, peer, uint64(counter)) //nolint:gosec // small
		if err != nil {
			return err
		}
		encoded, err := bundle.Encode(b)
		if err != nil {
			return err
		}
		n, err := checkForward(snapshot, b, threads)
		if err != nil {
			return err
		}
		for _, r := range b.Rollouts {
			calls += len(r.Calls)
		}
		tokens += n
		fmt.Println(wire.SumCID(encoded))
	}
	fmt.Fprintf(os.Stderr, "%s/%s kernel %s threads %d others %d cache %v: %d calls, %d tokens equal the training forward pass\n",
		runtime.GOOS, runtime.GOARCH, kernel.Active(), threads, others, cache, calls, tokens)
	return nil
}

// found makes the same network on every machine.
func found(snapshot *policy.Snapshot) (*rollout.Network, wire.PeerID, error) {
	key := wire.NewKey(ed25519.NewKeyFromSeed([]byte("exact everywhere: the same peer ")))
	environment := calc.New()
	set, err := env.NewSet(environment)
	if err != nil {
		return nil, "", err
	}
	reference, err := env.Reference(environment)
	if err != nil {
		return nil, "", err
	}
	manifest, _, err := snapshot.Encode()
	if err != nil {
		return nil, "", err
	}
	charter, err := wire.SignCharter(key, wire.Charter{
		Name: "exact-everywhere", Created: time.UnixMilli(1_700_000_000_000), Nonce: make([]byte, 16),
		Learners: []wire.PeerID{key.Peer()}, Environments: []wire.EnvironmentRef{reference},
		Base: wire.PolicyRef{Digest: snapshot.Digest(), StateDigest: snapshot.State, Anchor: manifest},
		Rollout: wire.RolloutRules{
			GroupSize: 8, MaxCalls: 4, MaxCompletionTokens: 48, Sampling: wire.Sampling{Temperature: 1},
			MaxLag: 4, GroupsPerVersion: 8,
		},
		Evaluation: wire.EvaluationRules{Tasks: 256, BlockTasks: 32},
	})
	if err != nil {
		return nil, "", err
	}
	return &rollout.Network{ID: charter.ID, Charter: &charter.Charter, Environments: set}, key.Peer(), nil
}

// demanding is the network with agents that make demands. Their calls are long, so its groups are small.
func demanding(network *rollout.Network) *rollout.Network {
	d, charter := *network, *network.Charter
	charter.Rollout.GroupSize = 2
	d.Charter, d.Agent = &charter, demands{}
	return &d
}

// checkForward compares every recorded log-prob with the training forward pass and returns how many there are.
func checkForward(snapshot *policy.Snapshot, b *bundle.Bundle, workers int) (int, error) {
	config, err := transformer.ParseConfig(snapshot.ConfigJSON)
	if err != nil {
		return 0, err
	}
	parameters, err := transformer.FromTensors(config, snapshot.Tensors)
	if err != nil {
		return 0, err
	}
	grammars := grammar.NewCache(snapshot.Vocabulary(), 4)
	var batch []transformer.Sequence
	var recorded [][]float32
	for _, r := range b.Rollouts {
		for _, c := range r.Calls {
			s := transformer.Sequence{Tokens: append(append([]int32{}, c.Prompt...), c.Completion...)}
			for i := range c.Completion {
				s.Train = append(s.Train, int32(len(c.Prompt)+i)) //nolint:gosec // bounded by the context
			}
			if c.Grammar != "" {
				a, err := grammars.Parse(c.Grammar)
				if err != nil {
					return 0, err
				}
				m := a.NewMatcher(min(int(b.MaxCompletionTokens), config.Context-len(c.Prompt)))
				for _, token := range c.Completion {
					s.Allowed = append(s.Allowed, m.Allowed())
					m.Advance(token)
				}
			}
			batch, recorded = append(batch, s), append(recorded, c.LogProbs)
		}
	}
	if len(batch) == 0 {
		return 0, errors.New("the group has no calls")
	}
	trainer := transformer.NewTrainer(parameters, transformer.Options{Workers: workers})
	out, err := trainer.Forward(batch)
	if err != nil {
		return 0, err
	}
	n := 0
	for i, want := range recorded {
		for j := range want {
			if got := out.LogProbs[i][j]; math.Float32bits(got) != math.Float32bits(want[j]) {
				return 0, fmt.Errorf("call %d, token %d: decoding recorded %v, the training forward pass gives %v", i, j, want[j], got)
			}
			n++
		}
	}
	return n, nil
}

// demands is an agent that asks for forms that the policy has never learned to write.
type demands struct{}

// Run implements agent.Agent.
func (demands) Run(ctx context.Context, llm agent.LLM, e env.Episode) (agent.Result, error) {
	tool := e.Tools()[0]
	for _, d := range []grammar.Demand{
		{Object: true},
		{Schema: []byte(`{"type":"object","properties":{"steps":{"type":"array","items":{"enum":["add","multiply"]}},"answer":{"type":"number"}},"required":["steps","answer"]}`)},
		{Calls: 2, Tools: []grammar.Tool{{Name: tool.Name, Parameters: []byte(tool.Parameters), Strict: true}}},
	} {
		g, err := grammar.Compile(d)
		if err != nil {
			return agent.Result{}, err
		}
		_, err = llm.Complete(ctx, agent.Request{Agent: calc.New().Manifest().Agents[0], Messages: e.Messages(), Tools: e.Tools(), Grammar: g})
		if err != nil && !errors.Is(err, agent.ErrCut) {
			return agent.Result{}, err
		}
	}
	return agent.Result{End: agent.Answered}, nil
}
