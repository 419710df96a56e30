package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/lightswarm/lightswarm/experiment"
	"github.com/lightswarm/lightswarm/testnet/report"
)

// row is one run in its experiment.
type row struct {
	// name is that of the task, and of what varies.
	name string
	run
	// judged says that the check fails if this run does not hold; others are shown beside it.
	judged bool
	verdict
}

// read returns the results of a task's experiment and its runs, those of one combination after the other.
func read(t task, dir string) (*experiment.Results, []row, error) {
	raw, err := os.ReadFile(filepath.Join(dir, "results.json"))
	if err != nil {
		return nil, nil, fmt.Errorf("read the results of %s: %w", t.name, err)
	}
	var results experiment.Results
	if err := json.Unmarshal(raw, &results); err != nil {
		return nil, nil, fmt.Errorf("read the results of %s: %w", t.name, err)
	}
	var rows []row
	for first := range results.Combinations {
		for i := first; i < len(results.Runs); i += len(results.Combinations) {
			found := results.Runs[i]
			r := row{name: t.name, run: run{seed: found.Seed, state: found.State, failure: found.Failure}}
			label := ""
			if len(found.Varied) > 0 {
				label = results.Combinations[first].Label
				r.name += " " + label
			}
			r.judged = label == t.judged
			if r.state == experiment.StateDone {
				if r.report, err = report.Read(filepath.Join(dir, found.Folder)); err != nil {
					return nil, nil, err
				}
			}
			r.verdict = judge(r.run)
			rows = append(rows, r)
		}
	}
	return &results, rows, nil
}

const format = "%-35s  %-4s  %-5s  %-5s  %-5s  %-17s  %-8s  %-7s  %-7s  %s\n"

// table is what was found of all runs, and their curves.
func table(rows []row) string {
	var b strings.Builder
	fmt.Fprintf(&b, format, "task", "seed", "start", "end", "needs", "mean of thirds", "late low", "allowed", "seconds", "verdict")
	for _, r := range rows {
		seconds := "-"
		if r.report != nil {
			seconds = fmt.Sprintf("%.1f", r.report.Seconds)
		}
		thirds := fmt.Sprintf("%.3f %.3f %.3f", r.thirds[0].success, r.thirds[1].success, r.thirds[2].success)
		fmt.Fprintf(&b, format, r.name, fmt.Sprint(r.seed), share(r.start), share(r.end), share(r.needs), thirds,
			share(r.low), share(r.allowed), seconds, r.says())
	}
	b.WriteString("\nheld-out success, sampled, by version\n")
	for _, r := range rows {
		if r.report == nil {
			continue
		}
		fmt.Fprintf(&b, "%-35s  %-4d ", r.name, r.seed)
		for _, e := range r.report.Evaluations {
			fmt.Fprintf(&b, " %d:%.3f", e.Version, e.Sampled.Success)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func share(x float64) string { return fmt.Sprintf("%.3f", x) }

// says is the verdict in words.
func (r row) says() string {
	text := "holds"
	if len(r.wrong) > 0 {
		text = strings.ReplaceAll(strings.Join(r.wrong, "; "), "\n", " ")
	}
	if !r.judged {
		text = "(shown) " + text
	}
	return text
}

// holds says whether there are judged runs of every task and all of them hold.
func holds(chosen []task, rows []row) bool {
	judged := map[string]bool{}
	for _, r := range rows {
		if !r.judged {
			continue
		}
		if len(r.wrong) > 0 {
			return false
		}
		judged[r.name] = true
	}
	return len(judged) == len(chosen)
}
