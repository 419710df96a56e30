package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/lightswarm/lightswarm/node/config"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/testnet"
)

// testnetSettings are the settings of nodes that a testnet lets the user change.
var testnetSettings = append([]string{
	"rollout.in_flight", "rollout.timeout", "rollout.environments.openenv",
	"learner.groups", "learner.dynamic", "learner.patience", "learner.learning_rate",
	"learner.credit", "learner.advantage", "learner.level", "learner.agents", "learner.loss", "learner.normaliser", "learner.evaluate_every",
}, agentSettings...)

// testnetFlags are the flags that say what network a testnet is, and what they set.
type testnetFlags struct {
	set         *pflag.FlagSet
	options     testnet.Options
	environment string
	// These are settings of nodes that have another flag here.
	target      float64
	hold, steps int
}

// addTestnetFlags adds the flags to set.
func addTestnetFlags(set *pflag.FlagSet) *testnetFlags {
	t := &testnetFlags{set: set, options: testnet.DefaultOptions()}
	o := &t.options
	t.environment, t.target, t.hold = o.Environment, o.Settings.Learner.Target, o.Settings.Learner.Hold
	set.IntVar(&o.Nodes, "nodes", o.Nodes, "rollout nodes, besides the learner")
	set.Uint64Var(&o.Seed, "seed", o.Seed, "seed of the nodes' keys and the network, and so of tasks and samples")
	set.StringVar(&t.environment, "env", t.environment, "environment to train on: a built-in one, a package file or a folder")
	set.StringVar(&o.Policy, "policy", "", "folder of the first policy (default the built-in one)")
	set.Uint32Var(&o.GroupSize, "group-size", 0, "rollouts of one task that are compared; 0 is 8")
	set.Uint32Var(&o.EvaluationTasks, "evaluation-tasks", 0, "held-out tasks that measure a release; 0 is 256")
	set.Uint32Var(&o.MaxCalls, "max-calls", 0, "calls of one rollout; 0 is 4")
	set.Uint32Var(&o.MaxCompletionTokens, "max-completion-tokens", 0, "tokens of one completion; 0 is 48")
	set.Float64Var(&t.target, "target", t.target, "share of held-out tasks, 0 to 1, that ends the run when --hold evaluations in a row reach it; 0 is none: --steps, --timeout or an interrupt ends the run")
	set.IntVar(&t.hold, "hold", t.hold, "evaluations in a row that must reach --target")
	set.IntVar(&t.steps, "steps", t.steps, "last version to train; 0 is no limit")
	set.DurationVar(&o.Timeout, "timeout", o.Timeout, "end the run after this long; 0 is never")
	set.BoolVar(&o.Processes, "processes", false, "run each node as a process of its own with a data folder")
	config.AddFlags(set, testnetSettings...)
	return t
}

// read returns what the flags ask for, over the variables of environ. find reads an environment that a flag names. Mistakes
// are the user's.
func (t *testnetFlags) read(environ []string, find func(name string) (environmentArgument, error)) (testnet.Options, error) {
	o := t.options
	loaded, err := config.Merge(o.Settings, config.Sources{Environ: environ, Flags: t.set})
	if err == nil {
		loaded.Learner.Target, loaded.Learner.Hold, loaded.Learner.Steps = t.target, t.hold, t.steps
		err = loaded.Validate()
	}
	if err != nil {
		return o, usage(flagOf(err))
	}
	o.Settings = loaded.Config
	if o.Drivers, err = environmentDrivers(flagsOf(o.Settings)); err != nil {
		return o, err
	}
	if o.Modules, err = moduleCommand(); err != nil {
		return o, err
	}
	if o.Processes {
		if o.Binary, err = os.Executable(); err != nil {
			return o, fmt.Errorf("find this program, to start nodes with it: %w", err)
		}
	}
	a, err := find(t.environment)
	if err != nil {
		return o, usage(fmt.Errorf("flag --env: %w", err))
	}
	if o.Environment = t.environment; a.from != env.KindBuiltin {
		o.Package = a.Package
	}
	return o, nil
}

// flagOf makes a mistake in an option or setting name the flag that it came from, where testnet has one of its own.
func flagOf(err error) error {
	var option *testnet.OptionError
	var field *config.FieldError
	switch {
	case errors.As(err, &option):
		return fmt.Errorf("flag --%w", err)
	case errors.As(err, &field) && slices.Contains([]string{"learner.target", "learner.hold", "learner.steps"}, field.Key):
		field.Origin = "flag --" + strings.TrimPrefix(field.Key, "learner.")
	}
	return err
}
