package learner

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lightswarm/lightswarm/learner/row"
)

// Where histories continue, level concatenated plans to the bit what trajectory does.
func TestPlanConcatenatesAsTrajectory(t *testing.T) {
	n := plainNetwork(t)
	at := func(level row.Level) []minibatch {
		a := testAlgorithm()
		a.Level = level
		return a.plan(planRules(t, n), []group{groupOf(n, 0, 0, 1, 0, 1, 0), groupOf(n, 1, 3, 1, 1, 1, 0)}).minibatches
	}
	options := cmp.AllowUnexported(minibatch{}, trainRow{}, completion{})
	if diff := cmp.Diff(at(row.Trajectory), at(row.Concatenated), options); diff != "" {
		t.Errorf("minibatches (-trajectory +concatenated):\n%s", diff)
	}
}

// Tokens of calls that do not fit the context are counted.
func TestPlanCountsWhatIsCut(t *testing.T) {
	n := plainNetwork(t)
	g := groupOf(n, 0, 0, 1, 0, 1, 0)
	second := &g.bundle.Rollouts[1].Calls[1]
	second.Prompt = make([]int32, testContext-len(second.Completion)) // fits, but not behind another call
	a := testAlgorithm()
	a.Level, a.Minibatches = row.Concatenated, 1
	p := a.plan(planRules(t, n), []group{g})
	var s Step
	s.show(planRules(t, n), nil, p)
	var want []int
	for _, r := range g.bundle.Rollouts {
		want = append(want, len(r.Calls[0].Completion)+len(r.Calls[1].Completion))
	}
	want[1] = len(g.bundle.Rollouts[1].Calls[0].Completion)
	if s.CutTokens != len(second.Completion) || !slices.Equal(p.minibatches[0].lengths, want) {
		t.Errorf("%d tokens cut, want %d; trained %v, want %v", s.CutTokens, len(second.Completion), p.minibatches[0].lengths, want)
	}
}

// Altered rows are compared with the weights before the step's first update, in every minibatch and whatever was recorded;
// other rows with what was recorded.
func TestAlteredRowsAreRescored(t *testing.T) {
	base := tinyModel(t)
	trainer, err := NewEmbedded(base, 1)
	if err != nil {
		t.Fatal(err)
	}
	made := func(altered bool, tokens ...int32) trainRow {
		return trainRow{
			Row: row.Row{
				Tokens: tokens, Positions: []int32{1, 3}, LogProbs: []float32{-2, -2}, Advantages: []float64{1, -1}, Altered: altered,
			},
			weight: 1, lag: 2,
		}
	}
	minibatches := []minibatch{
		{rows: []trainRow{made(true, 1, 2, 3, 4), made(false, 5, 6, 7, 8)}},
		{rows: []trainRow{made(true, 1, 9, 3, 5)}},
	}
	before, err := trainer.LogProbs([]row.Row{minibatches[0].rows[0].Row, minibatches[1].rows[0].Row})
	if err != nil {
		t.Fatal(err)
	}
	a := testAlgorithm()
	a.TokenBudget = 4
	stats, _, updates, undo, err := a.update(trainer, minibatches, 1e-2)
	if err != nil || updates != 2 || undo != "" {
		t.Fatalf("%d updates, %q, %v", updates, undo, err)
	}
	for i := range minibatches {
		if r := minibatches[i].rows[0]; !slices.Equal(r.LogProbs, before[i]) || r.lag != 0 {
			t.Errorf("minibatch %d: log-probs %v of lag %d, want %v of 0", i, r.LogProbs, r.lag, before[i])
		}
	}
	if r := minibatches[0].rows[1]; r.LogProbs[0] != -2 || r.lag != 2 {
		t.Errorf("a row that is not altered has log-probs %v and lag %d", r.LogProbs, r.lag)
	}
	if stats.onPolicyTokens != 0 {
		t.Errorf("%d tokens count as sampled on-policy", stats.onPolicyTokens)
	}
}
