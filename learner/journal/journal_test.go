package journal

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lightswarm/lightswarm/learner"
	"github.com/lightswarm/lightswarm/learner/watch"
	"github.com/lightswarm/lightswarm/wire"
)

// write gives some versions' steps to a writer of its own, as a process does that is started anew, and returns its problems.
func write(t *testing.T, folder, network string, versions ...uint64) []error {
	t.Helper()
	var problems []error
	w := Start(Options{
		Folder: folder, Network: wire.SumCID([]byte(network)), Now: time.Now, Problem: func(err error) { problems = append(problems, err) },
	})
	for _, v := range versions {
		w.Stepped(learner.Step{
			Version: v, Groups: 1, Rollouts: 2, RewardMean: 0.5, Loss: math.NaN(), TrainedTokens: 3, Lags: map[uint64]int{0: 1},
			SampledLengths: learner.Lengths{0, 2}, Drops: map[learner.Reason]int{learner.ZeroVariance: 1},
			Environments: []learner.EnvironmentPart{{Part: learner.Part{Name: "calc", Rollouts: 2}, Groups: 1, Agents: []learner.Part{{Name: "\xff", Rollouts: 2}}}},
		}, []watch.Alert{{Kind: watch.LagAtBound, Since: 1, Message: "m", Advice: "a"}})
		w.Evaluated(learner.Evaluation{Version: v, Purpose: wire.PurposeEvaluateGreedy, Tasks: 4, Expected: 4, Successes: 3}, nil)
		w.Evaluated(learner.Evaluation{Version: v, Purpose: wire.PurposeEvaluateSampled, Tasks: 3, Expected: 4}, nil)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	w.Stepped(learner.Step{Version: 99}, nil) // Too late, and harmless.
	return problems
}

// read returns the lines of a folder, as "type version".
func read(t *testing.T, folder string) (lines []Line) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(folder, FileName))
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(raw) {
		var l Line
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		lines = append(lines, l)
	}
	return lines
}

// However often a learner starts anew, and wherever a kill cut the last line, a step and an evaluation have one line.
func TestRestartsRepeatNothing(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "made", "here")
	if got := write(t, folder, "a", 1, 2); len(got) > 0 {
		t.Fatal(got)
	}
	name := filepath.Join(folder, FileName)
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	last := bytes.LastIndexByte(whole[:len(whole)-1], '\n') + 1
	for cut := last; cut <= len(whole); cut += 7 {
		if err := os.WriteFile(name, whole[:cut], 0o644); err != nil {
			t.Fatal(err)
		}
		if got := write(t, folder, "a", 1, 2, 3); len(got) > 0 {
			t.Fatal(got)
		}
		seen := map[string]int{}
		for _, l := range read(t, folder) {
			seen[l.Type+string(rune('0'+l.Version))]++
		}
		for _, key := range []string{"step1", "evaluation1", "step2", "evaluation2", "step3", "evaluation3"} {
			if seen[key] != 1 || len(seen) != 6 {
				t.Fatalf("cut at %d of %d: lines %v", cut, len(whole), seen)
			}
		}
	}
	events, err := filepath.Glob(filepath.Join(folder, "events.out.tfevents.*"))
	if err != nil || len(events) < 2 {
		t.Errorf("event files %v, %v", events, err)
	}
}

func TestLinesSayWhatTheStepWas(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, "a", 7)
	lines := read(t, folder)
	if len(lines) != 2 {
		t.Fatalf("%d lines", len(lines))
	}
	s, e := lines[0], lines[1]
	if s.Version != 7 || s.Network != wire.SumCID([]byte("a")).String() || *s.RewardMean != 0.5 || s.Loss != nil || s.OnPolicyError != nil || *s.Clipped != 0 || s.Drops["zero_variance"] != 1 ||
		s.SampledLengths[1] != 2 || s.Environments[0].Name != "calc" || len(s.Alerts) != 1 || s.Alerts[0].Kind != watch.LagAtBound {
		t.Errorf("the step's line is %+v", s)
	}
	if e.Type != TypeEvaluation || e.Purpose != "evaluate-greedy" || e.Success != 0.75 || e.Low >= 0.75 {
		t.Errorf("the evaluation's line is %+v", e)
	}
}

// What a power cut leaves of the last line does not keep the file from being continued, whatever came to the disk of it.
func TestTornLinesAreCutOff(t *testing.T) {
	for name, rest := range map[string]string{
		"a part": `{"type":"step","netw`, "a letter": `{`, "zeros": "\x00\x00\x00", "zeros at the end": `{"type":"st` + "\x00\x00",
		"zeros at the start": "\x00\x00:3}\n", "zeros within": `{"type":"step","network":` + "\x00\x00\x00}\n", "all but the newline": `{"type":"step"}`,
	} {
		folder := t.TempDir()
		write(t, folder, "a", 1)
		file, err := os.OpenFile(filepath.Join(folder, FileName), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteString(rest); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
		if got := write(t, folder, "a", 2); len(got) > 0 {
			t.Errorf("%s: %v", name, got)
			continue
		}
		if n := len(read(t, folder)); n != 4 {
			t.Errorf("%s: %d lines", name, n)
		}
	}
}

// A learner that runs for long remembers a few evaluations, not all.
func TestEvaluationsAreForgotten(t *testing.T) {
	var j lines
	for version := range uint64(10 * mostEvaluated) {
		j.note(&Line{Type: TypeEvaluation, Version: version, Evaluation: &Evaluation{Purpose: "p"}})
	}
	if len(j.evaluated) != mostEvaluated || !j.has(&Line{Type: TypeEvaluation, Version: 10*mostEvaluated - 1, Evaluation: &Evaluation{Purpose: "p"}}) {
		t.Errorf("%d evaluations are remembered", len(j.evaluated))
	}
}

// What is in the way is told once, and never touched.
func TestWhatIsInTheWayIsToldOnce(t *testing.T) {
	folder := t.TempDir()
	name := filepath.Join(folder, FileName)
	write(t, folder, "a", 1)
	others, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		want    string
		content []byte
	}{
		{"of network", others},
		{"no file of metrics", []byte("notes\n")},
		{"no file of metrics", []byte("notes without a last newline")},
		{"no file of metrics", []byte(`{"data": 1}`)},
		{"no file of metrics", bytes.Repeat([]byte("x"), tailBytes+1)},
		{"no file of metrics", append(bytes.Repeat([]byte("x"), tailBytes+1), '\n')},
	} {
		want, content := test.want, test.content
		if err := os.WriteFile(name, content, 0o644); err != nil {
			t.Fatal(err)
		}
		if got := write(t, folder, "b", 1, 2, 3); len(got) != 1 || !strings.Contains(got[0].Error(), want) {
			t.Errorf("problems %v, want one: %s", got, want)
		}
		if now, err := os.ReadFile(name); err != nil || !bytes.Equal(now, content) {
			t.Errorf("the file was changed to %q, %v", now, err)
		}
	}
	if got := write(t, name, "b", 1, 2); len(got) != 1 {
		t.Errorf("a file in place of the folder: %v", got)
	}
}
