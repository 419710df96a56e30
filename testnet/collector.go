package testnet

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/lightswarm/lightswarm/learner"
	"github.com/lightswarm/lightswarm/node/api"
	"github.com/lightswarm/lightswarm/testnet/report"
	"github.com/lightswarm/lightswarm/wire"
)

// rateWindow is how far back the rates of a Progress look.
const rateWindow = 5 * time.Second

// Collector turns the events of a network's nodes into figures. It is a state machine without I/O, and not safe for
// concurrent use. Events of one node come in their order.
type Collector struct {
	started   time.Time
	groupSize int
	target    float64

	nodes map[string]*source
	// missed counts events that were lost between a node and the collector: then counts of rollouts are too low.
	missed uint64

	phase       string
	finished    bool // the learner waits for nothing more
	head        api.Release
	steps       []report.TrainingStep
	stepped     int // training steps, kept or not
	groups      int // consumed, of any lag
	lag         []int
	accepted    uint64
	refused     map[string]uint64
	dropped     map[string]uint64
	trained     uint64
	byPeer      map[string]uint64
	recent      []arrival
	evaluations map[uint64]*evaluation
	alerts      []report.Alert
	problem     string // the newest
	problemAt   time.Time
	// bundles are the accepted evaluation bundles by version.
	bundles map[uint64][]string
	// keep bounds steps, evaluations and bundles; 0 does not.
	keep int
}

// source is a node that events come from.
type source struct {
	seen bool
	next uint64 // id of the next event
}

// arrival is admitted work of one moment.
type arrival struct {
	at               time.Time
	rollouts, tokens int
}

// evaluation is a version's two measures and when they were complete.
type evaluation struct {
	sampled, greedy *api.Evaluation
	at              time.Time
}

// NewCollector returns a collector of a run that started at an instant. groupSize is the charter's, target the held-out
// success that the run is to reach, 0 for none.
func NewCollector(started time.Time, groupSize int, target float64) *Collector {
	return &Collector{
		started: started, groupSize: groupSize, target: target,
		nodes:   make(map[string]*source),
		refused: make(map[string]uint64), dropped: make(map[string]uint64), byPeer: make(map[string]uint64),
		evaluations: make(map[uint64]*evaluation), bundles: make(map[uint64][]string),
	}
}

// Keep makes the collector forget all but the newest n steps and evaluated versions, for a node that runs for ever. What
// Fill writes is then incomplete; what Progress counts is not.
func (c *Collector) Keep(n int) { c.keep = n }

// dropOldest makes a map of versions no larger than most, unless that is 0.
func dropOldest[V any](m map[uint64]V, most int) {
	for most > 0 && len(m) > most {
		delete(m, slices.Min(slices.Collect(maps.Keys(m))))
	}
}

// Add takes in an event of a node.
func (c *Collector) Add(node string, e api.Event) {
	s := c.nodes[node]
	if s == nil {
		s = &source{}
		c.nodes[node] = s
	}
	// A node that restarted counts anew, from an id that may be any.
	if s.seen && e.ID > s.next {
		c.missed += e.ID - s.next
	}
	s.seen, s.next = true, e.ID+1
	switch {
	case e.Phase != nil:
		c.phase, c.finished = e.Phase.Phase, c.finished || e.Phase.Finished
	case e.Release != nil:
		if e.Release.Version >= c.head.Version {
			c.head = *e.Release
		}
	case e.Verdict != nil:
		c.judged(e.Time, e.Verdict)
	case e.Step != nil:
		c.step(e.Time, e.Step)
	case e.Alert != nil:
		c.alerted(e.Alert)
	case e.Problem != nil:
		c.problem, c.problemAt = e.Problem.Message, e.Time
	case e.Evaluation != nil:
		c.evaluated(e.Time, e.Evaluation)
	}
}

// judged counts a bundle that the learner accepted or refused.
func (c *Collector) judged(at time.Time, v *api.VerdictEvent) {
	switch {
	case v.Purpose != wire.PurposeTrain.String():
		if v.Accepted {
			c.bundles[v.Version] = append(c.bundles[v.Version], v.CID)
			dropOldest(c.bundles, c.keep)
		}
	case !v.Accepted:
		c.refused[v.Reason] += uint64(v.Rollouts)
	default:
		c.accepted += uint64(v.Rollouts)
		c.byPeer[v.Peer] += uint64(v.Rollouts)
		c.recent = append(c.recent, arrival{at, v.Rollouts, v.CompletionTokens})
		c.forget(at)
	}
}

// forget drops arrivals that no rate looks at any more.
func (c *Collector) forget(now time.Time) {
	old := 0
	for old < len(c.recent) && now.Sub(c.recent[old].at) > rateWindow {
		old++
	}
	c.recent = c.recent[old:]
}

// step notes a training step.
func (c *Collector) step(at time.Time, s *api.StepEvent) {
	step := report.TrainingStep{
		Version: s.Version, Seconds: at.Sub(c.started).Seconds(),
		Groups: s.Groups, ZeroVariance: s.Drops[string(learner.ZeroVariance)], Learned: s.Learned, Asked: s.Active * int(s.Quota), Rollouts: s.Rollouts, Tokens: s.Tokens,
		Reward: s.RewardMean, AdvantageStd: s.AdvantageStd, EffectiveSamples: s.EffectiveSamples,
		ClipFraction: s.Clipped, Entropy: s.Entropy, KLBehaviour: s.KL, GradNorm: s.GradientNorm,
		WaitedSeconds: s.WaitedSeconds, TrainedSeconds: s.TrainedSeconds,
		AcceptedRollouts: c.accepted,
	}
	for lag, n := range s.Lags {
		step.Lag = count(step.Lag, lag, n)
		c.lag = count(c.lag, lag, n)
	}
	for reason, groups := range s.Drops {
		c.dropped[reason] += uint64(groups * c.groupSize)
	}
	c.trained += uint64(s.Rollouts)
	c.groups += s.Groups
	c.steps = append(c.steps, step)
	c.stepped++
	if c.keep > 0 && len(c.steps) > c.keep {
		c.steps = slices.Delete(c.steps, 0, len(c.steps)-c.keep)
	}
}

// alerted notes that an alert was raised or is over.
func (c *Collector) alerted(a *api.AlertEvent) {
	if !a.Over {
		c.alerts = append(c.alerts, report.Alert{Kind: a.Kind, Since: a.Since, Message: a.Message, Advice: a.Advice})
	}
	for i := range c.alerts {
		if seen := &c.alerts[i]; a.Over && seen.Kind == a.Kind && seen.Over == nil {
			version := a.Version
			seen.Over = &version
		}
	}
	if c.keep > 0 && len(c.alerts) > c.keep {
		c.alerts = slices.Delete(c.alerts, 0, len(c.alerts)-c.keep)
	}
}

// count adds n at index i of a histogram. A lag that no charter permits is not one.
func count(histogram []int, i uint64, n int) []int {
	if i > wire.MaxLag {
		return histogram
	}
	for uint64(len(histogram)) <= i {
		histogram = append(histogram, 0)
	}
	histogram[i] += n
	return histogram
}

// evaluated notes a complete measure.
func (c *Collector) evaluated(at time.Time, v *api.Evaluation) {
	e := c.evaluations[v.Version]
	if e == nil {
		e = &evaluation{}
		c.evaluations[v.Version] = e
		dropOldest(c.evaluations, c.keep)
	}
	switch v.Purpose {
	case wire.PurposeEvaluateSampled.String():
		if e.sampled == nil {
			e.at = at
		}
		e.sampled = v
	case wire.PurposeEvaluateGreedy.String():
		e.greedy = v
	}
}

// Evaluations returns the versions whose sampled measure is complete, in order.
func (c *Collector) Evaluations() []report.Evaluation {
	var list []report.Evaluation
	for _, version := range slices.Sorted(maps.Keys(c.evaluations)) {
		e := c.evaluations[version]
		if e.sampled == nil {
			continue
		}
		list = append(list, report.Evaluation{
			Version: version, Seconds: e.at.Sub(c.started).Seconds(), Sampled: rate(e.sampled), Greedy: rate(e.greedy),
		})
	}
	return list
}

// rate is a measure with its interval; zero without a measure.
func rate(e *api.Evaluation) report.Rate {
	if e == nil {
		return report.Rate{}
	}
	counted := learner.Evaluation{Tasks: e.Tasks, Successes: int(math.Round(e.Success * float64(e.Tasks)))}
	low, high := counted.Interval()
	return report.Rate{Success: counted.Success(), Tasks: e.Tasks, Low: low, High: high}
}

// Done says that the chain of releases has ended and its last version is measured, sampled and greedy, or that the
// learner has given its measure up.
func (c *Collector) Done() bool {
	if !c.head.Final || c.finished {
		return c.finished
	}
	e := c.evaluations[c.head.Version]
	return e != nil && e.sampled != nil && e.greedy != nil
}

// Reached says whether the run did what it was for: the newest hold measures, or more, are at least the target. Without a
// target there is nothing to miss.
func (c *Collector) Reached(hold int) bool {
	if c.target == 0 {
		return true
	}
	kept := report.Settled(c.Evaluations(), c.target)
	return kept != nil && kept.Evaluations >= hold
}

// Bundles returns the accepted evaluation bundles of a version, by CID.
func (c *Collector) Bundles(version uint64) []string { return slices.Clone(c.bundles[version]) }

// Fill writes the collected figures into a report.
func (c *Collector) Fill(r *report.Report, now time.Time) {
	r.Started, r.Seconds, r.Target = c.started, now.Sub(c.started).Seconds(), c.target
	r.Steps, r.ReleaseHead, r.ReleaseCID = c.stepped, c.head.Version, c.head.ID
	r.RolloutsAccepted, r.RolloutsTrained = c.accepted, c.trained
	r.RolloutsRefused, r.RolloutsDropped = maps.Clone(c.refused), maps.Clone(c.dropped)
	r.EventsMissed = c.missed
	r.TrainingSteps, r.Alerts = slices.Clone(c.steps), append([]report.Alert{}, c.alerts...)
	r.Measure(c.Evaluations())
	for i := range r.Peers {
		r.Peers[i].Rollouts = c.byPeer[r.Peers[i].ID]
	}
	slices.SortFunc(r.Peers, func(a, b report.Peer) int { return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.ID, b.ID)) })
}
