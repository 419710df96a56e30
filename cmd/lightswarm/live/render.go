package live

import (
	"fmt"
	"strings"

	"charm.land/lipgloss/v2"
)

// Plot geometry, in terminal cells.
const (
	mostRows   = 9
	fewestRows = 3
	plotMargin = 6
	minWidth   = 40
	// mostProblem is how many lines a problem may have.
	mostProblem = 4
)

var (
	titleStyle = lipgloss.NewStyle().Bold(true)
	quietStyle = lipgloss.NewStyle().Faint(true)
	lineStyle  = lipgloss.NewStyle().Foreground(lipgloss.Color("12"))
)

// Render draws s as one screen of width columns, at least 40, and height lines: a low screen has a lower plot, and no lags
// when there is no place for them.
func Render(s State, width, height int) string {
	width = max(width, minWidth)
	head := fields(width, titleStyle.Render(s.Title), quietStyle.Render(fmt.Sprintf("%.0fs", s.Elapsed.Seconds())), quietStyle.Render(s.Phase))
	head = append(head, fields(width, fmt.Sprintf("version %d", s.Version), fmt.Sprintf("peers %d", s.Peers),
		"train reward "+reward(s, 2), fmt.Sprintf("%.0f rollouts/s", s.RolloutsPerSecond), fmt.Sprintf("%.0f tokens/s", s.TokensPerSecond))...)
	head = append(append(head, ""), heading(s, width)...)
	counts := []string{fmt.Sprintf("accepted %d rollouts", s.Accepted)}
	if r := Counts(s.Refused); r != "" {
		counts = append(counts, strings.Split("refused "+r, ", ")...)
	}
	foot := append([]string{""}, fields(width, counts...)...)
	if n := len(s.Alerts); n > 0 { // There is room for the newest; status has them all.
		foot = append(foot, problem(alert(s.Alerts[n-1]), width)...)
	}
	foot = append(foot, problem(s.Problem, width)...)
	foot = append(foot, continued(s.Join, width)...)
	room := height - len(head) - len(foot)
	if lags := lag(s.Lag, width); room-len(lags) >= fewestRows {
		foot, room = append(foot, lags...), room-len(lags)
	}
	lines := append(head, plot(s, width, min(max(room, fewestRows), mostRows))...)
	return strings.Join(append(lines, foot...), "\n") + "\n"
}

// fields puts parts beside each other, and on a new line where the next would not fit.
func fields(width int, parts ...string) []string {
	const gap = "   "
	var lines []string
	for _, part := range parts {
		last := len(lines) - 1
		switch {
		case lipgloss.Width(part) == 0:
		case last >= 0 && lipgloss.Width(lines[last])+len(gap)+lipgloss.Width(part) <= width:
			lines[last] += gap + part
		default:
			lines = append(lines, part)
		}
	}
	return lines
}

// continued breaks a command between its words so that all of it can be copied from the screen into a shell.
func continued(command string, width int) []string {
	const more = ` \`
	var lines []string
	for _, word := range strings.Fields(command) {
		last := len(lines) - 1
		if last >= 0 && len(lines[last])+1+len(word)+len(more) <= width {
			lines[last] += " " + word
			continue
		}
		if last >= 0 {
			lines[last] += more
		}
		lines = append(lines, word)
	}
	return lines
}

// problem wraps what failed, in a few lines.
func problem(text string, width int) []string {
	if text == "" {
		return nil
	}
	lines := strings.Split(lipgloss.NewStyle().Width(width).Render(text), "\n")
	return lines[:min(len(lines), mostProblem)]
}

// heading says the newest evaluation in figures, and with it the marks of the plot.
func heading(s State, width int) []string {
	target := ""
	if s.Target > 0 {
		target = fmt.Sprintf("- - target %g", s.Target)
	}
	n := len(s.Evaluations)
	if n == 0 {
		return fields(width, "held-out success: no evaluation yet", target)
	}
	e := s.Evaluations[n-1]
	greedy := "○ greedy -"
	if e.Greedy.Tasks > 0 {
		greedy = fmt.Sprintf("○ greedy %.3f", e.Greedy.Success)
	}
	return fields(width, "held-out success", fmt.Sprintf("● sampled %.3f (95%%: %.3f-%.3f)", e.Sampled.Success, e.Sampled.Low, e.Sampled.High),
		greedy, fmt.Sprintf("version %d, %d tasks", e.Version, e.Sampled.Tasks), target)
}

// plot draws held-out success over the evaluations: full dots sampled, hollow ones greedy, a dashed row the target.
func plot(s State, width, rows int) []string {
	columns := width - plotMargin - 1
	points := s.Evaluations
	if len(points) > columns {
		points = points[len(points)-columns:]
	}
	cells := make([][]rune, rows)
	for r := range cells {
		cells[r] = []rune(strings.Repeat(" ", columns))
	}
	if s.Target > 0 {
		for c := 0; c < columns; c += 2 {
			cells[row(s.Target, rows)][c] = '-'
		}
	}
	step := 1
	if n := len(points); n > 1 {
		step = max(1, min(6, (columns-1)/(n-1)))
	}
	for i, e := range points {
		column := min(i*step, columns-1)
		if e.Greedy.Tasks > 0 {
			cells[row(e.Greedy.Success, rows)][column] = '○'
		}
		cells[row(e.Sampled.Success, rows)][column] = '●'
	}
	lines := make([]string, rows)
	for r, line := range cells {
		label := strings.Repeat(" ", 4)
		if r%2 == 0 || r == rows-1 {
			label = fmt.Sprintf("%4.2f", 1-float64(r)/float64(rows-1))
		}
		lines[r] = quietStyle.Render(label) + " " + quietStyle.Render("│") + lineStyle.Render(strings.TrimRight(string(line), " "))
	}
	return lines
}

// row is the plot row of a value from 0 to 1; the first row is 1.
func row(v float64, rows int) int {
	return min(rows-1, max(0, int((1-v)*float64(rows-1)+0.5)))
}

// lag draws one bar for each lag.
func lag(counts []int, width int) []string {
	total := 0
	for _, n := range counts {
		total += n
	}
	if total == 0 {
		return nil
	}
	lines := []string{"groups trained, by lag in versions"}
	for l, n := range counts {
		bar := strings.Repeat("█", n*(width-20)/total)
		lines = append(lines, fmt.Sprintf("%4d %s %d", l, lineStyle.Render(bar), n))
	}
	return lines
}
