package live

import (
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/lightswarm/lightswarm/testnet"
	"github.com/lightswarm/lightswarm/testnet/report"
)

func state() State {
	mean := 0.61
	return State{
		Title: "testnet",
		Progress: testnet.Progress{
			Phase: "training", Elapsed: 12 * time.Second, Version: 9, Step: 9, Peers: 5,
			RolloutsPerSecond: 800, TokensPerSecond: 12000, Accepted: 2304, Refused: map[string]uint64{"lag": 16, "duplicate": 8, "none": 0},
			Lag: []int{100, 50}, Reward: &mean, Target: 0.95,
			Evaluations: []report.Evaluation{
				{Version: 0, Sampled: report.Rate{Success: 0.3, Tasks: 256}, Greedy: report.Rate{Tasks: 256}},
				{Version: 5, Sampled: report.Rate{Success: 0.75, Low: 0.694, High: 0.799, Tasks: 256}, Greedy: report.Rate{Success: 1, Tasks: 256}},
			},
		},
	}
}

func TestRenderShowsTheCurve(t *testing.T) {
	for _, width := range []int{1, 40, 80, 200} {
		for _, height := range []int{1, 10, 22, 60} {
			out := Render(state(), width, height)
			if got := strings.Count(out, "●"); got != 3 { // two points and the legend
				t.Errorf("%d x %d: %d sampled points, want 3", width, height, got)
			}
			if got := strings.Count(out, "○"); got != 3 {
				t.Errorf("%d x %d: %d greedy points, want 3", width, height, got)
			}
		}
	}
}

// A screen of a common size shows everything, and nothing is cut off at its edge.
func TestRenderFitsTheScreen(t *testing.T) {
	for _, size := range [][2]int{{40, 24}, {60, 20}, {80, 22}, {120, 40}} {
		width, height := size[0], size[1]
		out := strings.TrimSuffix(Render(state(), width, height), "\n")
		lines := strings.Split(out, "\n")
		if len(lines) > height {
			t.Errorf("%d x %d: %d lines", width, height, len(lines))
		}
		for _, line := range lines {
			if w := lipgloss.Width(line); w > width {
				t.Errorf("%d x %d: a line is %d columns wide: %q", width, height, w, line)
			}
		}
		for _, want := range []string{"12000 tokens/s", "train reward 0.61", "version 5, 256 tasks", "- - target 0.95", "(95%: 0.6", "refused lag 16", "duplicate 8", "by lag", "0.00", "1.00"} {
			if !strings.Contains(out, want) {
				t.Errorf("%d x %d: %q is missing", width, height, want)
			}
		}
	}
}

func TestRenderWithoutFigures(t *testing.T) {
	s := State{Progress: testnet.Progress{Evaluations: []report.Evaluation{{Sampled: report.Rate{Tasks: 256}}}}}
	out := Render(s, 80, 24)
	for _, want := range []string{"train reward -", "greedy -"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing where there is no such figure:\n%s", want, out)
		}
	}
	if got := Line(s); !strings.Contains(got, "reward -  ") {
		t.Errorf("a reward before the first step: %s", got)
	}
}

// A problem is told in full on a small screen, and in the line of a log.
func TestProblemsAreShown(t *testing.T) {
	s := state()
	if strings.Contains(Line(s), "problem") {
		t.Errorf("a problem out of nothing: %s", Line(s))
	}
	s.Problem = "rollouts fail, the newest with agent_error: the program failed: exit status 1 … KeyError: 'KEY'"
	out := Render(s, 60, 24)
	for _, want := range []string{"rollouts fail", "KeyError: 'KEY'"} {
		if !strings.Contains(out, want) || !strings.Contains(Line(s), want) {
			t.Errorf("%q is missing:\n%s\n%s", want, out, Line(s))
		}
	}
	for _, line := range strings.Split(out, "\n") {
		if w := lipgloss.Width(line); w > 60 {
			t.Errorf("a line is %d columns wide: %q", w, line)
		}
	}
	s.Problem = strings.Repeat("long ", 1000)
	if n := strings.Count(Render(s, 60, 24), "\n"); n > 24 {
		t.Errorf("a long problem makes a screen of %d lines", n)
	}
}

// What goes wrong in training is told with what to do, on a small screen and in the line of a log.
func TestAlertsAreShown(t *testing.T) {
	s := state()
	s.Alerts = []report.Alert{{Kind: "old", Message: "an older one"}, {Kind: "lag_at_bound", Since: 7, Message: "groups are old", Advice: "let a step take more"}}
	out := Render(s, 60, 24)
	for _, want := range []string{"since version 7 groups are old", "let a step take more"} {
		if !strings.Contains(out, want) || !strings.Contains(Line(s), want) {
			t.Errorf("%q is missing:\n%s\n%s", want, out, Line(s))
		}
	}
	if n := strings.Count(out, "\n"); n > 24 {
		t.Errorf("%d lines", n)
	}
}

// The join command is on a screen of 80 by 24, whole, and a shell reads what is copied from there.
func TestRenderShowsTheJoinCommand(t *testing.T) {
	s := state()
	s.Join = "lightswarm join bafkrei" + strings.Repeat("a", 52) + " --bootstrap /ip4/192.0.2.1/tcp/4001/p2p/12D3Koo" + strings.Repeat("b", 45)
	out := Render(s, 80, 22)
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if len(lines) > 22 {
		t.Errorf("%d lines", len(lines))
	}
	for _, line := range lines {
		if w := lipgloss.Width(line); w > 80 && !strings.HasPrefix(line, "/ip4/") { // One word, which cannot be broken.
			t.Errorf("a line is %d columns wide: %q", w, line)
		}
	}
	if joined := strings.ReplaceAll(out, " \\\n", " "); !strings.Contains(joined, s.Join) {
		t.Errorf("the command is not whole:\n%s", out)
	}
}

func TestRenderManyEvaluations(t *testing.T) {
	s := state()
	for i := range 1000 {
		s.Evaluations = append(s.Evaluations, report.Evaluation{Version: uint64(i), Sampled: report.Rate{Success: 1.2}})
	}
	if out := Render(s, 60, 24); !strings.Contains(out, "●") {
		t.Error("the newest evaluations are missing")
	}
}

// The first q asks the run to stop and says so, the second leaves the screen.
func TestKeysStop(t *testing.T) {
	asked := 0
	var m tea.Model = screen{cancel: func() { asked++ }}
	m, _ = m.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	press := func(text string) tea.Cmd {
		var cmd tea.Cmd
		m, cmd = m.Update(tea.KeyPressMsg{Code: rune(text[0]), Text: text})
		return cmd
	}
	if cmd := press("x"); cmd != nil || asked != 0 {
		t.Error("x stops")
	}
	if cmd := press("q"); cmd != nil || asked != 1 {
		t.Errorf("q asked %d times", asked)
	}
	m, _ = m.Update(state())
	if !strings.Contains(m.View().Content, "stopping; q leaves this screen") {
		t.Error("the screen does not say that the run is stopping")
	}
	if cmd := press("q"); cmd == nil || asked != 1 {
		t.Errorf("the second q does not leave the screen, or asked again (%d)", asked)
	}
}

// What stays on the terminal when the run is over asks for no key.
func TestLastScreenHasNoHint(t *testing.T) {
	var m tea.Model = screen{}
	m, _ = m.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	if !strings.Contains(m.View().Content, "q stops") {
		t.Error("a running screen has no hint")
	}
	m, cmd := m.Update(closed{})
	if cmd == nil {
		t.Error("the program does not end")
	}
	if strings.Contains(m.View().Content, "q stops") {
		t.Error("the last screen says that q stops")
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
