// Package warmstart holds the recipe of the base policy: the wrong habit of environment calc, learnt by a small
// transformer. Package policy/base carries what it makes.
package warmstart

import (
	"context"
	"fmt"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/policy/embedded"
	"github.com/lightswarm/lightswarm/policy/pretrain"
	"github.com/lightswarm/lightswarm/policy/transformer"
	"github.com/lightswarm/lightswarm/rollout"
	"github.com/lightswarm/lightswarm/rollout/env/calc"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

// Rules are the limits that a rollout of calc needs, with sampling at temperature 1.
func Rules() wire.RolloutRules {
	return wire.RolloutRules{MaxCalls: 4, MaxCompletionTokens: 48, Sampling: wire.Sampling{Temperature: 1}}
}

// Calc returns the options of the base policy. The seed decides the fresh weights and the demonstrations.
func Calc(seed uint64, workers int) pretrain.Options {
	return pretrain.Options{
		Seed: seed,
		Model: transformer.Config{
			Hidden: 64, Layers: 3, Heads: 2, KVHeads: 2, HeadDim: 32, Intermediate: 192, Vocab: 512, Context: 256,
			RopeTheta: 10000, NormEpsilon: 1e-6, TieEmbeddings: true,
		},
		Tools:          calc.Tools(),
		Demonstrations: calc.Demonstrations(seed),
		Right:          calc.RightDemonstrations(seed),
		Measure: func(ctx context.Context, s *policy.Snapshot) (pretrain.Ability, error) {
			return measure(ctx, s, workers)
		},
		Gate: pretrain.Gate{
			MinReachable: 0.97, ReachableProbability: 0.15,
			MinBest: 0.98, MinSampled: 0.25, MaxSampled: 0.4, MaxGreedy: 0.05,
		},
		TokenizerTexts: 4000,
		BatchSize:      64,
		RoundSteps:     1400,
		MaxRounds:      4,
		LearningRate:   1.5e-3,
		Warmup:         40,
		HeldOut:        512,
		Workers:        workers,
	}
}

// measure runs a policy on tasks of the validation split.
func measure(ctx context.Context, s *policy.Snapshot, workers int) (pretrain.Ability, error) {
	engine := embedded.New(embedded.Options{Threads: workers})
	defer engine.Close()
	if err := engine.Load(ctx, s); err != nil {
		return pretrain.Ability{}, err
	}
	session, err := engine.Open()
	if err != nil {
		return pretrain.Ability{}, err
	}
	defer session.Close()
	p, err := rollout.NewPolicy(0, s, session, bundle.EngineExact)
	if err != nil {
		return pretrain.Ability{}, err
	}
	const tasks, samples = 128, 16
	sampled, err := rollout.Measure(ctx, calc.New(), p, Rules(), calc.Validation, tasks, samples, 0)
	if err != nil {
		return pretrain.Ability{}, fmt.Errorf("sampled: %w", err)
	}
	rules := Rules()
	rules.Sampling = wire.Sampling{}
	greedy, err := rollout.Measure(ctx, calc.New(), p, rules, calc.Validation, tasks, 1, 0)
	if err != nil {
		return pretrain.Ability{}, fmt.Errorf("greedy: %w", err)
	}
	return pretrain.Ability{Sampled: sampled.Mean(), Best: sampled.Best(), Greedy: greedy.Mean()}, nil
}
