package testnet

import (
	"maps"
	"slices"
	"time"

	"github.com/lightswarm/lightswarm/testnet/report"
)

// Progress is a running network, or node, at a glance.
type Progress struct {
	// Phase is what the learner waits for or does now.
	Phase   string
	Elapsed time.Duration
	// Version is the newest release; Step counts training steps.
	Version uint64
	Step    int
	// Peers counts the nodes.
	Peers int
	// RolloutsPerSecond and TokensPerSecond count admitted rollouts and their sampled tokens over the last seconds.
	RolloutsPerSecond, TokensPerSecond float64
	// Accepted and Refused count rollouts, as report.Report does.
	Accepted uint64
	Refused  map[string]uint64
	// Lag counts the consumed groups by lag.
	Lag []int
	// Reward is the mean return of the rollouts that the newest step consumed; nil before the first, and if it had none.
	Reward      *float64
	Evaluations []report.Evaluation
	Target      float64
	// Alerts are what goes wrong in training now, the oldest first.
	Alerts []report.Alert
	// Problem is what a node told last that failed, if it was a moment ago.
	Problem string
}

// problemWindow is how long a problem is told.
const problemWindow = 20 * time.Second

// Progress returns how far the run is. peers is how many nodes there are.
func (c *Collector) Progress(now time.Time, peers int) Progress {
	c.forget(now)
	p := Progress{
		Phase: c.phase, Elapsed: now.Sub(c.started), Version: c.head.Version, Step: c.stepped, Peers: peers,
		Accepted: c.accepted, Refused: maps.Clone(c.refused), Lag: slices.Clone(c.lag),
		Evaluations: c.Evaluations(), Target: c.target,
	}
	window := min(rateWindow, p.Elapsed).Seconds()
	for _, a := range c.recent {
		p.RolloutsPerSecond += float64(a.rollouts)
		p.TokensPerSecond += float64(a.tokens)
	}
	if window > 0 {
		p.RolloutsPerSecond /= window
		p.TokensPerSecond /= window
	}
	for _, a := range c.alerts {
		if a.Over == nil {
			p.Alerts = append(p.Alerts, a)
		}
	}
	if now.Sub(c.problemAt) < problemWindow {
		p.Problem = c.problem
	}
	if n := len(c.steps); n > 0 {
		p.Reward = c.steps[n-1].Reward
	}
	return p
}
