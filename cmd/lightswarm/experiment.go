package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lightswarm/lightswarm/cmd/lightswarm/live"
	"github.com/lightswarm/lightswarm/experiment"
	"github.com/lightswarm/lightswarm/node/config"
	"github.com/lightswarm/lightswarm/testnet"
)

func (p *program) experiment() *cobra.Command {
	dir, plain, showOnly := "", false, false
	c := &cobra.Command{
		Use:   "experiment FILE",
		Short: "Run a grid of testnets over seeds, and compare them on a page with plots",
		Long: `Run a testnet for each combination of the values that a declaration lists, and for each of its seeds, one after another;
see docs/experiments.md.

The folder gets results.md with plots, the same figures as results.json, and a folder for each run. The same command goes on
where an experiment was interrupted, and runs again what failed. A run is what lightswarm testnet does with the same flags;
variables such as LIGHTSWARM_LEARNER_GROUPS do not count.

With --show nothing is run: it prints what is done, and the commands of all runs.`,
		Example: `  lightswarm experiment examples/experiments/losses.toml
  lightswarm experiment losses.toml --show --json`,
		Args: takes(1, 1),
		RunE: func(cmd *cobra.Command, arguments []string) error {
			text, err := readFile(arguments[0], experiment.MaxFileBytes)
			if err != nil {
				return usage(err)
			}
			d, err := experiment.Parse(arguments[0], text, runFlags())
			if err != nil {
				return usage(err)
			}
			if dir == "" {
				dir = filepath.Join("runs", d.Name)
			}
			if showOnly {
				results, err := experiment.Look(d, experiment.Folder(dir))
				if err != nil {
					return err
				}
				return p.printExperiment(results, dir)
			}
			return p.runExperiment(cmd.Context(), d, text, dir, plain)
		},
	}
	c.Flags().StringVar(&dir, "dir", "", "the experiment's folder (default runs/NAME)")
	c.Flags().BoolVar(&plain, "plain", false, "write lines instead of drawing a screen")
	c.Flags().BoolVar(&showOnly, "show", false, "show what is done, and run nothing")
	return c
}

// runFlags are the flags of testnets that a declaration may give.
func runFlags() (names []string) {
	set := pflag.NewFlagSet("testnet", pflag.ContinueOnError)
	addTestnetFlags(set)
	set.VisitAll(func(f *pflag.Flag) {
		if f.Name != "seed" { // a declaration lists them
			names = append(names, f.Name)
		}
	})
	return names
}

// runExperiment does what is left of an experiment and prints its results.
func (p *program) runExperiment(ctx context.Context, d *experiment.Declaration, text []byte, dir string, plain bool) (err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the experiment's folder: %w", err)
	}
	lock, err := config.OpenFolder(dir)
	if errors.Is(err, config.ErrLocked) {
		return usage(fmt.Errorf("an experiment runs in %s already: wait for it, or name another folder with --dir", dir))
	}
	if err != nil {
		return fmt.Errorf("take the experiment's folder: %w", err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	folder := experiment.Folder(dir)
	runs := &testnetRuns{p: p, name: d.Name, plain: plain, cancel: func() { cancel(errInterrupted) }, environments: map[string]environmentArgument{}}
	if err := experiment.Check(ctx, d, folder, runs); err != nil {
		return usage(err)
	}
	if err := folder.Keep(text); err != nil {
		return err
	}
	results, err := experiment.Run(ctx, d, folder, runs, runs.show)
	if results == nil {
		return err
	}
	if err := p.printExperiment(results, dir); err != nil {
		return err
	}
	done := results.Count(experiment.StateDone)
	switch failed := results.Count(experiment.StateFailed); {
	case err != nil:
		return fmt.Errorf("%w: %d of %d runs are done; the same command goes on with the next", err, done, len(results.Runs))
	case failed > 0:
		return fmt.Errorf("%d of %d runs failed: the page says why; the same command runs them again", failed, len(results.Runs))
	}
	return nil
}

// printExperiment prints results, for people the page's table.
func (p *program) printExperiment(r *experiment.Results, dir string) error {
	return p.print(r, func(w io.Writer) {
		fmt.Fprintf(w, "%d of %d runs done\n", r.Count(experiment.StateDone), len(r.Runs))
		for _, run := range r.Runs {
			switch run.State {
			case experiment.StateFailed:
				fmt.Fprintf(w, "failed   %s\n         %s\n", run.Command, run.Failure)
			case experiment.StateMissing:
				fmt.Fprintf(w, "missing  %s\n", run.Command)
			case experiment.StateDone:
			}
		}
		for _, c := range r.Combinations {
			fmt.Fprintf(w, "%s\n", experimentLine(&c))
		}
		if page := filepath.Join(dir, "results.md"); exists(page) {
			fmt.Fprintf(w, "page     %s\n", page)
		}
	})
}

// experimentLine is a combination in a line.
func experimentLine(c *experiment.Combination) string {
	end := c.Figures["end"]
	if end == nil {
		return fmt.Sprintf("%s: not measured", c.Label)
	}
	line := fmt.Sprintf("%s: held-out success %.3f", c.Label, end.Mean)
	if end.High != nil {
		line += fmt.Sprintf(" ± %.3f", *end.High-end.Mean)
	}
	return line + fmt.Sprintf(" at the end, %d runs", end.Runs)
}

// testnetRuns does the runs of an experiment in this process.
type testnetRuns struct {
	p            *program
	name         string
	plain        bool
	cancel       func()
	environments map[string]environmentArgument
	// title is that of the run under way.
	title string
}

// options are those of a run.
func (t *testnetRuns) options(ctx context.Context, c experiment.Cell, dir string) (testnet.Options, error) {
	set := pflag.NewFlagSet("testnet", pflag.ContinueOnError)
	flags := addTestnetFlags(set)
	for _, s := range c.Settings {
		if err := set.Set(s.Flag, s.Value); err != nil {
			return testnet.Options{}, usage(explainFlag(err))
		}
	}
	o, err := flags.read(nil, func(name string) (environmentArgument, error) {
		a, ok := t.environments[name]
		if ok {
			return a, nil
		}
		a, err := findEnvironment(ctx, name)
		if err == nil {
			t.environments[name] = a
		}
		return a, err
	})
	o.Dir, o.Version, o.Command = dir, programVersion(), c.Command()
	return o, err
}

// Check implements experiment.Runner.
func (t *testnetRuns) Check(ctx context.Context, c experiment.Cell) error {
	// The folder of a run does not exist when it begins.
	o, err := t.options(ctx, c, filepath.Join(os.TempDir(), "lightswarm-"+c.ID))
	if err != nil {
		return err
	}
	return flagOf(o.Validate())
}

// Run implements experiment.Runner.
func (t *testnetRuns) Run(ctx context.Context, c experiment.Cell, dir string) error {
	o, err := t.options(ctx, c, dir)
	if err != nil {
		return err
	}
	view := live.Open(ctx, t.p.err, t.plain, t.cancel)
	defer view.Close()
	_, err = testnet.Run(ctx, o, func(s testnet.Progress) { view.Update(live.State{Title: t.title, Progress: s}) })
	return err
}

// show tells how far the experiment is.
func (t *testnetRuns) show(s experiment.Progress) {
	c := &s.Outcome.Cell
	t.title = fmt.Sprintf("%s: run %d of %d, %s, seed %d", t.name, s.Number, s.Of, c.Label(), c.Seed)
	what := fmt.Sprintf("begins, %d to do", s.Left)
	switch {
	case s.Ended && s.Outcome.State == experiment.StateFailed:
		what = fmt.Sprintf("failed, %d to do: %s", s.Left, s.Outcome.Failure)
	case s.Ended:
		r := s.Outcome.Report
		what = fmt.Sprintf("done in %.1f s, ended by %s, %d to do", r.Seconds, r.End, s.Left)
	}
	fmt.Fprintf(t.p.err, "%s: %s\n", t.title, what)
}
