// Command threetasks trains a policy on each of the three tasks of Agent Lightning's paper, over seeds, and judges the curves:
// scripts/checks/three-tasks.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/lightswarm/lightswarm/experiment"
)

// task is one of the three.
type task struct {
	name string
	// judged is the combination of values that has to hold; others are shown beside it. Empty is of an experiment in which
	// nothing varies.
	judged string
	// file is its declaration if it is not the one in examples/experiments.
	file string
}

var tasks = []task{
	{name: "calculator"},
	{name: "text-to-sql", judged: "writer,rewriter"},
	{name: "retrieval-qa"},
}

// quickTask is what is run with --quick.
var quickTask = task{name: "quick", file: "scripts/checks/threetasks/quick.toml"}

func (t task) declaration() string {
	if t.file != "" {
		return t.file
	}
	return "examples/experiments/" + t.name + ".toml"
}

func main() {
	quick := flag.Bool("quick", false, "a short run of one seed, with an agent that needs nothing but Python")
	dir := flag.String("dir", ".cache/three-tasks", "folder of the experiments; those that are done there are not run again")
	record := flag.Bool("write", false, "put what was found into "+page)
	flag.Parse()
	chosen, err := choose(flag.Args())
	if err == nil && *quick && (flag.NArg() > 0 || *record) {
		err = errors.New("--quick goes with neither tasks nor --write")
	}
	if err == nil && *record && len(chosen) < len(tasks) {
		err = errors.New("--write is of all tasks: name none")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "three-tasks:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	if *quick {
		err = runQuick(ctx)
	} else {
		err = check(ctx, chosen, *dir, *record)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "three-tasks:", err)
		os.Exit(1)
	}
	fmt.Println("three-tasks: holds")
}

// choose picks the tasks that are named, or all.
func choose(names []string) ([]task, error) {
	if len(names) == 0 {
		return tasks, nil
	}
	var chosen []task
	for _, name := range names {
		at := slices.IndexFunc(tasks, func(t task) bool { return t.name == name })
		if at < 0 {
			return nil, fmt.Errorf("there is no task %q", name)
		}
		chosen = append(chosen, tasks[at])
	}
	return chosen, nil
}

// runQuick checks the short run, in a folder that is removed: what an older program has done must not count.
func runQuick(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "three-tasks-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	return check(ctx, []task{quickTask}, dir, false)
}

// check does what is left of the experiments, prints what it finds, and fails unless all that is judged holds.
func check(ctx context.Context, chosen []task, dir string, record bool) error {
	binary, err := filepath.Abs(".cache/bin/threetasks/lightswarm")
	if err != nil {
		return err
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, "./cmd/lightswarm")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("build lightswarm: %w", err)
	}
	var all []*experiment.Results
	var rows []row
	var wrong []error
	for _, t := range chosen {
		folder := filepath.Join(dir, t.name)
		failed := train(ctx, binary, t, folder)
		if ctx.Err() != nil {
			return errors.New("interrupted; the same command goes on with the next run")
		}
		results, found, err := read(t, folder)
		if err != nil {
			return errors.Join(failed, err)
		}
		wrong = append(wrong, failed) // What can be read may be of an earlier time.
		all, rows = append(all, results), append(rows, found...)
	}
	fmt.Print(table(rows))
	if record {
		if err := write(chosen, dir, all, rows); err != nil {
			return err
		}
	}
	if !holds(chosen, rows) {
		wrong = append(wrong, errors.New("not all that is judged holds"))
	}
	return errors.Join(wrong...)
}

// train does the runs of a task that are not done. Runs that fail make an error, and are in the results.
func train(ctx context.Context, binary string, t task, folder string) error {
	c := exec.CommandContext(ctx, binary, "experiment", t.declaration(), "--dir", folder, "--plain") //nolint:gosec // the program was just built here
	c.Stdout, c.Stderr = os.Stderr, os.Stderr
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.WaitDelay = 30 * time.Second
	if err := c.Run(); err != nil {
		return fmt.Errorf("lightswarm experiment %s: %w", t.declaration(), err)
	}
	return nil
}
