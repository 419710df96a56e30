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
	evaluations := []Evaluation{
		{Version: 0, Seconds: 1, Sampled: Rate{0.3, 256, 0.25, 0.36}, Greedy: Rate{0, 256, 0, 0.02}},
		{Version: 1, Seconds: 20, Sampled: Rate{0.98, 256, 0.95, 0.99}, Greedy: Rate{0.99, 256, 0.97, 1}},
		{Version: 2, Seconds: 30, Sampled: Rate{0.97, 256, 0.94, 0.99}},
	}
	reward, solved := 0.5, 1.0
	r := &Report{
		Schema: Schema, Version: "test", Command: "lightswarm testnet", Seed: 1, Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Seconds: 40,
		Network: "bafkreitest", Environment: "calc", Target: 0.95, End: EndTimeout,
		Peers: []Peer{{ID: "12D3<peer>", Role: "learner"}, {ID: "12D3b", Role: "rollout", Rollouts: 64}},
		Steps: 2, ReleaseHead: 3, ReleaseCID: "bafkreihead",
		RolloutsAccepted: 512, RolloutsRefused: map[string]uint64{"lag": 8, "duplicate": 16}, RolloutsDropped: map[string]uint64{"zero_variance": 24}, RolloutsFailed: map[string]uint64{"agent_error": 5}, EventsMissed: 3, RolloutsTrained: 512,
		TrainingSteps: []TrainingStep{{Version: 1, Seconds: 8, Groups: 32, Lag: []int{30, 2}, AcceptedRollouts: 256, Reward: &reward}, {Version: 2, Seconds: 16, Groups: 32, Lag: []int{20, 10, 2}, AcceptedRollouts: 512}},
		Examples: []Example{
			{Version: 2, Task: 7, Outcome: "scored", Reward: &solved, Calls: []Call{{Agent: "solver", Prompt: "tom has 3 <pens>", Completion: "calculator 3+4", Probability: 0.9}}},
			{Version: 0, Task: 7, Outcome: "scored", Calls: []Call{{Agent: "solver", Prompt: "tom has 3 <pens>", Completion: "calculator 3-4", Probability: 0.6}}},
		},
	}
	r.Measure(evaluations)
	return r
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

// What was not measured is null in report.json, not 0.
func TestUnmeasuredIsNull(t *testing.T) {
	dir := t.TempDir()
	r := &Report{TrainingSteps: []TrainingStep{{Version: 1}}, Examples: []Example{{Outcome: "timeout"}}}
	r.Measure([]Evaluation{{Sampled: Rate{Success: 0, Tasks: 256, High: 0.02}}})
	if err := Write(dir, r); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		HeldOut  map[string]any   `json:"held_out"`
		Greedy   map[string]any   `json:"greedy"`
		Steps    []map[string]any `json:"training_steps"`
		Examples []map[string]any `json:"examples"`
	}
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if start, there := got.Greedy["start"]; start != nil || !there || got.HeldOut["start"] == nil {
		t.Errorf("held-out %v, greedy %v", got.HeldOut, got.Greedy)
	}
	for _, name := range []string{"reward", "advantage_std", "effective_samples", "clip_fraction", "entropy", "kl_behaviour", "grad_norm"} {
		if v, there := got.Steps[0][name]; v != nil || !there {
			t.Errorf("%s is %v", name, v)
		}
	}
	if v, there := got.Examples[0]["reward"]; v != nil || !there {
		t.Errorf("the reward of a rollout that timed out is %v", v)
	}
}

func TestHTMLIsSelfContainedAndEscaped(t *testing.T) {
	out, err := HTML(sample())
	if err != nil {
		t.Fatal(err)
	}
	page := string(out)
	for _, want := range []string{"30.0% → 97.0%", "tom has 3 &lt;pens&gt;", "12D3&lt;peer&gt;", "calculator 3-4", "Version 0", "Version 2", "<svg", "the learner had it already", "zero_variance", "all rewarded alike", "the agent failed", "3 events were lost",
		"version 0 → version 2", "0.0% → not measured", "98.0%</b><span>best success, sampled, version 1", "newest version 3, not measured; ended by the timeout",
		"20.0 s</b><span>until success stayed at 95.0% or more: kept over 2 evaluations, versions 1 to 2",
	} {
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
	out, err := HTML(&Report{Schema: Schema})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(out), "not measured → not measured") {
		t.Error("the page does not say that nothing was measured")
	}
	for _, bad := range []string{"0.0%", "never", "best success"} {
		if strings.Contains(string(out), bad) {
			t.Errorf("the page of a run without target and measure says %q", bad)
		}
	}
}

func TestSettled(t *testing.T) {
	at := func(v ...float64) []Evaluation {
		var out []Evaluation
		for i, s := range v {
			out = append(out, Evaluation{Version: uint64(i), Seconds: float64(i), Sampled: Rate{Success: s, Tasks: 256}})
		}
		return out
	}
	for _, c := range []struct {
		name    string
		in      []Evaluation
		want    *Kept
		outcome string
	}{
		{"none", nil, nil, "not reached"},
		{"never", at(0.3, 0.9), nil, "not reached"},
		{"stays", at(0.3, 0.96, 0.97), &Kept{2, 1, 2, 1}, "kept over 2 evaluations, versions 1 to 2"},
		{"falls back", at(0.96, 0.9), nil, "not kept: reached at version 0, 0.900 at version 1"},
		{"recovers", at(0.96, 0.9, 0.95), &Kept{1, 2, 2, 2}, "reached in the last evaluation, of version 2"},
	} {
		if diff := cmp.Diff(c.want, Settled(c.in, 0.95)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", c.name, diff)
		}
		r := Report{Target: 0.95}
		if r.Measure(c.in); r.Outcome() != c.outcome {
			t.Errorf("%s: %q, want %q", c.name, r.Outcome(), c.outcome)
		}
	}
}

// A figure names its version only if it was measured, and the best is the newest of equals.
func TestMeasureNamesVersions(t *testing.T) {
	rate := func(v float64) Rate { return Rate{Success: v, Tasks: 256} }
	r := Report{ReleaseHead: 5}
	r.Measure([]Evaluation{
		{Version: 0, Sampled: rate(0.3), Greedy: rate(0)},
		{Version: 1, Sampled: rate(0.9), Greedy: rate(1)},
		{Version: 2, Sampled: rate(0.9), Greedy: rate(1)},
		{Version: 4, Sampled: rate(0.8)},
	})
	zero, four := uint64(0), uint64(4)
	want := []Change{{rate(0.3), &zero, rate(0.8), &four}, {rate(0), &zero, Rate{}, nil}}
	if diff := cmp.Diff(want, []Change{r.HeldOut, r.Greedy}); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if r.Best.Version != 2 || r.NewestMeasured() || r.Outcome() != "" || r.Kept != nil {
		t.Errorf("best %d, newest measured %v, outcome %q, kept %v", r.Best.Version, r.NewestMeasured(), r.Outcome(), r.Kept)
	}
}

func TestCeiling(t *testing.T) {
	for in, want := range map[float64]float64{0: 1, 0.3: 0.5, 1: 1, 3: 5, 17: 20, 40: 50, 99: 100, 100: 100} {
		if got := ceiling(in); got != want {
			t.Errorf("ceiling(%v) = %v, want %v", in, got, want)
		}
	}
}
