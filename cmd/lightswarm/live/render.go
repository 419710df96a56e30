package live

import (
	"fmt"
	"strings"

	"charm.land/lipgloss/v2"
)

// Plot geometry, in terminal cells.
const (
	plotRows   = 9
	plotMargin = 6
	minWidth   = 40
)

var (
	titleStyle = lipgloss.NewStyle().Bold(true)
	quietStyle = lipgloss.NewStyle().Faint(true)
	lineStyle  = lipgloss.NewStyle().Foreground(lipgloss.Color("12"))
)

// Render draws s as one screen of at most width columns.
func Render(s State, width int) string {
	width = max(width, minWidth)
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s\n", titleStyle.Render(s.Title), quietStyle.Render(fmt.Sprintf("%.0fs  %s", s.Elapsed.Seconds(), s.Phase)))
	fmt.Fprintf(&b, "version %d   step %d   peers %d   train reward %.2f   %.0f rollouts/s   %.0f tokens/s\n\n",
		s.Version, s.Step, s.Peers, s.Reward, s.RolloutsPerSecond, s.TokensPerSecond)
	plot(&b, s, width)
	fmt.Fprintf(&b, "\naccepted %d rollouts", s.Accepted)
	if r := Counts(s.Refused); r != "" {
		b.WriteString("   refused " + r)
	}
	b.WriteString("\n")
	lag(&b, s.Lag, width)
	return b.String()
}

// plot draws held-out success over the evaluations: full dots sampled, hollow ones greedy, a dashed row the target.
func plot(b *strings.Builder, s State, width int) {
	columns := width - plotMargin - 1
	points := s.Evaluations
	if len(points) > columns {
		points = points[len(points)-columns:]
	}
	cells := make([][]rune, plotRows)
	for r := range cells {
		cells[r] = []rune(strings.Repeat(" ", columns))
	}
	if s.Target > 0 {
		for c := 0; c < columns; c += 2 {
			cells[row(s.Target)][c] = '-'
		}
	}
	step := 1
	if n := len(points); n > 1 {
		step = max(1, min(6, (columns-1)/(n-1)))
	}
	for i, e := range points {
		column := min(i*step, columns-1)
		if e.Greedy.Tasks > 0 {
			cells[row(e.Greedy.Success)][column] = '○'
		}
		cells[row(e.Sampled.Success)][column] = '●'
	}
	heading := "held-out success: waiting for the first evaluation"
	if n := len(s.Evaluations); n > 0 {
		e := s.Evaluations[n-1]
		heading = fmt.Sprintf("held-out success  ● sampled %.3f [%.3f, %.3f]  ○ greedy %.3f  (version %d, %d tasks)",
			e.Sampled.Success, e.Sampled.Low, e.Sampled.High, e.Greedy.Success, e.Version, e.Sampled.Tasks)
	}
	b.WriteString(heading + "\n")
	for r, line := range cells {
		label := strings.Repeat(" ", 4)
		if r%2 == 0 {
			label = fmt.Sprintf("%4.2f", 1-float64(r)/(plotRows-1))
		}
		fmt.Fprintf(b, "%s %s%s\n", quietStyle.Render(label), quietStyle.Render("│"), lineStyle.Render(strings.TrimRight(string(line), " ")))
	}
}

// row is the plot row of a value from 0 to 1; the first row is 1.
func row(v float64) int {
	return min(plotRows-1, max(0, int((1-v)*(plotRows-1)+0.5)))
}

// lag draws one bar for each lag.
func lag(b *strings.Builder, counts []int, width int) {
	total := 0
	for _, n := range counts {
		total += n
	}
	if total == 0 {
		return
	}
	b.WriteString("groups trained, by lag\n")
	for l, n := range counts {
		bar := strings.Repeat("█", n*(width-20)/total)
		fmt.Fprintf(b, "%4d %s %d\n", l, lineStyle.Render(bar), n)
	}
}
