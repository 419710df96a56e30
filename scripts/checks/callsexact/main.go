// Command callsexact checks that what agents see through the gateway is what is recorded, and that no call is lost or
// doubled, over many rollouts of agents that crash, hang, retry, stream and disconnect at random.
//
// Real are the gateway and its listener on loopback, the recorder and everything else that rollout.RunGroup does, the
// tokenizer and the chat template of the built-in policy, and the bundles, which are encoded and decoded again before they
// are compared. In place of a transformer there is a script (see engine) that writes, for each sample key, always the same
// completion: an engine in miniature whose answers come at once, late or never, and of which it is known what it answered.
// What agents do and what the script writes follows from the seed. How their calls fall together in time does not.
package main

import (
	"context"
	"crypto/ed25519"
	"errors"
	"flag"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/lightswarm/lightswarm/policy/base"
	"github.com/lightswarm/lightswarm/rollout"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/calc"
	"github.com/lightswarm/lightswarm/rollout/gateway"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

const (
	groupSize = 10
	// maxCalls and maxTokens are the network's limits, contextTokens the policy's.
	maxCalls, maxTokens, contextTokens = 12, 72, 1600
	// inFlight is how many groups run at once, each one rollout after the other.
	inFlight = 16
	// patience bounds the whole check, and rolloutTime a rollout of a group that is given little time.
	patience, rolloutTime = 10 * time.Minute, 150 * time.Millisecond
)

func main() {
	quick := flag.Bool("quick", false, "run 500 rollouts")
	rollouts := flag.Int("rollouts", 10000, "how many rollouts to run")
	seed := flag.Uint64("seed", 1, "what everything random follows from")
	flag.Parse()
	if *quick {
		*rollouts = 500
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), patience, fmt.Errorf("it took longer than %s", patience))
	defer cancel()
	if err := run(ctx, *seed, (*rollouts+groupSize-1)/groupSize); err != nil {
		fmt.Fprintln(os.Stderr, "calls-exact:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, seed uint64, groups int) (err error) {
	began := time.Now()
	c, err := newCheck(seed)
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		err = errors.Join(err, c.gateway.Close(closing))
	}()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	counters := make(chan uint64, groups)
	for i := range groups {
		counters <- uint64(i)
	}
	close(counters)
	var running sync.WaitGroup
	for range inFlight {
		running.Go(func() {
			for counter := range counters {
				if err := c.group(ctx, counter); err != nil {
					cancel(fmt.Errorf("group %d of seed %d: %w", counter, seed, err))
					return
				}
			}
		})
	}
	running.Wait()
	c.figures.print(time.Since(began))
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return c.figures.verdict()
}

// check is what all groups share.
type check struct {
	seed    uint64
	peer    wire.PeerID
	network rollout.Network
	policy  *rollout.Policy
	engine  *engine
	gateway *gateway.Gateway
	figures figures
}

func newCheck(seed uint64) (*check, error) {
	snapshot, err := base.Load()
	if err != nil {
		return nil, err
	}
	reference, err := env.Reference(calc.New())
	if err != nil {
		return nil, err
	}
	set, err := env.NewSet(calc.New())
	if err != nil {
		return nil, err
	}
	c := &check{
		seed: seed,
		peer: wire.NewKey(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))).Peer(),
		network: rollout.Network{
			ID: wire.SumCID(fmt.Appendf(nil, "calls-exact %d", seed)), Environments: set, MaxConcurrent: 1,
			Charter: &wire.Charter{
				Environments: []wire.EnvironmentRef{reference},
				Rollout: wire.RolloutRules{
					GroupSize: groupSize, MaxCalls: maxCalls, MaxCompletionTokens: maxTokens, Sampling: wire.Sampling{Temperature: 1},
				},
			},
		},
	}
	c.engine = newEngine(snapshot)
	if c.policy, err = rollout.NewPolicy(0, snapshot, c.engine, bundle.EngineExact); err != nil {
		return nil, err
	}
	c.engine.template, c.policy.Context = c.policy.Template, contextTokens
	// A stream's comments come often enough for some to be seen.
	c.gateway, err = gateway.Serve(gateway.Options{Keepalive: 2 * time.Millisecond})
	return c, err
}

// group runs the group of a counter and compares its bundle with what its agents saw.
func (c *check) group(ctx context.Context, counter uint64) error {
	g := newGroup(c, counter)
	c.engine.expect(g)
	defer c.engine.forget(g)
	network := c.network
	network.Agent = g
	if g.kind == short {
		network.Timeout = rolloutTime
	}
	recorded, err := rollout.RunGroup(ctx, &network, c.policy, c.peer, counter)
	if err != nil {
		return err
	}
	body, err := bundle.Encode(recorded)
	if err != nil {
		return fmt.Errorf("encode the bundle: %w", err)
	}
	decoded, err := bundle.Decode(body, bundle.Limits{})
	if err != nil {
		return fmt.Errorf("decode the bundle: %w", err)
	}
	for i := range decoded.Rollouts {
		f, err := g.members[i].compare(&decoded.Rollouts[i])
		c.figures.add(f, err)
		if err != nil {
			return fmt.Errorf("member %d: %w", i, err)
		}
	}
	return nil
}
