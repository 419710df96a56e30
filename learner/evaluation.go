package learner

import (
	"cmp"
	"iter"
	"maps"
	"math"
	"slices"

	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
	"github.com/lightswarm/lightswarm/wire/draw"
)

// Evaluation is what volunteers measured of one version on held-out tasks.
type Evaluation struct {
	Version uint64
	// Purpose says how tokens were chosen: wire.PurposeEvaluateSampled or wire.PurposeEvaluateGreedy.
	Purpose wire.Purpose
	// Tasks is how many tasks have a result, of Expected. The first valid result of a task counts. A rollout that ended
	// in env_error or timeout is none; one that ended in agent_error is a failure with reward 0.
	Tasks, Expected int
	// Successes is how many of them were solved: their reward is the largest that the environment gives.
	Successes int
	// RewardMean is the mean reward over Tasks.
	RewardMean float64
}

// Complete says whether every expected task has a result.
func (e Evaluation) Complete() bool { return e.Expected > 0 && e.Tasks >= e.Expected }

// Success is the share of solved tasks among those that have a result, 0 when none has.
func (e Evaluation) Success() float64 {
	if e.Tasks == 0 {
		return 0
	}
	return float64(e.Successes) / float64(e.Tasks)
}

// Interval is Wilson's 95% score interval of Success (Wilson 1927): where the success over all tasks of the kind lies
// when these are a random draw of them.
func (e Evaluation) Interval() (low, high float64) { return e.interval(Confident) }

// Confident is how many standard deviations of the normal distribution hold 95% of it.
const Confident = 1.959963984540054

func (e Evaluation) interval(z float64) (low, high float64) {
	if e.Tasks == 0 {
		return 0, 1
	}
	n, p := float64(e.Tasks), e.Success()
	centre := p + z*z/(2*n)
	spread := z * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	scale := 1 + z*z/n
	return max(0, (centre-spread)/scale), min(1, (centre+spread)/scale)
}

// Difference is the interval of e's success less another's that z standard deviations hold: Newcombe's hybrid score interval
// for independent samples (Newcombe 1998, Statistics in Medicine 17, 873-890, method 10). Evaluations of the same tasks vary
// less than such samples, so that it is rather too wide.
func (e Evaluation) Difference(other Evaluation, z float64) (low, high float64) {
	d := e.Success() - other.Success()
	low1, high1 := e.interval(z)
	low2, high2 := other.interval(z)
	return d - math.Hypot(e.Success()-low1, high2-other.Success()), d + math.Hypot(high1-e.Success(), other.Success()-low2)
}

// Board collects evaluation results. It is a state machine without I/O, and not safe for concurrent use.
type Board struct {
	rules   Rules
	tallies map[tallyID]*tally
}

type tallyID struct {
	version uint64
	purpose wire.Purpose
}

// compare orders tallies by version and then purpose.
func (id tallyID) compare(other tallyID) int {
	return cmp.Or(cmp.Compare(id.version, other.version), cmp.Compare(id.purpose, other.purpose))
}

type tally struct {
	tasks, successes int
	rewards          float64
	// done marks the tasks of each environment that have a result; nil once the version takes no more.
	done map[wire.CID][]byte
}

// NewBoard returns an empty board.
func NewBoard(r Rules) *Board {
	return &Board{rules: r, tallies: make(map[tallyID]*tally)}
}

// Add counts the results of an evaluation bundle that passed its checks and returns how many were new.
func (b *Board) Add(e *bundle.Bundle) int {
	id := tallyID{e.PolicyVersion, e.Purpose}
	t := b.tallies[id]
	if t == nil {
		t = &tally{done: make(map[wire.CID][]byte)}
		b.tallies[id] = t
	}
	if t.done == nil {
		return 0
	}
	done := t.done[e.Environment]
	if done == nil {
		done = make([]byte, (b.rules.Charter.Evaluation.Tasks+7)/8)
		t.done[e.Environment] = done
	}
	fresh := 0
	for _, r := range e.Rollouts {
		if !isResult(r.Outcome) || has(done, r.Task) {
			continue
		}
		done[r.Task/8] |= 1 << (r.Task % 8)
		t.tasks++
		t.rewards += float64(r.Reward)
		if r.Outcome.Trainable() && r.Reward >= b.rules.solved(e.Environment) {
			t.successes++
		}
		fresh++
	}
	return fresh
}

// isResult says whether a rollout measures the policy: a fault of its surroundings does not.
func isResult(o bundle.OutcomeKind) bool {
	return o != bundle.OutcomeEnvError && o != bundle.OutcomeTimeout
}

// Lacks says whether Add would count a result of an evaluation bundle.
func (b *Board) Lacks(e *bundle.Bundle) bool {
	t := b.tallies[tallyID{e.PolicyVersion, e.Purpose}]
	if t != nil && t.done == nil {
		return false
	}
	for _, r := range e.Rollouts {
		if isResult(r.Outcome) && (t == nil || !has(t.done[e.Environment], r.Task)) {
			return true
		}
	}
	return false
}

func has(set []byte, i uint64) bool { return i/8 < uint64(len(set)) && set[i/8]&(1<<(i%8)) != 0 }

// Complete says whether every task of a block has a result, as long as its version takes results.
func (b *Board) Complete(version uint64, purpose wire.Purpose, block uint64) bool {
	t := b.tallies[tallyID{version, purpose}]
	if t == nil || t.done == nil || block >= uint64(draw.EvaluationBlocks(b.rules.Charter)) {
		return false
	}
	tasks := draw.EvaluationBlock(b.rules.Charter, int(block))
	for i := range uint64(tasks.Tasks) {
		if !has(t.done[tasks.Environment], tasks.First+i) {
			return false
		}
	}
	return true
}

// Results say which of a version's blocks are complete: what a learner tells others, so that nobody measures them again.
func (b *Board) Results(version uint64) wire.EvaluationResults {
	r := wire.EvaluationResults{Version: version}
	for block := range uint64(min(draw.EvaluationBlocks(b.rules.Charter), 8*wire.MaxResultBytes)) {
		if block%8 == 0 {
			r.Sampled, r.Greedy = append(r.Sampled, 0), append(r.Greedy, 0)
		}
		if b.Complete(version, wire.PurposeEvaluateSampled, block) {
			r.Sampled[block/8] |= 1 << (block % 8)
		}
		if b.Complete(version, wire.PurposeEvaluateGreedy, block) {
			r.Greedy[block/8] |= 1 << (block % 8)
		}
	}
	return r
}

// Close ends the collection for versions before oldest. Their evaluations stay.
func (b *Board) Close(oldest uint64) {
	for id, t := range b.tallies {
		if id.version < oldest {
			t.done = nil
		}
	}
}

// Evaluation returns what is known of a version; Tasks is 0 when nothing is.
func (b *Board) Evaluation(version uint64, purpose wire.Purpose) Evaluation {
	e := Evaluation{
		Version:  version,
		Purpose:  purpose,
		Expected: len(b.rules.Charter.Environments) * int(b.rules.Charter.Evaluation.Tasks),
	}
	if t := b.tallies[tallyID{version, purpose}]; t != nil && t.tasks > 0 {
		e.Tasks, e.Successes, e.RewardMean = t.tasks, t.successes, t.rewards/float64(t.tasks)
	}
	return e
}

// Evaluations returns everything that is known, by version and then purpose.
func (b *Board) Evaluations() []Evaluation { return b.evaluations(maps.Keys(b.tallies)) }

// evaluations are those of some tallies, by version and then purpose.
func (b *Board) evaluations(of iter.Seq[tallyID]) []Evaluation {
	var list []Evaluation
	for _, id := range slices.SortedFunc(of, tallyID.compare) {
		list = append(list, b.Evaluation(id.version, id.purpose))
	}
	return list
}

// Measured says which blocks have their results, of the newest version that asked for evaluation; the zero value if none
// did.
func (l *Learner) Measured() wire.EvaluationResults {
	l.mu.Lock()
	defer l.mu.Unlock()
	version, ok := l.state.NewestEvaluated()
	if !ok {
		return wire.EvaluationResults{}
	}
	return l.board.Results(version)
}
