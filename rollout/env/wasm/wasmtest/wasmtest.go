// Package wasmtest prepares modules for tests. A module compiles fifteen times more slowly in a process that was built with
// the race detector, so it is compiled in one that was not, to where the tests find it.
package wasmtest

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
)

// version makes the engine call itself what it calls itself in a test, where it does not know its version: it uses nothing
// that another version compiled.
const version = "-ldflags=-X github.com/tetratelabs/wazero/internal/version.version=dev"

// Compile compiles a module into a folder that is then a driver's Options.Cache. It needs the go command.
func Compile(ctx context.Context, cache string, module []byte) error {
	compile := exec.CommandContext(ctx, "go", "run", version, "github.com/lightswarm/lightswarm/rollout/env/wasm/wasmtest/compile", cache)
	compile.Stdin = bytes.NewReader(module)
	if said, err := compile.CombinedOutput(); err != nil {
		return fmt.Errorf("compile a module: %w: %s", err, said)
	}
	return nil
}
