// Command recordbundles records training groups while the base policy learns environment calc, for tests of the bundle
// codec and for its dictionary. Run it in the repository's root; it replaces wire/bundle/testdata/training and
// wire/bundle/testdata/recorded, whose groups differ in their draws:
//
//	go run ./scripts/recordbundles
//
// It is deterministic. Learning is plain policy gradient on whole groups: the recordings need policies between
// untrained and trained, not a learner.
package main

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/policy/base"
	"github.com/lightswarm/lightswarm/policy/embedded"
	"github.com/lightswarm/lightswarm/policy/transformer"
	"github.com/lightswarm/lightswarm/rollout"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/calc"
	"github.com/lightswarm/lightswarm/rollout/warmstart"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

const (
	steps     = 33
	every     = 4 // steps between recordings
	groups    = 32
	groupSize = 8
)

// folders say how many of a recorded step's groups go where.
var folders = []struct {
	path   string
	groups int
}{
	{"wire/bundle/testdata/training", 24},
	{"wire/bundle/testdata/recorded", 6},
}

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "recordbundles:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	for _, f := range folders {
		if err := os.RemoveAll(f.path); err != nil {
			return err
		}
		if err := os.MkdirAll(f.path, 0o755); err != nil {
			return err
		}
	}
	snapshot, err := base.Load()
	if err != nil {
		return err
	}
	config, err := transformer.ParseConfig(snapshot.ConfigJSON)
	if err != nil {
		return err
	}
	weights, err := transformer.FromTensors(config, snapshot.Tensors)
	if err != nil {
		return err
	}
	network, err := calcNetwork()
	if err != nil {
		return err
	}
	trainer := transformer.NewTrainer(weights, transformer.Options{Workers: runtime.GOMAXPROCS(0)})
	engine := embedded.New(embedded.Options{Slots: groups * groupSize})
	defer engine.Close()
	for version := range uint64(steps) {
		bundles, err := sample(ctx, engine, network, version, snapshot)
		if err != nil {
			return err
		}
		if version%every == 0 {
			if err := record(bundles); err != nil {
				return err
			}
		}
		if err := learn(trainer, bundles); err != nil {
			return err
		}
		if snapshot, err = snapshot.WithTensors(trainer.Released()); err != nil {
			return err
		}
	}
	return nil
}

// calcNetwork is a network of environment calc.
func calcNetwork() (*rollout.Network, error) {
	set, err := env.NewSet(calc.New())
	if err != nil {
		return nil, err
	}
	reference, err := env.Reference(calc.New())
	if err != nil {
		return nil, err
	}
	rules := warmstart.Rules()
	rules.GroupSize = groupSize
	return &rollout.Network{
		ID:           wire.SumCID([]byte("recorded bundles")),
		Environments: set,
		Charter:      &wire.Charter{Environments: []wire.EnvironmentRef{reference}, Rollout: rules},
	}, nil
}

// sample runs a version's groups, all at once.
func sample(ctx context.Context, engine *embedded.Engine, n *rollout.Network, version uint64, s *policy.Snapshot) ([]*bundle.Bundle, error) {
	if err := engine.Load(ctx, s); err != nil {
		return nil, err
	}
	session, err := engine.Open()
	if err != nil {
		return nil, err
	}
	defer session.Close()
	p, err := rollout.NewPolicy(version, s, session, bundle.EngineExact)
	if err != nil {
		return nil, err
	}
	peer := wire.NewKey(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))).Peer()
	bundles, errs := make([]*bundle.Bundle, groups), make([]error, groups)
	var running sync.WaitGroup
	for i := range bundles {
		running.Go(func() {
			bundles[i], errs[i] = rollout.RunGroup(ctx, n, p, peer, version*groups+uint64(i))
		})
	}
	running.Wait()
	return bundles, errors.Join(errs...)
}

// record writes a step's first groups to the folders.
func record(bundles []*bundle.Bundle) error {
	next := 0
	for _, f := range folders {
		for range f.groups {
			b := bundles[next]
			next++
			data, err := bundle.Encode(b)
			if err != nil {
				return err
			}
			name := fmt.Sprintf("version%02d-group%04d.bundle", b.PolicyVersion, b.Counter)
			if err := os.WriteFile(filepath.Join(f.path, name), data, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// learn makes one step up the gradient of the groups' normalised rewards.
func learn(t *transformer.Trainer, bundles []*bundle.Bundle) error {
	var batch []transformer.Sequence
	var advantages []float32
	tokens := 0
	for _, b := range bundles {
		var sum, squares float64
		for _, r := range b.Rollouts {
			sum += float64(r.Reward)
			squares += float64(r.Reward) * float64(r.Reward)
		}
		mean := sum / float64(len(b.Rollouts))
		deviation := math.Sqrt(squares/float64(len(b.Rollouts)) - mean*mean)
		if deviation < 1e-6 {
			continue
		}
		for _, r := range b.Rollouts {
			for _, c := range r.Calls {
				s := transformer.Sequence{Tokens: append(append([]int32{}, c.Prompt...), c.Completion...)}
				for i := range c.Completion {
					s.Train = append(s.Train, int32(len(c.Prompt)+i))
				}
				batch = append(batch, s)
				advantages = append(advantages, float32((float64(r.Reward)-mean)/deviation))
				tokens += len(c.Completion)
			}
		}
	}
	if tokens == 0 {
		return nil
	}
	err := t.Accumulate(batch, func(s int, _, _, grad []float32) {
		for i := range grad {
			grad[i] = -advantages[s] / float32(tokens)
		}
	})
	if err != nil {
		return err
	}
	t.Step(transformer.AdamW{LR: 3e-4, Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8, ClipNorm: 1})
	return nil
}
