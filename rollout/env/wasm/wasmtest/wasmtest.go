// Package wasmtest prepares modules for tests. A module compiles fifteen times more slowly in a process that was built with
// the race detector, so it is compiled in one that was not, to where the tests find it.
package wasmtest

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"runtime/debug"
)

// engine is the module path of the engine that compiles.
const engine = "github.com/tetratelabs/wazero"

// engineVersion is what the engine calls itself in this process: it uses nothing that another version compiled. Only some
// test binaries, those of commands among them, know the versions of what they are built from.
func engineVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dependency := range info.Deps {
			if dependency.Path == engine {
				return dependency.Version
			}
		}
	}
	return "dev"
}

// Compile compiles a module into a folder that is then a driver's Options.Cache. It needs the go command.
func Compile(ctx context.Context, cache string, module []byte) error {
	version := "-ldflags=-X " + engine + "/internal/version.version=" + engineVersion()
	compile := exec.CommandContext(ctx, "go", "run", version, "github.com/lightswarm/lightswarm/rollout/env/wasm/wasmtest/compile", cache)
	compile.Stdin = bytes.NewReader(module)
	if said, err := compile.CombinedOutput(); err != nil {
		return fmt.Errorf("compile a module: %w: %s", err, said)
	}
	return nil
}
