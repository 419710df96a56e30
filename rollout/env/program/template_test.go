package program_test

import (
	"strconv"
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

// The example is solved by its queries, and not by answering nothing, at all its levels.
func TestTextToSQL(t *testing.T) {
	program.NeedSandbox(t)
	p, err := pack.Read(t.Context(), "../../../examples/text-to-sql")
	if err != nil {
		t.Fatal(err)
	}
	e, err := program.TestDriver(t).Open(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	defer env.Close(e)
	const levels = 5
	if err := env.Check(t.Context(), e, env.Oracle(), env.Null(), levels); err != nil {
		t.Error(err)
	}
	// What is right on the database that is shown has to be right on others.
	episode, err := e.Reset(t.Context(), "train", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer episode.Close()
	solution, err := episode.(env.Solver).Solve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	call := solution.Calls[len(solution.Calls)-1]
	result, err := episode.Call(t.Context(), call.Name, call.Arguments)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := strconv.Atoi(result); err != nil {
		t.Fatalf("the first task counts: %q", result)
	}
	score, err := episode.Score(t.Context(), "SELECT "+result)
	if err != nil || score.Reward != 0 || score.Components["shown"] != 1 || score.Components["hidden"] != 0 {
		t.Errorf("%+v, %v", score, err)
	}
}
