package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lightswarm/lightswarm/cmd/lightswarm/live"
	"github.com/lightswarm/lightswarm/testnet"
	"github.com/lightswarm/lightswarm/testnet/report"
)

// testnetResult is what `testnet --json` prints. Package report defines every figure.
type testnetResult struct {
	Reached bool `json:"reached"`
	// These, and the versions that they are of, are null where the measure is not complete.
	HeldOutStart        *float64 `json:"held_out_start"`
	HeldOutEnd          *float64 `json:"held_out_end"`
	GreedyStart         *float64 `json:"greedy_start"`
	GreedyEnd           *float64 `json:"greedy_end"`
	HeldOutStartVersion *uint64  `json:"held_out_start_version"`
	HeldOutEndVersion   *uint64  `json:"held_out_end_version"`
	GreedyStartVersion  *uint64  `json:"greedy_start_version"`
	GreedyEndVersion    *uint64  `json:"greedy_end_version"`
	// Best is the best measured version, null without any.
	BestVersion      *uint64           `json:"best_version"`
	BestHeldOut      *float64          `json:"best_held_out"`
	Kept             *report.Kept      `json:"kept"`
	End              report.End        `json:"end"`
	Target           float64           `json:"target"`
	SecondsToTarget  *float64          `json:"seconds_to_target"`
	Seconds          float64           `json:"seconds"`
	Steps            int               `json:"steps"`
	RolloutsAccepted uint64            `json:"rollouts_accepted"`
	RolloutsRefused  map[string]uint64 `json:"rollouts_refused"`
	RolloutsDropped  map[string]uint64 `json:"rollouts_dropped"`
	RolloutsFailed   map[string]uint64 `json:"rollouts_failed"`
	ReleaseHead      uint64            `json:"release_head"`
	ReleaseCID       string            `json:"release_cid"`
	Network          string            `json:"network"`
	RunDir           string            `json:"run_dir"`
}

func (p *program) testnet() *cobra.Command {
	var flags *testnetFlags
	dir, plain := "", false
	c := &cobra.Command{
		Use:   "testnet",
		Short: "Run a whole network on this machine and watch a policy learn",
		Long: `Found a network, run one learner and some rollout nodes on this machine, and train a policy, the built-in one unless
--policy names another, until the evaluations on held-out tasks reach the target, three in a row unless --hold says how
many. The nodes run the code that nodes on the internet run.

With --env it trains on an environment that lightswarm env made, a folder or a package file; see docs/environments.md.

With --agent the rollouts are played by a program of any kind that calls a model by OpenAI's API; see docs/agents.md.

The run folder gets report.html, the same figures as report.json, and the nodes' log.`,
		Example: `  lightswarm testnet
  lightswarm testnet --nodes 2 --seed 7 --json
  lightswarm testnet --processes --dir /tmp/run1
  lightswarm testnet --env ./letters --target 0 --steps 20
  lightswarm testnet --agent "python3 examples/calculator/plain_python.py" --agent-preload json,urllib.request`,
		Args: takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			find := func(name string) (environmentArgument, error) { return findEnvironment(cmd.Context(), name) }
			o, err := flags.read(os.Environ(), find)
			if err != nil {
				return err
			}
			o.Dir = dir
			return p.runTestnet(cmd.Context(), o, plain)
		},
	}
	flags = addTestnetFlags(c.Flags())
	c.Flags().StringVar(&dir, "dir", "", "run folder (default runs/testnet-TIME-seedSEED)")
	c.Flags().BoolVar(&plain, "plain", false, "write lines instead of drawing a screen")
	return c
}

// runTestnet runs a network and prints its figures.
func (p *program) runTestnet(ctx context.Context, o testnet.Options, plain bool) error {
	o.Version, o.Command = programVersion(), "lightswarm "+strings.Join(os.Args[1:], " ")
	if o.Dir == "" {
		o.Dir = filepath.Join("runs", fmt.Sprintf("testnet-%s-seed%d", time.Now().UTC().Format("20060102-150405"), o.Seed))
	}
	if err := o.Validate(); err != nil {
		return usage(flagOf(err))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	view := live.Open(ctx, p.err, plain, func() { cancel(errInterrupted) })
	title := fmt.Sprintf("testnet of %d nodes, seed %d", o.Nodes+1, o.Seed)
	result, err := testnet.Run(ctx, o, func(s testnet.Progress) { view.Update(live.State{Title: title, Progress: s}) })
	view.Close()
	if err != nil {
		return err
	}
	r := &result.Report
	shown := testnetResult{
		Reached:      result.Reached,
		HeldOutStart: success(r.HeldOut.Start), HeldOutEnd: success(r.HeldOut.End),
		GreedyStart: success(r.Greedy.Start), GreedyEnd: success(r.Greedy.End),
		HeldOutStartVersion: r.HeldOut.StartVersion, HeldOutEndVersion: r.HeldOut.EndVersion,
		GreedyStartVersion: r.Greedy.StartVersion, GreedyEndVersion: r.Greedy.EndVersion,
		Kept: r.Kept, End: r.End,
		Target: r.Target, SecondsToTarget: r.SecondsToTarget, Seconds: r.Seconds, Steps: r.Steps,
		RolloutsAccepted: r.RolloutsAccepted, RolloutsRefused: r.RolloutsRefused, RolloutsDropped: r.RolloutsDropped,
		RolloutsFailed: r.RolloutsFailed,
		ReleaseHead:    r.ReleaseHead, ReleaseCID: r.ReleaseCID, Network: r.Network, RunDir: o.Dir,
	}
	if r.Best != nil {
		shown.BestVersion, shown.BestHeldOut = &r.Best.Version, &r.Best.Sampled.Success
	}
	if err := p.print(shown, func(w io.Writer) { testnetText(w, r, o.Dir) }); err != nil {
		return err
	}
	switch {
	case result.Interrupted:
		return &exitError{exitInterrupted, fmt.Errorf("%w; the report shows how far it came", errInterrupted)}
	case result.TimedOut && !result.Reached:
		return &exitError{exitTarget, fmt.Errorf("the target was not reached within --timeout %s", o.Timeout)}
	case !result.Reached:
		return &exitError{exitTarget, fmt.Errorf("the run ended (%s) before %d evaluations in a row reached %g", r.End, o.Settings.Learner.Hold, r.Target)}
	}
	return nil
}

// success is that of a rate, nil if it was not measured.
func success(r report.Rate) *float64 {
	if r.Tasks == 0 {
		return nil
	}
	return &r.Success
}

// testnetText says in words what a run showed.
func testnetText(w io.Writer, r *report.Report, dir string) {
	fmt.Fprintf(w, "held-out success  %s\n", change(r.HeldOut, r.HeldOut, "sampled"))
	if end := r.HeldOut.End; end.Tasks > 0 {
		fmt.Fprintf(w, "                  %s\n", change(r.Greedy, r.HeldOut, "greedy"))
		fmt.Fprintf(w, "                  %d tasks; 95%% interval at the end %.3f to %.3f\n", end.Tasks, end.Low, end.High)
		fmt.Fprintf(w, "best              %.3f at version %d, sampled\n", r.Best.Sampled.Success, r.Best.Version)
	}
	if r.Target > 0 {
		fmt.Fprintf(w, "target            %g %s", r.Target, r.Outcome())
		if r.SecondsToTarget != nil {
			fmt.Fprintf(w, ", from second %.1f on", *r.SecondsToTarget)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "training          %d steps in %.1f s, ended by %s; newest version %d", r.Steps, r.Seconds, r.End, r.ReleaseHead)
	if !r.NewestMeasured() {
		fmt.Fprint(w, ", not measured")
	}
	fmt.Fprintln(w)
	fmt.Fprintf(w, "rollouts          %d accepted", r.RolloutsAccepted)
	if refused := live.Counts(r.RolloutsRefused); refused != "" {
		fmt.Fprintf(w, ", refused: %s", refused)
	}
	if dropped := live.Counts(r.RolloutsDropped); dropped != "" {
		fmt.Fprintf(w, ", not learned from: %s", dropped)
	}
	if failed := live.Counts(r.RolloutsFailed); failed != "" {
		fmt.Fprintf(w, ", failed: %s", failed)
	}
	fmt.Fprintf(w, "\nreport            %s\n", filepath.Join(dir, "report.html"))
}

// change says a measure of two versions, which are those of the sampled one.
func change(measured, sampled report.Change, how string) string {
	if sampled.StartVersion == nil {
		return "not measured"
	}
	at := func(r report.Rate, version uint64) string {
		if r.Tasks == 0 {
			return fmt.Sprintf("version %d not measured", version)
		}
		return fmt.Sprintf("%.3f at version %d", r.Success, version)
	}
	return at(measured.Start, *sampled.StartVersion) + " -> " + at(measured.End, *sampled.EndVersion) + ", " + how
}
