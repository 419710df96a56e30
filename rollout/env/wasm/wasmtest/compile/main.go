// Command compile compiles the module on its standard input into the folder that its argument names; see package wasmtest.
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/wasm"
	"github.com/lightswarm/lightswarm/wire"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string) error {
	if len(arguments) == 0 { // this program, started by the driver
		return wasm.Work(os.Stdin, os.Stdout)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	module, err := io.ReadAll(os.Stdin)
	if err != nil {
		return fmt.Errorf("read the module: %w", err)
	}
	m := wire.EnvironmentManifest{
		Name: "module", Version: "1.0.0", Licence: "Apache-2.0", Kind: wasm.Kind, Entry: "module.wasm",
		Splits:    []wire.Split{{Name: wire.SplitTrain, Tasks: 1}},
		RewardMax: 1, Determinism: wire.DeterminismExact, Agents: []string{"solver"},
		Limits: wire.EpisodeLimits{MemoryBytes: wasm.MaxMemoryBytes, Steps: wasm.MinSteps},
	}
	p, err := env.NewPackage(m, map[string][]byte{m.Entry: module})
	if err != nil {
		return err
	}
	e, err := wasm.New(wasm.Options{Command: []string{self}, Cache: arguments[0], Episodes: 1}).Open(ctx, p)
	if err != nil {
		return err
	}
	return env.Close(e)
}
