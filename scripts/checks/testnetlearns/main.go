// Command testnetlearns runs `lightswarm testnet` for several seeds and checks what it says of the run.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
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
	HeldOut         struct {
		Start struct{ Tasks int }
		End   struct{ Tasks int }
	} `json:"held_out"`
	Peers []struct{ Role string }
}

func main() {
	seeds := os.Args[1:]
	if len(seeds) == 0 {
		seeds = []string{"1", "2", "3", "4"}
	}
	failed := false
	var table bytes.Buffer
	fmt.Fprintln(&table, "seed  held-out      greedy        to 0.95  seconds  steps  accepted  verdict")
	for _, seed := range seeds {
		if _, err := strconv.ParseUint(seed, 10, 64); err != nil {
			fmt.Fprintf(os.Stderr, "seed %q is not a number\n", seed)
			os.Exit(2)
		}
		r, m, err := run(seed)
		verdict := "ok"
		if err == nil {
			err = judge(r, m)
		}
		if err != nil {
			failed, verdict = true, err.Error()
		}
		settled := "never"
		if m.SecondsToTarget != nil {
			settled = fmt.Sprintf("%.1f s", *m.SecondsToTarget)
		}
		fmt.Fprintf(&table, "%-4s  %.3f>%.3f   %.3f>%.3f   %-7s  %-7.1f  %-5d  %-8d  %s\n",
			seed, r.HeldOutStart, r.HeldOutEnd, r.GreedyStart, r.GreedyEnd, settled, r.Seconds, r.Steps, r.RolloutsAccepted, verdict)
	}
	fmt.Print(table.String())
	if failed {
		os.Exit(1)
	}
}

// run starts one network and reads its last line and its report.
func run(seed string) (result, measured, error) {
	var r result
	var m measured
	cmd := exec.Command("go", "run", "./cmd/lightswarm", "testnet", "--seed", seed, "--json") //nolint:gosec // the seed was parsed
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

// judge says what does not hold.
func judge(r result, m measured) error {
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
	case m.Target < endAtLeast || m.SecondsToTarget == nil || *m.SecondsToTarget >= secondsAtMost:
		return fmt.Errorf("success did not stay at %.2f from before second %.0f on", endAtLeast, secondsAtMost)
	case r.RolloutsAccepted == 0 || r.Steps == 0:
		return fmt.Errorf("nothing was trained")
	}
	return nil
}
