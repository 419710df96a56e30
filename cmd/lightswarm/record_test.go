package main

import (
	"context"
	"os"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/lightswarm/lightswarm/node"
	"github.com/lightswarm/lightswarm/policy/base"
	"github.com/lightswarm/lightswarm/policy/embedded"
	"github.com/lightswarm/lightswarm/rollout"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/calc"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

// recordBundleCommand runs the built-in policy on four held-out tasks and writes the bundle: recordbundle FILE
func recordBundleCommand(ts *testscript.TestScript, _ bool, arguments []string) {
	raw, err := recordBundle(context.Background())
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(arguments[0]), raw, 0o600))
}

func recordBundle(ctx context.Context) ([]byte, error) {
	s, err := base.Load()
	if err != nil {
		return nil, err
	}
	founding, err := node.DefaultFounding("recorded", calc.New())
	if err != nil {
		return nil, err
	}
	environments, err := env.NewSet(calc.New())
	if err != nil {
		return nil, err
	}
	engine := embedded.New(embedded.Options{Threads: 1})
	defer engine.Close()
	if err := engine.Load(ctx, s); err != nil {
		return nil, err
	}
	session, err := engine.Open()
	if err != nil {
		return nil, err
	}
	defer session.Close()
	p, err := rollout.NewPolicy(0, s, session, bundle.EngineExact)
	if err != nil {
		return nil, err
	}
	network := &rollout.Network{
		ID: wire.SumCID([]byte("recorded")), Environments: environments,
		Charter: &wire.Charter{
			Environments: founding.Environments, Rollout: founding.Rollout,
			Evaluation: wire.EvaluationRules{Tasks: 4, BlockTasks: 4},
		},
	}
	b, err := rollout.RunEvaluationBlock(ctx, network, p, wire.PurposeEvaluateSampled, 0)
	if err != nil {
		return nil, err
	}
	return bundle.Encode(b)
}
