package watch

import (
	"cmp"
	"slices"

	"github.com/lightswarm/lightswarm/learner"
	"github.com/lightswarm/lightswarm/wire"
)

// Watch raises and ends alerts. Make one with New; it is not safe for concurrent use.
type Watch struct {
	rules []*latch
}

// New returns a watch of a learner of a network that trains on groups of at most maxLag versions of lag.
func New(maxLag uint64) *Watch {
	w := &Watch{}
	for kind, r := range map[Kind]rule{
		EntropyCollapse: &entropy{},
		RewardStuck:     &reward{},
		TokensMasked:    masked{},
		GradientBlowUp:  &gradient{},
		LagAtBound:      lag{maxLag},
		PeerDominates:   &dominance{},
	} {
		w.rules = append(w.rules, &latch{kind: kind, rule: r, raise: 3, end: 3})
	}
	w.rules = append(w.rules, &latch{kind: HeldOutFalls, rule: &heldOut{}, raise: 3, end: 1})
	slices.SortFunc(w.rules, func(a, b *latch) int { return cmp.Compare(a.kind, b.kind) })
	return w
}

// Step takes in a training step. It returns the alerts that it raised or ended, by kind.
func (w *Watch) Step(s learner.Step) []Change {
	return w.each(s.Version, func(r rule) (verdict, string) { return r.step(&s) })
}

// Evaluated takes in what is known of an evaluation; those that are not complete, or not sampled, change nothing.
func (w *Watch) Evaluated(e learner.Evaluation) []Change {
	if !e.Complete() || e.Purpose != wire.PurposeEvaluateSampled {
		return nil
	}
	return w.each(e.Version, func(r rule) (verdict, string) { return r.evaluated(&e) })
}

// Alerts are those that stand, the oldest first.
func (w *Watch) Alerts() []Alert {
	var standing []Alert
	for _, l := range w.rules {
		if l.alert != nil {
			standing = append(standing, *l.alert)
		}
	}
	slices.SortStableFunc(standing, func(a, b Alert) int { return cmp.Compare(a.Since, b.Since) })
	return standing
}

func (w *Watch) each(version uint64, judge func(rule) (verdict, string)) []Change {
	var changes []Change
	for _, l := range w.rules {
		v, message := judge(l.rule)
		if c, changed := l.add(version, v, message); changed {
			changes = append(changes, c)
		}
	}
	return changes
}

// verdict is what a rule says of one step or evaluation.
type verdict int

const (
	// unknown says nothing: what the rule looks at is not there.
	unknown verdict = iota
	bad
	// between is neither bad enough to raise an alert nor good enough to end one.
	between
	good
)

// rule judges one thing. message says in figures what is bad; it is used only then.
type rule interface {
	step(*learner.Step) (v verdict, message string)
	evaluated(*learner.Evaluation) (v verdict, message string)
}

// latch makes an alert of a rule's verdicts: raise bad ones in a row raise it, end good ones in a row end it. Unknown ones
// do not count.
type latch struct {
	kind       Kind
	rule       rule
	raise, end int
	row        int
	alert      *Alert
}

func (l *latch) add(version uint64, v verdict, message string) (c Change, changed bool) {
	wanted, enough := bad, l.raise
	if l.alert != nil {
		wanted, enough = good, l.end
	}
	switch v {
	case unknown:
		return c, false
	case wanted:
		l.row++
	default:
		l.row = 0
	}
	if l.row < enough {
		return c, false
	}
	l.row = 0
	if l.alert != nil {
		c = Change{Alert: *l.alert, Over: true, Version: version}
		l.alert = nil
		return c, true
	}
	l.alert = &Alert{Kind: l.kind, Since: version, Message: message, Advice: advice[l.kind]}
	return Change{Alert: *l.alert, Version: version}, true
}
