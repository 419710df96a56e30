package learner

import (
	"math"
	"slices"

	"github.com/lightswarm/lightswarm/learner/advantage"
	"github.com/lightswarm/lightswarm/learner/credit"
	"github.com/lightswarm/lightswarm/learner/row"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

// group is a bundle whose turn to be trained on has come.
type group struct {
	record Record
	bundle *bundle.Bundle
	lag    uint64
	states [][][]float32 // [rollout][call]: the hidden states that a critic reads; nil without one
}

// minibatch is the rows of one optimiser update.
type minibatch struct {
	rows []trainRow
	// lengths is how many trained tokens each rollout has that has any.
	lengths []int
	// completions are those that are trained on.
	completions []completion
	// cut is how many of their tokens no row has room for.
	cut int
}

// completion is one call's, trained on with an advantage.
type completion struct {
	tokens    int
	advantage float64
}

// trainRow is a row with what the loss needs besides.
type trainRow struct {
	row.Row
	// rollout is the index of its rollout in the minibatch's lengths.
	rollout int
	// weight is how much each of its tokens counts.
	weight float64
	lag    uint64
}

// plan is what a step will do with its groups.
type plan struct {
	minibatches []minibatch
	// drops counts the groups that teach nothing, by reason.
	drops map[Reason]int
	// learned is how many groups teach something.
	learned int
	// rollouts have a reward; rewards is their sum, solved how many got the largest.
	rollouts int
	rewards  float64
	solved   int
	// memory is what an estimator that remembers knows once the step counts; nil for others.
	memory advantage.Memory
	// explained is the share of the variance of the calls' returns that a critic explained; NaN if that was not measured.
	explained float64
}

// scored is a group's rollouts that have a reward, with the return of each call.
type scored struct {
	group    group
	rollouts []*bundle.Rollout
	trained  [][]bool         // [rollout][call]: whether the call is trained on
	returns  [][]float64      // [rollout][call]
	means    []float64        // [rollout]: its return, the mean over its trained calls
	added    [][]float64      // [rollout][call]: advantages that credit assignment makes by itself; nil for none
	seen     []credit.Rollout // what credit assignment is shown
}

// plan turns groups, oldest first, into minibatches. It is pure.
func (a Algorithm) plan(rules *Rules, groups []group) plan {
	p := plan{minibatches: make([]minibatch, a.Minibatches), drops: make(map[Reason]int), explained: math.NaN()}
	var learn []scored
	seen := make([][]credit.Rollout, len(groups))
	for i, g := range groups {
		s := a.score(rules, g)
		seen[i] = s.seen
		for _, r := range s.rollouts {
			p.rollouts++
			p.rewards += float64(r.Reward)
			if r.Reward >= rules.solved(g.bundle.Environment) {
				p.solved++
			}
		}
		if reason := a.useless(s); reason != "" {
			p.drops[reason]++
			continue
		}
		learn = append(learn, s)
	}
	p.learned = len(learn)

	// Groups go round the minibatches, so that each has its part of the old and the new. Those that teach nothing have no
	// place in one: the update is the same without them.
	baselines := a.baselines(learn)
	for i, s := range learn {
		p.minibatches[i%a.Minibatches].add(rules, a.Level, s, baselines[i])
	}
	if r, ok := a.Advantage.(advantage.Remembering); ok {
		p.memory = r.Remember(roleReturns(learn))
	}
	if c, ok := a.Credit.(credit.Learning); ok {
		p.explained = c.Explained(seen)
	}
	for i := range p.minibatches {
		m := &p.minibatches[i]
		weights := a.Normaliser.Weights(m.lengths)
		for j := range m.rows {
			m.rows[j].weight = weights[m.rows[j].rollout]
		}
	}
	return p
}

// weaken makes every token count less, so that the gradient is that part of what it was.
func (p plan) weaken(part float64) {
	for _, m := range p.minibatches {
		for i := range m.rows {
			m.rows[i].weight *= part
		}
	}
}

// score picks the rollouts with a reward and assigns credit.
func (a Algorithm) score(rules *Rules, g group) scored {
	s := scored{group: g}
	for i := range g.bundle.Rollouts {
		r := &g.bundle.Rollouts[i]
		if !r.Outcome.Trainable() {
			continue
		}
		in := credit.Rollout{Reward: float64(r.Reward), Calls: make([]credit.Call, len(r.Calls))}
		for j, c := range r.Calls {
			in.Calls[j].Agent, in.Calls[j].Prompt = c.Agent, c.Prompt
			if g.states != nil {
				in.Calls[j].State = g.states[i][j]
			}
			if c.Reward != nil {
				given := float64(*c.Reward)
				in.Calls[j].Reward = &given
			}
		}
		returns := a.Credit.Assign(in)
		trained := make([]bool, len(r.Calls))
		sum, n := 0.0, 0
		for j, c := range r.Calls {
			trained[j] = rules.trains(g.bundle.Environment, c.Agent) && a.Agents.Has(c.Agent)
			if trained[j] {
				sum += returns[j]
				n++
			}
		}
		mean := in.Reward
		if n > 0 {
			mean = sum / float64(n)
		}
		s.rollouts = append(s.rollouts, r)
		s.trained = append(s.trained, trained)
		s.returns = append(s.returns, returns)
		s.means = append(s.means, mean)
		s.seen = append(s.seen, in)
	}
	if c, ok := a.Credit.(credit.Comparer); ok {
		s.added = c.Compare(s.seen)
	}
	return s
}

// useless says why a group teaches nothing, "" when it does.
func (a Algorithm) useless(s scored) Reason {
	if len(s.rollouts) < 2 {
		return TooFewScored
	}
	trained, added := false, false
	for i := range s.rollouts {
		for j, trains := range s.trained[i] {
			trained = trained || trains
			added = added || trains && s.extra(i, j) != 0
		}
	}
	switch {
	case !trained:
		return Untrained
	case s.flat() && !added && !advantage.LearnsFromFlat(a.Advantage):
		return ZeroVariance
	}
	return ""
}

// flat says whether there is nothing to compare: all returns are equal, or all rollouts have the same ones, call by call,
// as discounted returns of equal rewards are.
func (s scored) flat() bool {
	all, alike := slices.Clone(s.means), true
	var first []float64
	for i := range s.rollouts {
		var returns []float64
		for j, trains := range s.trained[i] {
			if trains {
				returns = append(returns, s.returns[i][j])
			}
		}
		if i == 0 {
			first = returns
		}
		alike = alike && slices.Equal(first, returns)
		all = append(all, returns...)
	}
	return alike || advantage.Flat(all)
}

// extra is what credit assignment adds to a call's advantage.
func (s scored) extra(rollout, call int) float64 {
	if s.added == nil {
		return 0
	}
	return s.added[rollout][call]
}

// add lays out the rollouts of a group.
func (m *minibatch) add(rules *Rules, level row.Level, s scored, baseline func(agent string) advantage.Baseline) {
	for i, r := range s.rollouts {
		calls, sampled := make([]row.Call, len(r.Calls)), 0
		for j, c := range r.Calls {
			calls[j] = row.Call{
				Prompt:     c.Prompt,
				Completion: c.Completion,
				LogProbs:   c.LogProbs,
				Advantage:  baseline(c.Agent).Of(s.returns[i][j]) + s.extra(i, j),
				Train:      s.trained[i][j],
				Grammar:    c.Grammar,
				Room:       rules.room(s.group.bundle, &r.Calls[j]),
			}
			if calls[j].Train {
				sampled += len(c.Completion)
				m.completions = append(m.completions, completion{len(c.Completion), calls[j].Advantage})
			}
		}
		length := 0
		for _, laidOut := range level.Rows(calls, rules.Context) {
			m.rows = append(m.rows, trainRow{Row: laidOut, rollout: len(m.lengths), lag: s.group.lag})
			length += len(laidOut.Positions)
		}
		m.cut += sampled - length
		if length > 0 {
			m.lengths = append(m.lengths, length)
		}
	}
}
