package experiment

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/lightswarm/lightswarm/durable"
)

// Runner does one run.
type Runner interface {
	// Check says what is wrong with the flags of a run, before any is begun. It changes nothing.
	Check(ctx context.Context, c Cell) error
	// Run runs c into dir, which it makes, and returns when dir has the run's report. When ctx ends it stops the run in
	// order and returns. Runs come one after another.
	Run(ctx context.Context, c Cell, dir string) error
}

// Progress is told when a run begins and when it has ended.
type Progress struct {
	Outcome Outcome
	// Ended says that the run has ended; its Outcome is known then.
	Ended bool
	// Number is the run's place in the grid of Of runs, from 1.
	Number, Of int
	// Left counts the runs that are still to be done, this one included until it has ended.
	Left int
}

// Check says what is wrong with the runs of d that are not done in folder, so that a mistake in the last one does not cost
// the time of all others. It changes nothing.
func Check(ctx context.Context, d *Declaration, folder Folder, runner Runner) error {
	outcomes, err := folder.outcomes(d)
	if err != nil {
		return err
	}
	for _, o := range outcomes {
		if o.State == StateDone {
			continue
		}
		if err := runner.Check(ctx, o.Cell); err != nil {
			return fmt.Errorf("run %s, seed %d: %w", o.Cell.Label(), o.Cell.Seed, err)
		}
	}
	return nil
}

// Run does the runs of d that are not done in folder, one after another, and writes the results after each. A run that
// fails is noted and the others go on; show is told of each. It returns the results of all when every run was tried, and
// with ctx's cause those so far when ctx ended.
func Run(ctx context.Context, d *Declaration, folder Folder, runner Runner, show func(Progress)) (*Results, error) {
	outcomes, err := folder.outcomes(d)
	if err != nil {
		return nil, err
	}
	left := 0
	for _, o := range outcomes {
		if o.State != StateDone {
			left++
		}
	}
	for i := range outcomes {
		o := &outcomes[i]
		if o.State == StateDone || ctx.Err() != nil {
			continue
		}
		p := Progress{Outcome: *o, Number: i + 1, Of: len(outcomes), Left: left}
		show(p)
		if *o, err = folder.try(ctx, o.Cell, runner); err != nil {
			return nil, err
		}
		if ctx.Err() != nil && o.State != StateDone {
			break // what an interrupt makes of a run is no failure
		}
		left--
		p.Outcome, p.Ended, p.Left = *o, true, left
		show(p)
		if err := folder.WriteResults(NewResults(d, folder, outcomes)); err != nil {
			return nil, err
		}
	}
	results := NewResults(d, folder, outcomes)
	if err := folder.WriteResults(results); err != nil {
		return nil, err
	}
	return results, context.Cause(ctx)
}

// try runs a cell and returns what became of it. Its error is about the experiment's own files.
func (f Folder) try(ctx context.Context, c Cell, runner Runner) (Outcome, error) {
	dir, err := f.begin(&c)
	if err != nil {
		return Outcome{}, err
	}
	failure := runner.Run(ctx, c, dir)
	o, err := f.Outcome(c)
	if err != nil || failure == nil && o.State == StateDone || ctx.Err() != nil {
		return o, err
	}
	o = Outcome{Cell: c, State: StateFailed, Failure: "it ended without a report"}
	if failure != nil {
		o.Failure = failure.Error()
	}
	return o, f.note(&c, o.Failure)
}

// outcomes are those of all runs of d, in the grid's order.
func (f Folder) outcomes(d *Declaration) ([]Outcome, error) {
	cells := d.Cells()
	outcomes := make([]Outcome, len(cells))
	for i, c := range cells {
		var err error
		if outcomes[i], err = f.Outcome(c); err != nil {
			return nil, err
		}
	}
	return outcomes, nil
}

// Look returns the results of the runs of d that are done in folder, and runs nothing.
func Look(d *Declaration, folder Folder) (*Results, error) {
	outcomes, err := folder.outcomes(d)
	if err != nil {
		return nil, err
	}
	return NewResults(d, folder, outcomes), nil
}

// Keep stores the text of a declaration in folder, beside the results.
func (f Folder) Keep(text []byte) error {
	if err := durable.WriteFile(filepath.Join(string(f), "experiment.toml"), text, 0o644); err != nil {
		return fmt.Errorf("keep the declaration beside its results: %w", err)
	}
	return nil
}
