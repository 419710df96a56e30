package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/lightswarm/lightswarm/experiment"
	"github.com/lightswarm/lightswarm/testnet/report"
)

// stored writes an experiment's results with one run of each combination and returns its folder. The runs are done if there
// is a curve of theirs.
func stored(t *testing.T, combinations map[string][]float64) string {
	t.Helper()
	dir := t.TempDir()
	results := experiment.Results{Schema: experiment.Schema, Versions: []string{"v1"}}
	for label, success := range combinations {
		c := experiment.Combination{Label: label}
		r := experiment.RunResult{Seed: 1, State: experiment.StateMissing, Folder: "runs/" + label}
		if label != "all runs" {
			c.Varied = []experiment.Setting{{Flag: "learner-agents", Value: label}}
			r.Varied = c.Varied
		}
		if success != nil {
			r.State = experiment.StateDone
			measured := done(success...).report
			measured.Schema, measured.Started = report.Schema, time.Date(2030, 1, 31, 23, 0, 0, 0, time.UTC)
			save(t, filepath.Join(dir, r.Folder, "report.json"), measured)
		}
		results.Combinations, results.Runs = append(results.Combinations, c), append(results.Runs, r)
	}
	save(t, filepath.Join(dir, "results.json"), results)
	return dir
}

func save(t *testing.T, name string, v any) {
	t.Helper()
	raw, err := json.Marshal(v)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(name), 0o755)
	}
	if err == nil {
		err = os.WriteFile(name, raw, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

var (
	good = []float64{0.3, 0.4, 0.5, 0.6, 0.7, 0.8}
	bad  = []float64{0.3, 0.3, 0.3, 0.3, 0.3, 0.3}
)

// What is judged decides alone, and has to be there.
func TestHolds(t *testing.T) {
	for name, tt := range map[string]struct {
		task         task
		combinations map[string][]float64
		want         bool
	}{
		"good":                {task{name: "a"}, map[string][]float64{"all runs": good}, true},
		"bad":                 {task{name: "a"}, map[string][]float64{"all runs": bad}, false},
		"missing":             {task{name: "a"}, map[string][]float64{"all runs": nil}, false},
		"the other is bad":    {task{name: "a", judged: "x"}, map[string][]float64{"x": good, "x,y": bad}, true},
		"only the other good": {task{name: "a", judged: "x"}, map[string][]float64{"x": bad, "x,y": good}, false},
		"nothing is judged":   {task{name: "a", judged: "z"}, map[string][]float64{"x": good, "x,y": good}, false},
	} {
		t.Run(name, func(t *testing.T) {
			results, rows, err := read(tt.task, stored(t, tt.combinations))
			if err != nil {
				t.Fatal(err)
			}
			chosen := []task{tt.task}
			if got := holds(chosen, rows); got != tt.want {
				t.Errorf("holds %v, want %v\n%s", got, tt.want, table(rows))
			}
			text := section(chosen, []*experiment.Results{results}, rows)
			if strings.Count(text, "0:0.300 2:0.") != len(rows)-strings.Count(text, "it is missing") {
				t.Errorf("the section lacks a curve:\n%s", text)
			}
		})
	}
}

func TestSectionSaysWhenAndWhat(t *testing.T) {
	judged := task{name: "a"}
	results, rows, err := read(judged, stored(t, map[string][]float64{"all runs": good}))
	if err != nil {
		t.Fatal(err)
	}
	text := section([]task{judged}, []*experiment.Results{results, results}, rows)
	for _, part := range []string{
		"Runs from 2030-01-31 to 2030-01-31, by lightswarm v1, as",
		"\nlightswarm experiment examples/experiments/a.toml\n",
		"](learning/a-success.svg)",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("the section lacks %q:\n%s", part, text)
		}
	}
}

// A section that is written again takes the place of the one before, and nothing else on the page changes.
func TestSpliceReplaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-z]{1,9}\n`)
		before, after, first, second := text.Draw(t, "before"), text.Draw(t, "after"), text.Draw(t, "first"), text.Draw(t, "second")
		page, err := splice([]byte(before), first)
		if err != nil {
			t.Fatal(err)
		}
		page, err = splice(slices.Concat(page, []byte(after)), second)
		if want := before + "\n" + markOpen + second + markEnd + after; err != nil || string(page) != want {
			t.Errorf("%q, %v, want %q", page, err, want)
		}
		if _, err := splice([]byte(before+markOpen+first), second); err == nil {
			t.Error("a section without an end was replaced")
		}
	})
}
