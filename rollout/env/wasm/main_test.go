package wasm_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/wasm"
	"github.com/lightswarm/lightswarm/rollout/env/wasm/wasmtest"
	"github.com/lightswarm/lightswarm/wire"
)

const childArgument = "wasm-child"

// The test's own binary is the child too.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == childArgument {
		if err := wasm.Work(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Setenv("SECRET", "of the node") // before anything starts that must not have it
	code := m.Run()
	if shared != nil {
		if err := env.Close(shared); err != nil {
			fmt.Fprintln(os.Stderr, "close the shared environment:", err)
			code = 1
		}
	}
	if cacheFolder != "" {
		os.RemoveAll(cacheFolder)
	}
	os.Exit(code)
}

// cacheFolder is one for the whole test: it is what makes the second start of a module fast.
var cacheFolder string

var cache = sync.OnceValue(func() string {
	dir, err := os.MkdirTemp("", "wasm-test-")
	if err != nil {
		panic(err)
	}
	cacheFolder = dir
	return dir
})

func testDriver(t testing.TB) *wasm.Driver {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return wasm.New(wasm.Options{Command: []string{self, childArgument}, Cache: cache(), Episodes: 8})
}

// hostile is the module in testdata/hostile.
func hostile(t testing.TB) []byte {
	t.Helper()
	module, err := builtHostile()
	if err != nil {
		t.Fatal(err)
	}
	return module
}

// builtHostile builds and compiles it, once.
var builtHostile = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "wasm-test-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "hostile.wasm")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", file, ".")
	build.Dir = filepath.Join("testdata", "hostile")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	if said, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, said)
	}
	module, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return module, wasmtest.Compile(context.Background(), cache(), module)
})

// manifest is that of a module with little memory and few steps.
func manifest() wire.EnvironmentManifest {
	return wire.EnvironmentManifest{
		Name: "hostile", Version: "1.0.0", Licence: "Apache-2.0", Kind: wasm.Kind, Entry: "module.wasm",
		Splits:    []wire.Split{{Name: "train", Tasks: 1000}},
		RewardMin: 0, RewardMax: 1, Determinism: wire.DeterminismExact, Agents: []string{"solver"},
		Limits: wire.EpisodeLimits{MemoryBytes: 16 << 20, Steps: 50_000_000},
	}
}

// rawModule is a module whose _start has this code.
func rawModule(code []byte) []byte { return rawModuleWith(1, code) }

// rawModuleWith is one with so many pages of memory.
func rawModuleWith(pages uint32, code []byte) []byte {
	sized := func(b []byte) []byte { return append(binary.AppendUvarint(nil, uint64(len(b))), b...) }
	text := func(s string) []byte { return sized([]byte(s)) }
	join := func(parts ...[]byte) []byte { return slices.Concat(parts...) }
	section := func(id byte, content []byte) []byte { return append([]byte{id}, sized(content)...) }
	body := join([]byte{0}, code, []byte{0x0b})
	return join([]byte("\x00asm\x01\x00\x00\x00"),
		section(1, []byte{2, 0x60, 4, 0x7f, 0x7f, 0x7f, 0x7f, 1, 0x7f, 0x60, 0, 0}),
		section(2, join([]byte{1}, text("wasi_snapshot_preview1"), text("fd_read"), []byte{0, 0})),
		section(3, []byte{1, 1}),
		section(5, join([]byte{1, 0}, binary.AppendUvarint(nil, uint64(pages)))),
		section(7, join([]byte{2}, text("memory"), []byte{2, 0}, text("_start"), []byte{0, 1})),
		section(10, join([]byte{1}, sized(body))))
}

// open opens a module, and closes it with the test.
func open(t testing.TB, m wire.EnvironmentManifest, module []byte) (env.Environment, error) {
	t.Helper()
	p, err := env.NewPackage(m, map[string][]byte{m.Entry: module})
	if err != nil {
		t.Fatal(err)
	}
	e, err := testDriver(t).Open(context.WithoutCancel(t.Context()), p)
	if err == nil {
		t.Cleanup(func() {
			if err := env.Close(e); err != nil {
				t.Error(err)
			}
		})
	}
	return e, err
}

// shared is the hostile module, open for all tests that neither close it nor want other limits: a start of its process costs
// more than most of them. It is nil until the first one asks.
var shared env.Environment

// sharedHostile returns shared. Tests that use it are not parallel, so each has all its episodes.
func sharedHostile(t testing.TB) env.Environment {
	t.Helper()
	if shared != nil {
		return shared
	}
	p, err := env.NewPackage(manifest(), map[string][]byte{manifest().Entry: hostile(t)})
	if err != nil {
		t.Fatal(err)
	}
	if shared, err = testDriver(t).Open(context.WithoutCancel(t.Context()), p); err != nil {
		t.Fatal(err)
	}
	return shared
}
