package wasm_test

import (
	"testing"

	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/drivertest"
	"github.com/lightswarm/lightswarm/rollout/env/pack"
	"github.com/lightswarm/lightswarm/rollout/env/wasm"
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
	e, err := env.Drivers{env.Builtin(), testDriver(t)}.Open(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	defer env.Close(e)
	drivertest.Test(t, drivertest.Subject{Environment: e, Oracle: env.Oracle(), Null: env.Null(), Tasks: 20})
	if u := e.(*wasm.Environment).Peak(); u.Steps < 10_000 || u.Steps > p.Manifest().Limits.Steps/10 || u.MemoryBytes == 0 {
		t.Errorf("the template uses %+v", u)
	}
}
