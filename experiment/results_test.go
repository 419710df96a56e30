package experiment_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lightswarm/lightswarm/experiment"
	"github.com/lightswarm/lightswarm/testnet/report"
)

var update = flag.Bool("update", false, "write the golden files")

// done runs the grid, with one run that its timeout ended.
func done(t *testing.T) (string, *experiment.Results) {
	t.Helper()
	dir := t.TempDir()
	results, _, err := run(t.Context(), t, dir, &fakeRuns{do: func(run, dir string) error {
		end := report.EndSteps
		if run == "ppo 2" {
			end = report.EndTimeout
		}
		return write(dir, fake(run, end))
	}})
	if err != nil {
		t.Fatal(err)
	}
	return dir, results
}

func TestFigures(t *testing.T) {
	_, results := done(t)
	want := []map[string]float64{
		{"start": 0.2, "end": 0.55, "best": 0.55, "greedy_end": 0.65, "steps": 3, "rollouts": 48, "seconds": 30, "steps_to_threshold": 3, "rollouts_to_threshold": 48, "seconds_to_threshold": 20},
		{"start": 0.2, "end": 0.35, "best": 0.35, "greedy_end": 0.45, "steps": 3, "rollouts": 48, "seconds": 30},
	}
	for i, c := range results.Combinations {
		got := map[string]float64{}
		for name, e := range c.Figures {
			got[name] = float64(int(e.Mean*1000+0.5)) / 1000
			if e.Runs != 2 {
				t.Errorf("%s of %s is of %d runs", name, c.Label, e.Runs)
			}
		}
		if diff := cmp.Diff(want[i], got); diff != "" {
			t.Error(diff)
		}
	}
	if c := results.Combinations[1]; c.TimedOut != 1 || c.Done != 2 {
		t.Errorf("%d of %d runs timed out", c.TimedOut, c.Done)
	}
	lag := results.Combinations[0].Curves["lag"]
	if len(lag) != 3 || lag[0].Version != 1 || lag[0].Mean != 1 || lag[2].Mean != 0.5 {
		t.Errorf("lag %+v", lag)
	}
	if n := len(results.Combinations[0].Curves["success"]); n != 2 {
		t.Errorf("%d points of success", n)
	}
}

// The page and results.json are as they were, and all files are the same bytes when they are made again.
func TestPage(t *testing.T) {
	dir, results := done(t)
	for _, name := range []string{"results.md", "results.json"} {
		got := read(t, filepath.Join(dir, name))
		golden := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(golden, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(string(read(t, golden)), string(got)); diff != "" {
			t.Errorf("%s; -update writes it anew: %s", name, diff)
		}
	}
	again := experiment.Folder(t.TempDir())
	if err := again.WriteResults(results); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(string(again), "*"))
	if err != nil || len(files) != 10 {
		t.Fatalf("files %v, %v; want the page, its figures and 8 plots", files, err)
	}
	for _, file := range files {
		if !bytes.Equal(read(t, file), read(t, filepath.Join(dir, filepath.Base(file)))) {
			t.Errorf("%s differs when it is made again", filepath.Base(file))
		}
	}
}

// Plots are XML that has a line for each combination and its label.
func TestPlots(t *testing.T) {
	dir, _ := done(t)
	text := read(t, filepath.Join(dir, "success.svg"))
	labels := map[string]bool{}
	for d := xml.NewDecoder(bytes.NewReader(text)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if characters, ok := token.(xml.CharData); ok {
			labels[string(characters)] = true
		}
	}
	for _, want := range []string{"dppo", "ppo", "version", "held-out success, sampled"} {
		if !labels[want] {
			t.Errorf("the plot does not say %q", want)
		}
	}
	for _, colour := range []string{"#0072B2", "#D55E00"} {
		if !bytes.Contains(text, []byte(colour)) {
			t.Errorf("no line in %s", colour)
		}
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
