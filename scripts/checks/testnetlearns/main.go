// Command testnetlearns runs `lightswarm testnet` for several seeds and checks what it says of the run.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// The figures that a run must show.
const (
	startAtMost   = 0.4
	endAtLeast    = 0.95
	secondsAtMost = 60.0
	heldOutTasks  = 256
	// The run goes on until holdAtLeast evaluations in a row reached the target. From keptAfter in a row on, which is what
	// ends training by default, the mean of every keptAfter must not fall below it. A single one may: of 256 tasks, each
	// solved with a chance of 0.97, one evaluation in sixty shows less than 0.95.
	holdAtLeast = 10
	keptAfter   = 3
	// holdQuickly is holdAtLeast of the quick run.
	holdQuickly = 4
)

// result is the last line of `lightswarm testnet --json`.
type result struct {
	HeldOutStart     float64           `json:"held_out_start"`
	HeldOutEnd       float64           `json:"held_out_end"`
	GreedyStart      float64           `json:"greedy_start"`
	GreedyEnd        float64           `json:"greedy_end"`
	Seconds          float64           `json:"seconds"`
	Steps            int               `json:"steps"`
	RolloutsAccepted uint64            `json:"rollouts_accepted"`
	RolloutsRefused  map[string]uint64 `json:"rollouts_refused"`
	ReleaseHead      uint64            `json:"release_head"`
	RunDir           string            `json:"run_dir"`
}

// measured is the part of report.json that the last line does not repeat.
type measured struct {
	SecondsToTarget *float64 `json:"seconds_to_target"`
	Target          float64  `json:"target"`
	End             string   `json:"end"`
	Kept            *struct {
		Evaluations int `json:"evaluations"`
	} `json:"kept"`
	Evaluations []struct {
		Version uint64
		Seconds float64
		Sampled struct{ Success float64 }
	}
	HeldOut struct {
		Start struct{ Tasks int }
		End   struct{ Tasks int }
	} `json:"held_out"`
	Peers []struct{ Role string }
}

func main() {
	seeds, within, hold := os.Args[1:], secondsAtMost, holdAtLeast
	if len(seeds) > 0 && seeds[0] == "--quick" {
		seeds, within, hold = seeds[1:], math.Inf(1), holdQuickly
	}
	if len(seeds) == 0 {
		seeds = []string{"1", "2", "3", "4"}
	}
	failed := false
	var table bytes.Buffer
	fmt.Fprintln(&table, "seed  held-out      greedy        to 0.95  kept  seconds  steps  accepted  verdict")
	for _, seed := range seeds {
		if _, err := strconv.ParseUint(seed, 10, 64); err != nil {
			fmt.Fprintf(os.Stderr, "seed %q is not a number\n", seed)
			os.Exit(2)
		}
		r, m, err := run(seed, hold)
		verdict := "ok"
		if err == nil {
			err = judge(r, m, within, hold)
		}
		if err != nil {
			failed, verdict = true, err.Error()
		}
		settled, kept := "never", 0
		if m.SecondsToTarget != nil && m.Kept != nil {
			settled, kept = fmt.Sprintf("%.1f s", *m.SecondsToTarget), m.Kept.Evaluations
		}
		fmt.Fprintf(&table, "%-4s  %.3f>%.3f   %.3f>%.3f   %-7s  %-4d  %-7.1f  %-5d  %-8d  %s\n",
			seed, r.HeldOutStart, r.HeldOutEnd, r.GreedyStart, r.GreedyEnd, settled, kept, r.Seconds, r.Steps, r.RolloutsAccepted, verdict)
	}
	fmt.Print(table.String())
	if failed {
		os.Exit(1)
	}
}

// run starts one network and reads its last line and its report.
func run(seed string, hold int) (result, measured, error) {
	var r result
	var m measured
	cmd := exec.Command("go", "run", "./cmd/lightswarm", "testnet", "--seed", seed, "--hold", strconv.Itoa(hold), "--json") //nolint:gosec // the seed was parsed
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return r, m, fmt.Errorf("lightswarm testnet: %w", err)
	}
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	if err := json.Unmarshal(lines[len(lines)-1], &r); err != nil {
		return r, m, fmt.Errorf("the last line is not an object: %w", err)
	}
	if _, err := os.Stat(filepath.Join(r.RunDir, "report.html")); err != nil {
		return r, m, fmt.Errorf("no report for a person: %w", err)
	}
	data, err := os.ReadFile(filepath.Join(r.RunDir, "report.json"))
	if err != nil {
		return r, m, err
	}
	return r, m, json.Unmarshal(data, &m)
}

// judge says what does not hold, success within some seconds and for hold evaluations included.
func judge(r result, m measured, within float64, hold int) error {
	learners, rollout := 0, 0
	for _, p := range m.Peers {
		switch p.Role {
		case "learner":
			learners++
		case "rollout":
			rollout++
		}
	}
	switch {
	case learners != 1 || rollout != 4:
		return fmt.Errorf("%d learners and %d rollout nodes, want 1 and 4", learners, rollout)
	case m.HeldOut.Start.Tasks != heldOutTasks || m.HeldOut.End.Tasks != heldOutTasks:
		return fmt.Errorf("measured on %d and %d tasks, want %d", m.HeldOut.Start.Tasks, m.HeldOut.End.Tasks, heldOutTasks)
	case r.HeldOutStart > startAtMost:
		return fmt.Errorf("starts at %.3f, above %.2f", r.HeldOutStart, startAtMost)
	case r.HeldOutEnd < endAtLeast:
		return fmt.Errorf("ends at %.3f, below %.2f", r.HeldOutEnd, endAtLeast)
	case m.Target < endAtLeast || m.SecondsToTarget == nil || *m.SecondsToTarget >= within:
		return fmt.Errorf("success did not stay at %.2f from before second %.0f on", endAtLeast, within)
	case m.End != "target" || m.Kept == nil || m.Kept.Evaluations < hold:
		return fmt.Errorf("the run ended by %s before %d evaluations in a row reached %.2f", m.End, hold, endAtLeast)
	case r.RolloutsAccepted == 0 || r.Steps == 0:
		return fmt.Errorf("nothing was trained")
	}
	return stays(m, within)
}

// stays checks that success, once keptAfter evaluations in a row reached the target, stayed there, and that this was so in
// time.
func stays(m measured, within float64) error {
	row := 0
	for i, e := range m.Evaluations {
		switch {
		case row >= keptAfter:
			sum := 0.0
			for _, recent := range m.Evaluations[i+1-keptAfter : i+1] {
				sum += recent.Sampled.Success
			}
			if mean := sum / keptAfter; mean < endAtLeast {
				return fmt.Errorf("success fell to %.3f, the mean of %d evaluations up to version %d, after it was kept at %.2f", mean, keptAfter, e.Version, endAtLeast)
			}
		case e.Sampled.Success < endAtLeast:
			row = 0
		default:
			if row++; row == keptAfter && e.Seconds >= within {
				return fmt.Errorf("success was kept at %.2f no sooner than in second %.1f", endAtLeast, e.Seconds)
			}
		}
	}
	return nil
}
