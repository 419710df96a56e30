package live

import (
	"strings"
	"testing"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/lightswarm/lightswarm/testnet"
	"github.com/lightswarm/lightswarm/testnet/report"
)

func state() State {
	return State{
		Title: "testnet",
		Progress: testnet.Progress{
			Phase: "training", Elapsed: 12 * time.Second, Version: 9, Step: 9, Peers: 5,
			RolloutsPerSecond: 800, TokensPerSecond: 12000, Accepted: 2304, Refused: map[string]uint64{"lag": 16, "duplicate": 8, "none": 0},
			Lag: []int{100, 50}, Reward: 0.61, Target: 0.95,
			Evaluations: []report.Evaluation{
				{Version: 0, Sampled: report.Rate{Success: 0.3, Tasks: 256}, Greedy: report.Rate{Tasks: 256}},
				{Version: 5, Sampled: report.Rate{Success: 0.75, Tasks: 256}, Greedy: report.Rate{Success: 1, Tasks: 256}},
			},
		},
	}
}

func TestRenderShowsTheCurve(t *testing.T) {
	for _, width := range []int{1, 40, 80, 200} {
		out := Render(state(), width)
		if got := strings.Count(out, "●"); got != 3 { // two points and the legend
			t.Errorf("width %d: %d sampled points, want 3", width, got)
		}
		if got := strings.Count(out, "○"); got != 3 {
			t.Errorf("width %d: %d greedy points, want 3", width, got)
		}
	}
	for _, line := range strings.Split(Render(state(), 120), "\n") {
		if w := lipgloss.Width(line); w > 120 {
			t.Errorf("a line is %d columns wide: %q", w, line)
		}
	}
}

func TestRenderManyEvaluations(t *testing.T) {
	s := state()
	for i := range 1000 {
		s.Evaluations = append(s.Evaluations, report.Evaluation{Version: uint64(i), Sampled: report.Rate{Success: 1.2}})
	}
	if out := Render(s, 60); !strings.Contains(out, "●") {
		t.Error("the newest evaluations are missing")
	}
}

func TestLineNamesRefusalsByCount(t *testing.T) {
	got := Line(state())
	for _, want := range []string{"version 9", "held-out 0.750, greedy 1.000 (version 5)", "refused lag 16, duplicate 8", "training"} {
		if !strings.Contains(got, want) {
			t.Errorf("the line lacks %q: %s", want, got)
		}
	}
	if strings.Contains(got, "none") {
		t.Errorf("a reason without refusals is shown: %s", got)
	}
}

func TestPlainLogSpeaksWhenSomethingHappened(t *testing.T) {
	var out strings.Builder
	log := &lines{out: &out}
	s := state()
	log.update(s)
	s.Elapsed += time.Second
	log.update(s) // nothing new
	s.Evaluations = append(s.Evaluations, report.Evaluation{Version: 10})
	log.update(s)
	s.Elapsed += lineInterval
	log.update(s)
	if got := strings.Count(out.String(), "\n"); got != 3 {
		t.Errorf("%d lines, want 3:\n%s", got, out.String())
	}
}
