package wasm_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/drivertest"
	"github.com/lightswarm/lightswarm/rollout/env/pack"
	"github.com/lightswarm/lightswarm/rollout/env/wasm"
	"github.com/lightswarm/lightswarm/rollout/env/wasm/wasmtest"
)

// The template that people start from is what a driver makes has to be.
func TestDriver(t *testing.T) {
	dir := t.TempDir()
	if _, err := pack.Template(dir, "letters", wasm.Kind); err != nil {
		t.Fatal(err)
	}
	p, err := pack.Read(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := wasmtest.Compile(t.Context(), cache(), p.Artefact(p.Manifest().Entry)); err != nil {
		t.Fatal(err)
	}
	before := compiled(t)
	e, err := env.Drivers{env.Builtin(), testDriver(t)}.Open(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	defer env.Close(e)
	drivertest.Test(t, drivertest.Subject{Environment: e, Oracle: env.Oracle(), Null: env.Null(), Tasks: 5, Replies: true})
	if after := compiled(t); !slices.Equal(before, after) {
		t.Errorf("what was compiled for tests is not used: the cache holds %v, and held %v", after, before)
	}
	if u := e.(*wasm.Environment).Peak(); u.Steps < 10_000 || u.Steps > p.Manifest().Limits.Steps/10 || u.MemoryBytes == 0 {
		t.Errorf("the template uses %+v", u)
	}
}

// compiled lists what the cache holds.
func compiled(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(cache(), "*", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("nothing is compiled: %v", err)
	}
	return files
}
