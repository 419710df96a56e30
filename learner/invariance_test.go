package learner

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/lightswarm/lightswarm/learner/advantage"
	"github.com/lightswarm/lightswarm/learner/credit"
	"github.com/lightswarm/lightswarm/learner/row"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

// drawAlgorithm draws a way to assign credit, to compare rollouts and to lay them out.
func drawAlgorithm(t *rapid.T, credits []string) Algorithm {
	a := testAlgorithm()
	c, err := credit.Kinds.New(rapid.SampledFrom(credits).Draw(t, "credit"), nil)
	if err != nil {
		t.Fatal(err)
	}
	e, err := advantage.Kinds.New(rapid.SampledFrom(advantage.Kinds.Names()).Draw(t, "advantage"), nil)
	if err != nil {
		t.Fatal(err)
	}
	a.Credit, a.Advantage = c.Part, e.Part
	a.Level = rapid.SampledFrom([]row.Level{row.Trajectory, row.Transition, row.Concatenated}).Draw(t, "level")
	a.Minibatches = rapid.IntRange(1, 3).Draw(t, "minibatches")
	return a
}

// drawRewarded makes a group with rewards of its own, of rollouts and of calls. Each trained token has a log-prob that no
// other has, by which it is known again.
func drawRewarded(t *rapid.T, n network, counter uint64) group {
	g := groupOf(n, counter, 0)
	for i := range g.bundle.Rollouts {
		r := &g.bundle.Rollouts[i]
		r.Reward = float32(rapid.IntRange(0, 4).Draw(t, "reward")) / 4
		for j := range r.Calls {
			if rapid.IntRange(0, 3).Draw(t, "rewarded") == 0 {
				given := float32(rapid.IntRange(-2, 2).Draw(t, "call's reward")) / 4
				r.Calls[j].Reward = &given
			}
			for k := range r.Calls[j].LogProbs {
				r.Calls[j].LogProbs[k] = -1 - float32(((int(counter)*8+i)*4+j)*64+k)/(1<<18)
			}
		}
	}
	return g
}

// A group that has nothing to compare changes nothing of what a step does, wherever it stands among others: neither rows
// nor their advantages and weights, to the bit. Estimators that compare with what was before learn from such a group.
func TestPlanIsTheSameWithFlatGroups(t *testing.T) {
	n := plainNetwork(t)
	rules := planRules(t, n)
	rapid.Check(t, func(t *rapid.T) {
		a := drawAlgorithm(t, credit.Kinds.Names())
		if advantage.LearnsFromFlat(a.Advantage) {
			t.Skip("learns from flat groups")
		}
		var groups []group
		for i := range rapid.IntRange(0, 5).Draw(t, "groups") {
			groups = append(groups, drawRewarded(t, n, uint64(i)))
		}
		more := slices.Clone(groups)
		for i := range rapid.IntRange(1, 3).Draw(t, "flat groups") {
			reward := float32(rapid.IntRange(0, 4).Draw(t, "reward")) / 4
			flat := groupOf(n, uint64(50+i), 0, reward, reward, reward, reward)
			more = slices.Insert(more, rapid.IntRange(0, len(more)).Draw(t, "place"), flat)
		}
		want, got := a.plan(rules, groups), a.plan(rules, more)
		options := cmp.Options{cmp.AllowUnexported(minibatch{}, trainRow{}, completion{}), cmpopts.EquateEmpty()}
		if diff := cmp.Diff(want.minibatches, got.minibatches, options); diff != "" {
			t.Fatalf("minibatches (-without +with flat groups):\n%s", diff)
		}
		if want.learned != got.learned {
			t.Fatalf("learns from %d groups, from %d with flat ones", want.learned, got.learned)
		}
	})
}

// arrivalCredits are those to which it makes no difference which call came first.
var arrivalCredits = []string{"return", "intermediate", "counterfactual-agent"}

// The order in which groups, their rollouts and the calls of these arrive changes no token's advantage and weight, but for
// rounding; where credit follows the order of calls, that stays.
func TestPlanIgnoresArrival(t *testing.T) {
	n := plainNetwork(t)
	rules := planRules(t, n)
	rapid.Check(t, func(t *rapid.T) {
		callsToo := rapid.Bool().Draw(t, "calls too")
		credits := credit.Kinds.Names()
		if callsToo {
			credits = arrivalCredits
		}
		a := drawAlgorithm(t, credits)
		a.Minibatches = 1 // Which groups share an update depends on their order.
		var groups, shuffled []group
		for i := range rapid.IntRange(1, 4).Draw(t, "groups") {
			g := drawRewarded(t, n, uint64(i))
			groups = append(groups, g)
			b := *g.bundle
			b.Rollouts = rapid.Permutation(b.Rollouts).Draw(t, "rollouts")
			if callsToo {
				for j := range b.Rollouts {
					b.Rollouts[j].Calls = rapid.Permutation(b.Rollouts[j].Calls).Draw(t, "calls")
				}
			}
			g.bundle = &b
			shuffled = append(shuffled, g)
		}
		shuffled = rapid.Permutation(shuffled).Draw(t, "groups' order")
		want, got := tokens(t, a.plan(rules, groups)), tokens(t, a.plan(rules, shuffled))
		if diff := cmp.Diff(want, got, cmpopts.EquateApprox(1e-9, 1e-12)); diff != "" {
			t.Fatalf("advantage and weight by token (-in order +shuffled):\n%s", diff)
		}
	})
}

// tokens are the advantage and weight of each trained token, by its log-prob.
func tokens(t *rapid.T, p plan) map[float32][2]float64 {
	byToken := make(map[float32][2]float64)
	for _, m := range p.minibatches {
		for _, r := range m.rows {
			for i, logProb := range r.LogProbs {
				if _, twice := byToken[logProb]; twice {
					t.Fatalf("the token of log-prob %v is trained twice", logProb)
				}
				byToken[logProb] = [2]float64{r.Advantages[i], r.weight}
			}
		}
	}
	return byToken
}

// What the paper's assignment and to-go hand out adds up to what the environment gave.
func TestPlanConservesReturns(t *testing.T) {
	n := plainNetwork(t)
	rules := planRules(t, n)
	rapid.Check(t, func(t *rapid.T) {
		g := drawRewarded(t, n, 0)
		for i, r := range g.bundle.Rollouts {
			total := given(r)
			a := testAlgorithm()
			a.Credit = credit.Return{}
			for j, got := range a.score(rules, g).returns[i] {
				if got != total {
					t.Fatalf("return: call %d of rollout %d gets %v of %v", j, i, got, total)
				}
			}
			a.Credit = credit.ToGo{}
			if first := a.score(rules, g).returns[i][0]; math.Abs(first-total) > 1e-12 {
				t.Fatalf("to-go: the first call of rollout %d gets %v of %v", i, first, total)
			}
		}
	})
}

// given is all that the environment gave a rollout.
func given(r bundle.Rollout) float64 {
	sum := float64(r.Reward)
	for _, c := range r.Calls {
		if c.Reward != nil {
			sum += float64(*c.Reward)
		}
	}
	return sum
}
