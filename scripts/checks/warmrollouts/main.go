// Command warmrollouts measures how many rollouts a second the agents of examples/calculator play when their modules are
// preloaded and the policy answers at once, beside starting them anew, and checks that no rollout finds anything of
// another's. scripts/checks/warm-rollouts prepares and runs it.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/lightswarm/lightswarm/rollout/process"
)

// What has to hold of each program.
const (
	// rateAtLeast is in rollouts a second, on two cores.
	rateAtLeast = 20.0
	// timesCold is how many times the rate of starting anew.
	timesCold = 20.0
)

// inFlight is how many rollouts run at once, cold and warm.
const inFlight = 8

// examples is where the programs are, and its README says what they preload.
const examples = "examples/calculator"

func main() {
	python := flag.String("python", "python3", "interpreter that has the programs' libraries")
	quick := flag.Bool("quick", false, "play few rollouts, and judge no rate")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *python, *quick, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "warm-rollouts:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, python string, quick bool, files []string) error {
	preloads, err := preloads()
	if err != nil {
		return err
	}
	var table bytes.Buffer
	failed := false
	fmt.Fprintln(&table, "program             cold/s   warm/s   warm/cold   rollouts that soil")
	for _, file := range files {
		m, err := measure(ctx, python, file, preloads[file], quick)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := clean(ctx, python, preloads[file]); err != nil {
			return fmt.Errorf("what %s preloads: %w", file, err)
		}
		fmt.Fprintf(&table, "%-18s  %6.2f   %6.1f   %9.1f   found nothing of one another\n", file, m.cold, m.warm, m.warm/m.cold)
		failed = failed || !quick && (m.warm < timesCold*m.cold || m.warm < rateAtLeast)
	}
	fmt.Print(table.String())
	if failed {
		return fmt.Errorf("a program plays fewer than %g rollouts a second, or fewer than %g times those of a cold start", rateAtLeast, timesCold)
	}
	return nil
}

// row is a program in the README's table of what to preload.
var row = regexp.MustCompile("(?m)^\\| `([a-z_]+\\.py)` \\| `\"[^|]*\"` \\| `([^`|]+)` \\|$")

// preloads are the modules that the README says to preload, by program.
func preloads() (map[string][]string, error) {
	text, err := os.ReadFile(filepath.Join(examples, "README.md"))
	if err != nil {
		return nil, err
	}
	byFile := map[string][]string{}
	for _, m := range row.FindAllSubmatch(text, -1) {
		byFile[string(m[1])] = strings.Split(string(m[2]), ",")
	}
	return byFile, nil
}

// measured are rates, in rollouts a second.
type measured struct{ cold, warm float64 }

func measure(ctx context.Context, python, file string, preload []string, quick bool) (m measured, err error) {
	if len(preload) == 0 {
		return m, fmt.Errorf("%s/README.md says nothing of what it preloads", examples)
	}
	cold := process.Command{Args: []string{python, file}, Dir: examples}
	warm := cold
	warm.Preload = preload
	duration, atLeast := 10*time.Second, 12
	if quick {
		duration, atLeast = time.Second, 4
	}
	if err := withAgent(ctx, warm, func(a *process.Agent) error {
		m.warm, err = rate(ctx, a, duration, atLeast)
		return err
	}); err != nil {
		return m, err
	}
	return m, withAgent(ctx, cold, func(a *process.Agent) error {
		if quick {
			began := time.Now()
			err := solve(ctx, a)
			m.cold = 1 / time.Since(began).Seconds()
			return err
		}
		m.cold, err = rate(ctx, a, 0, atLeast)
		return err
	})
}
