package report

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func sample() *Report {
	settled := 20.0
	return &Report{
		Schema: Schema, Version: "test", Command: "lightswarm testnet", Seed: 1, Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Seconds: 40,
		Network: "bafkreitest", Environment: "calc", Target: 0.95, SecondsToTarget: &settled,
		Peers:   []Peer{{ID: "12D3<peer>", Role: "learner"}, {ID: "12D3b", Role: "rollout", Rollouts: 64}},
		HeldOut: Change{Start: Rate{Success: 0.3, Tasks: 256, Low: 0.25, High: 0.36}, End: Rate{Success: 0.97, Tasks: 256, Low: 0.94, High: 0.99}},
		Steps:   2, ReleaseHead: 2, ReleaseCID: "bafkreihead",
		RolloutsAccepted: 512, RolloutsRefused: map[string]uint64{"lag": 8, "duplicate": 16}, RolloutsDropped: map[string]uint64{"zero_variance": 24}, EventsMissed: 3, RolloutsTrained: 512,
		Evaluations: []Evaluation{
			{Version: 0, Seconds: 1, Sampled: Rate{0.3, 256, 0.25, 0.36}, Greedy: Rate{0, 256, 0, 0.02}},
			{Version: 2, Seconds: 20, Sampled: Rate{0.97, 256, 0.94, 0.99}, Greedy: Rate{0.99, 256, 0.97, 1}},
		},
		TrainingSteps: []TrainingStep{{Version: 1, Seconds: 8, Groups: 32, Lag: []int{30, 2}, AcceptedRollouts: 256}, {Version: 2, Seconds: 16, Groups: 32, Lag: []int{20, 10, 2}, AcceptedRollouts: 512}},
		Examples: []Example{
			{Version: 2, Task: 7, Outcome: "scored", Reward: 1, Calls: []Call{{Agent: "solver", Prompt: "tom has 3 <pens>", Completion: "calculator 3+4", Probability: 0.9}}},
			{Version: 0, Task: 7, Outcome: "scored", Calls: []Call{{Agent: "solver", Prompt: "tom has 3 <pens>", Completion: "calculator 3-4", Probability: 0.6}}},
		},
	}
}

func TestWriteKeepsEveryField(t *testing.T) {
	dir := t.TempDir()
	want := sample()
	if err := Write(dir, want); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	var got Report
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, &got); diff != "" {
		t.Errorf("report.json differs from the report (-want +got):\n%s", diff)
	}
	names, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(names) != 2 {
		t.Errorf("the folder holds %v, want report.json and report.html alone", names)
	}
}

func TestHTMLIsSelfContainedAndEscaped(t *testing.T) {
	out, err := HTML(sample())
	if err != nil {
		t.Fatal(err)
	}
	page := string(out)
	for _, want := range []string{"30.0% → 97.0%", "tom has 3 &lt;pens&gt;", "12D3&lt;peer&gt;", "calculator 3-4", "Version 0", "Version 2", "<svg", "duplicate", "zero_variance", "3 events were lost"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, bad := range []string{"<script", "http://", "https://", "<link", "<pens>"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page contains %q: it must need nothing from elsewhere", bad)
		}
	}
	if before, after := strings.Index(page, "Version 0: scored"), strings.Index(page, "Version 2: scored"); before > after {
		t.Error("the example after training stands before the one from the start")
	}
}

func TestHTMLOfAnEmptyRun(t *testing.T) {
	if _, err := HTML(&Report{Schema: Schema}); err != nil {
		t.Fatal(err)
	}
}

func TestSettled(t *testing.T) {
	at := func(v ...float64) []Evaluation {
		var out []Evaluation
		for i, s := range v {
			out = append(out, Evaluation{Seconds: float64(i), Sampled: Rate{Success: s}})
		}
		return out
	}
	for _, c := range []struct {
		name string
		in   []Evaluation
		want float64
		ok   bool
	}{
		{"none", nil, 0, false},
		{"never", at(0.3, 0.9), 0, false},
		{"stays", at(0.3, 0.96, 0.97), 1, true},
		{"falls back", at(0.96, 0.9), 0, false},
		{"recovers", at(0.96, 0.9, 0.95), 2, true},
	} {
		got, ok := Settled(c.in, 0.95)
		if ok != c.ok || (ok && got != c.want) {
			t.Errorf("%s: got %v %v, want %v %v", c.name, got, ok, c.want, c.ok)
		}
	}
}

func TestCeiling(t *testing.T) {
	for in, want := range map[float64]float64{0: 1, 0.3: 0.5, 1: 1, 3: 5, 17: 20, 40: 50, 99: 100, 100: 100} {
		if got := ceiling(in); got != want {
			t.Errorf("ceiling(%v) = %v, want %v", in, got, want)
		}
	}
}
