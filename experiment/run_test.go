package experiment_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lightswarm/lightswarm/experiment"
	"github.com/lightswarm/lightswarm/testnet/report"
)

const grid = `
name = "tiny"
seeds = [1, 2]
threshold = 0.5
[testnet]
steps = 3
[[vary]]
flag = "learner-loss"
values = ["dppo", "ppo"]
`

// fakeRuns stands in for networks: what a run does is a function of its label and seed, "ppo 2".
type fakeRuns struct {
	tried []string
	do    func(run, dir string) error
	check func(run string) error
}

func name(c experiment.Cell) string { return fmt.Sprintf("%s %d", c.Label(), c.Seed) }

func (f *fakeRuns) Check(_ context.Context, c experiment.Cell) error {
	if f.check == nil {
		return nil
	}
	return f.check(name(c))
}

func (f *fakeRuns) Run(_ context.Context, c experiment.Cell, dir string) error {
	if _, err := os.Lstat(dir); err == nil {
		return errors.New("the run's folder is there already")
	}
	f.tried = append(f.tried, name(c))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	return f.do(name(c), dir)
}

// succeed writes a report that ended by its steps.
func succeed(run, dir string) error { return write(dir, fake(run, report.EndSteps)) }

func write(dir string, r *report.Report) error { return report.Write(dir, r) }

// fake is a run's report of which every figure is known: ppo is worse than dppo, seed 2 better than seed 1.
func fake(run string, end report.End) *report.Report {
	rate := func(success float64) report.Rate {
		return report.Rate{Success: success, Tasks: 100, Low: success - 0.1, High: success + 0.1}
	}
	bonus := 0.0
	if strings.HasPrefix(run, "dppo") {
		bonus += 0.2
	}
	if strings.HasSuffix(run, "2") {
		bonus += 0.1
	}
	r := &report.Report{Schema: report.Schema, Version: "v1", End: end, Steps: 3, Seconds: 30, RolloutsTrained: 48, ReleaseHead: 3}
	for v := range uint64(3) {
		reward, effective := 0.1*float64(v)+bonus, 1.0
		entropy, clipped, kl := 1-reward, 0.0, 0.0
		r.TrainingSteps = append(r.TrainingSteps, report.TrainingStep{
			Version: v + 1, Rollouts: 16, Tokens: 100, Reward: &reward, Entropy: &entropy, EffectiveSamples: &effective,
			ClipFraction: &clipped, KLBehaviour: &kl, Lag: []int{int(v), 2},
		})
	}
	r.Measure([]report.Evaluation{
		{Version: 0, Seconds: 1, Sampled: rate(0.2), Greedy: rate(0)},
		{Version: 3, Seconds: 20, Sampled: rate(0.3 + bonus), Greedy: rate(0.4 + bonus)},
	})
	return r
}

func run(ctx context.Context, t *testing.T, dir string, f *fakeRuns) (*experiment.Results, string, error) {
	t.Helper()
	var told strings.Builder
	results, err := experiment.Run(ctx, parse(t, grid), experiment.Folder(dir), f, func(p experiment.Progress) {
		fmt.Fprintf(&told, "%s %d/%d %s ended=%t left=%d\n", name(p.Outcome.Cell), p.Number, p.Of, p.Outcome.State, p.Ended, p.Left)
	})
	return results, told.String(), err
}

// An experiment that was interrupted in its second run goes on with that one, and keeps what the attempt left.
func TestInterruptedExperimentGoesOn(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	first := &fakeRuns{do: func(run, dir string) error {
		if run != "ppo 1" {
			return succeed(run, dir)
		}
		cancel(stop)
		return write(dir, fake(run, report.EndInterrupt))
	}}
	results, told, err := run(ctx, t, dir, first)
	if !errors.Is(err, stop) || results.Count(experiment.StateDone) != 1 || results.Count(experiment.StateMissing) != 3 || results.Count(experiment.StateFailed) != 0 {
		t.Errorf("interrupted: %v, %+v", err, results.Runs)
	}
	want := "dppo 1 1/4 missing ended=false left=4\ndppo 1 1/4 done ended=true left=3\nppo 1 2/4 missing ended=false left=3\n"
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error(diff)
	}

	second := &fakeRuns{do: succeed}
	results, told, err = run(t.Context(), t, dir, second)
	if err != nil || results.Count(experiment.StateDone) != 4 {
		t.Errorf("continued: %v, %+v", err, results.Runs)
	}
	if diff := cmp.Diff([]string{"ppo 1", "dppo 2", "ppo 2"}, second.tried); diff != "" {
		t.Error(diff)
	}
	if !strings.HasPrefix(told, "ppo 1 2/4 missing ended=false left=3\n") {
		t.Errorf("told %q", told)
	}
	kept, err := report.Read(filepath.Join(dir, filepath.FromSlash(results.Runs[1].Folder)+".1"))
	if err != nil || kept.End != report.EndInterrupt {
		t.Errorf("the attempt that was interrupted: %v, %v", kept, err)
	}

	third := &fakeRuns{do: succeed}
	if _, told, err := run(t.Context(), t, dir, third); err != nil || told != "" || third.tried != nil {
		t.Errorf("a finished experiment ran again: %q, %v", told, err)
	}
}

// A kill leaves a folder without a report, which is no run.
func TestKilledRunIsMissing(t *testing.T) {
	dir := t.TempDir()
	func() {
		defer func() { recover() }() // the panic stands in for a kill
		_, _, _ = run(t.Context(), t, dir, &fakeRuns{do: func(string, string) error { panic("killed") }})
	}()
	f := &fakeRuns{do: succeed}
	if results, _, err := run(t.Context(), t, dir, f); err != nil || results.Count(experiment.StateDone) != 4 || len(f.tried) != 4 {
		t.Errorf("after a kill: %v, tried %v", err, f.tried)
	}
}

// A run that fails is told with its reason, does not end the others, counts in no mean, and is tried again the next time.
func TestFailedRunsAreShown(t *testing.T) {
	dir := t.TempDir()
	f := &fakeRuns{do: func(run, dir string) error {
		switch run {
		case "ppo 1":
			return errors.New("the disk is full")
		case "dppo 2":
			return nil // without a report
		case "ppo 2":
			return write(dir, fake(run, report.EndFailure))
		}
		return succeed(run, dir)
	}}
	results, _, err := run(t.Context(), t, dir, f)
	if err != nil || len(f.tried) != 4 {
		t.Fatalf("tried %v: %v", f.tried, err)
	}
	var got []string
	for _, r := range results.Runs {
		got = append(got, strings.TrimSpace(string(r.State)+" "+r.Failure))
	}
	want := []string{"done", "failed the disk is full", "failed it ended without a report", "failed it ended without a report"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for i, c := range results.Combinations {
		if c.Done != 1-i || c.Failed != 1+i || i == 1 && len(c.Figures)+len(c.Curves) > 0 {
			t.Errorf("combination %d: %+v", i, c)
		}
	}
	page, err := os.ReadFile(filepath.Join(dir, "results.md"))
	if err != nil || !strings.Contains(string(page), "1 of 4 runs are done, 3 failed.") || !strings.Contains(string(page), "an error: the disk is full") {
		t.Errorf("the page hides failures: %v\n%s", err, page)
	}
	looked, err := experiment.Look(parse(t, grid), experiment.Folder(dir))
	if diff := cmp.Diff(results, looked); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	again := &fakeRuns{do: succeed}
	if results, _, err = run(t.Context(), t, dir, again); err != nil || results.Count(experiment.StateDone) != 4 || len(again.tried) != 3 {
		t.Errorf("again: %v, tried %v", err, again.tried)
	}
}

// A report that cannot be read is not taken for a run that is missing: it would be run again, and the figures lost.
func TestDamagedReport(t *testing.T) {
	dir := t.TempDir()
	results, _, err := run(t.Context(), t, dir, &fakeRuns{do: succeed})
	if err != nil {
		t.Fatal(err)
	}
	damaged := filepath.Join(dir, filepath.FromSlash(results.Runs[2].Folder), "report.json")
	if err := os.WriteFile(damaged, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := run(t.Context(), t, dir, &fakeRuns{do: succeed}); err == nil || !strings.Contains(err.Error(), damaged) {
		t.Errorf("%v, want an error that names %s", err, damaged)
	}
}

// Check finds a mistake in any run that is still to be done.
func TestCheck(t *testing.T) {
	mistake := errors.New("flag --x: no")
	f := &fakeRuns{do: succeed, check: func(run string) error {
		if run == "ppo 2" {
			return mistake
		}
		return nil
	}}
	d, folder := parse(t, grid), experiment.Folder(t.TempDir())
	err := experiment.Check(t.Context(), d, folder, f)
	if !errors.Is(err, mistake) || !strings.HasPrefix(err.Error(), "run ppo, seed 2: ") {
		t.Errorf("%v, want the mistake of ppo 2", err)
	}
	if _, err := experiment.Run(t.Context(), d, folder, f, func(experiment.Progress) {}); err != nil {
		t.Fatal(err)
	}
	if err := experiment.Check(t.Context(), d, folder, f); err != nil {
		t.Errorf("a run that is done is checked: %v", err)
	}
}
