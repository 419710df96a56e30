package live

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lightswarm/lightswarm/testnet/report"
)

// State is what a person wants to know of a running network or node.
type State struct {
	// Title says what runs, Phase what it waits for or does now.
	Title, Phase string
	Elapsed      time.Duration
	// Version is the newest release; Step counts training steps.
	Version uint64
	Step    int
	Peers   int
	// RolloutsPerSecond and TokensPerSecond count admitted rollouts and their sampled tokens over the last seconds.
	RolloutsPerSecond, TokensPerSecond float64
	// Accepted and Refused count rollouts, as report.Report does.
	Accepted uint64
	Refused  map[string]uint64
	// Lag counts the consumed groups by lag.
	Lag []int
	// Reward is the mean return of the rollouts that the newest step consumed.
	Reward      float64
	Evaluations []report.Evaluation
	Target      float64
}

// Line says s in one line of a log.
func Line(s State) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%6.1fs version %d", s.Elapsed.Seconds(), s.Version)
	if n := len(s.Evaluations); n > 0 {
		e := s.Evaluations[n-1]
		fmt.Fprintf(&b, "  held-out %.3f (greedy %.3f, at version %d)", e.Sampled.Success, e.Greedy.Success, e.Version)
	}
	fmt.Fprintf(&b, "  reward %.3f  %.0f rollouts/s  %.0f tokens/s  accepted %d", s.Reward, s.RolloutsPerSecond, s.TokensPerSecond, s.Accepted)
	if r := refusals(s.Refused); r != "" {
		b.WriteString("  refused " + r)
	}
	if s.Phase != "" {
		b.WriteString("  " + s.Phase)
	}
	return b.String()
}

// refusals lists the reasons, the most frequent first.
func refusals(counts map[string]uint64) string {
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
