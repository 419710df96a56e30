package live

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lightswarm/lightswarm/testnet"
	"github.com/lightswarm/lightswarm/testnet/report"
)

// State is what a person wants to know of a running network or node.
type State struct {
	// Title says what runs.
	Title string
	// Join is the command with which others join; empty for none.
	Join string
	testnet.Progress
}

// Line says s in one line of a log.
func Line(s State) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%6.1fs version %d", s.Elapsed.Seconds(), s.Version)
	if n := len(s.Evaluations); n > 0 {
		e := s.Evaluations[n-1]
		fmt.Fprintf(&b, "  held-out %.3f", e.Sampled.Success)
		if e.Greedy.Tasks > 0 {
			fmt.Fprintf(&b, ", greedy %.3f", e.Greedy.Success)
		}
		fmt.Fprintf(&b, " (version %d)", e.Version)
	}
	fmt.Fprintf(&b, "  reward %s  %.0f rollouts/s  %.0f tokens/s  accepted %d", reward(s, 3), s.RolloutsPerSecond, s.TokensPerSecond, s.Accepted)
	if r := Counts(s.Refused); r != "" {
		b.WriteString("  refused " + r)
	}
	if s.Phase != "" {
		b.WriteString("  " + s.Phase)
	}
	for _, a := range s.Alerts {
		b.WriteString("  " + alert(a))
	}
	if s.Problem != "" {
		b.WriteString("  problem: " + s.Problem)
	}
	return b.String()
}

// alert says what goes wrong in training, and what to do.
func alert(a report.Alert) string {
	return fmt.Sprintf("since version %d %s: %s", a.Since, a.Message, a.Advice)
}

// reward is the newest step's, to some decimals, or a dash where there is none.
func reward(s State, decimals int) string {
	if s.Reward == nil {
		return "-"
	}
	return strconv.FormatFloat(*s.Reward, 'f', decimals, 64)
}

// Counts lists reasons with their counts, the most frequent first.
func Counts(counts map[string]uint64) string {
	reasons := make([]string, 0, len(counts))
	for r, n := range counts {
		if n > 0 {
			reasons = append(reasons, r)
		}
	}
	slices.SortFunc(reasons, func(a, b string) int {
		if counts[a] != counts[b] {
			if counts[a] > counts[b] {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	for i, r := range reasons {
		reasons[i] = fmt.Sprintf("%s %d", r, counts[r])
	}
	return strings.Join(reasons, ", ")
}
