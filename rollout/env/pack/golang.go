package pack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/lightswarm/lightswarm/rollout/env/wasm/meter"
)

// goModule is the name of a module that is built from Go.
const goModule = "environment.wasm"

// buildGo builds a Go package below dir as a module. It runs nothing of the package: cgo is off, and what needs another
// Go than the installed one fails.
func buildGo(ctx context.Context, dir, pkg string) ([]byte, error) {
	if !filepath.IsLocal(pkg) {
		return nil, fmt.Errorf(`%q is no package in the folder: use "." or a folder in it`, pkg)
	}
	tool, err := exec.LookPath("go")
	if err != nil {
		return nil, errors.New("building the module needs Go, and there is no go in PATH: install it from https://go.dev/dl, or name a compiled module with module")
	}
	work, err := os.MkdirTemp("", "lightswarm-build-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	file := filepath.Join(work, goModule)
	// Paths and versions stay out, and the symbols, which nothing reads, so that the same source gives the same module.
	build := exec.CommandContext(ctx, tool, "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", file, "./"+filepath.ToSlash(pkg))
	build.Dir = dir
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOWASM=", "CGO_ENABLED=0", "GOTOOLCHAIN=local", "GOFLAGS=", "GOWORK=off")
	var said bytes.Buffer
	build.Stdout, build.Stderr = &said, &said
	if err := build.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("go build failed (%w):\n%s", err, strings.TrimSpace(said.String()))
	}
	return readFile(work, goModule, meter.MaxModuleBytes)
}
