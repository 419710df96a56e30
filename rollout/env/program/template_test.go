package program_test

import (
	"testing"

	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/drivertest"
	"github.com/lightswarm/lightswarm/rollout/env/pack"
	"github.com/lightswarm/lightswarm/rollout/env/program"
)

// The template that people start from is what a driver makes has to be.
func TestDriver(t *testing.T) {
	program.NeedSandbox(t)
	dir := t.TempDir()
	if _, err := pack.Template(dir, "letters", program.Kind); err != nil {
		t.Fatal(err)
	}
	p, err := pack.Read(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	e, err := env.Drivers{env.Builtin(), program.TestDriver(t)}.Open(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	defer env.Close(e)
	drivertest.Test(t, drivertest.Subject{Environment: e, Oracle: env.Oracle(), Null: env.Null(), Tasks: 2, Replies: true})
	if peak := e.(*program.Environment).Peak(); peak <= 0 || uint64(peak.Milliseconds()) > e.Manifest().Limits.Steps {
		t.Errorf("the longest request took %v", peak)
	}
}
