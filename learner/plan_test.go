package learner

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lightswarm/lightswarm/learner/advantage"
	"github.com/lightswarm/lightswarm/learner/credit"
	"github.com/lightswarm/lightswarm/learner/loss"
	"github.com/lightswarm/lightswarm/learner/row"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

func planRules(t testing.TB, n network) *Rules {
	t.Helper()
	r, err := NewRules(n.charter, n.base, testContext, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &r
}

// groupOf makes a group whose members get these rewards; a negative one marks an environment error.
func groupOf(n network, counter uint64, lag uint64, rewards ...float32) group {
	b := n.group(0, n.base.Digest(), key(1).Peer(), counter)
	for i, r := range rewards {
		b.Rollouts[i].Reward = r
		if r < 0 {
			b.Rollouts[i].Outcome, b.Rollouts[i].Reward = bundle.OutcomeEnvError, 0
		}
	}
	return group{bundle: b, lag: lag}
}

func testAlgorithm() Algorithm {
	a := DefaultAlgorithm()
	a.Advantage = advantage.DrGRPO{}
	return a
}

func TestPlanDropsWhatTeachesNothing(t *testing.T) {
	n := plainNetwork(t)
	rules := planRules(t, n)
	p := testAlgorithm().plan(rules, []group{
		groupOf(n, 0, 0, 1, 0, 1, 0),
		groupOf(n, 1, 0, 1, 1, 1, 1),
		groupOf(n, 2, 0, 0, 0, -1, 0),
		groupOf(n, 3, 0, 1, -1, -1, -1),
		groupOf(n, 4, 2, 1, 0.5, -1, 0),
	})
	if diff := cmp.Diff(map[Reason]int{ZeroVariance: 2, TooFewScored: 1}, p.drops); diff != "" {
		t.Errorf("drops (-want +got):\n%s", diff)
	}
	if p.learned != 2 || p.rollouts != 15 || p.solved != 8 || p.rewards != 8.5 {
		t.Errorf("learns from %d groups; %d rollouts, %d solved, rewards %v", p.learned, p.rollouts, p.solved, p.rewards)
	}
	if len(p.minibatches) != 2 || len(p.minibatches[0].rows) != 4 || len(p.minibatches[1].rows) != 3 {
		t.Fatalf("minibatches %+v", p.minibatches)
	}
	for _, r := range p.minibatches[1].rows {
		if r.lag != 2 {
			t.Errorf("a row of lag %d", r.lag)
		}
	}
	got := []float64{}
	for _, r := range p.minibatches[0].rows {
		got = append(got, r.Advantages[0])
	}
	if diff := cmp.Diff([]float64{0.5, -0.5, 0.5, -0.5}, got); diff != "" {
		t.Errorf("advantages (-want +got):\n%s", diff)
	}
}

func TestPlanTrainsChosenRoles(t *testing.T) {
	n := plainNetwork(t)
	rules := planRules(t, n)
	g := groupOf(n, 0, 0, 1, 0, 1, 0)
	for i := range g.bundle.Rollouts {
		g.bundle.Rollouts[i].Calls[0].Agent = "checker"
	}
	manifest := wire.EnvironmentManifest{RewardMax: 1, Agents: []string{"agent", "checker"}, TrainedAgents: []string{"agent"}}
	rules.Manifests = map[wire.CID]wire.EnvironmentManifest{g.bundle.Environment: manifest}
	p := testAlgorithm().plan(rules, []group{g})
	for _, r := range p.minibatches[0].rows {
		first := g.bundle.Rollouts[0].Calls
		if want := int32(len(first[1].Prompt)); len(r.Positions) != len(first[1].Completion) || r.Positions[0] != want {
			t.Errorf("trained positions %v, want those of the second call, from %d on", r.Positions, want)
		}
	}
	manifest.TrainedAgents = []string{"nobody"}
	rules.Manifests[g.bundle.Environment] = manifest
	if p := testAlgorithm().plan(rules, []group{g}); p.drops[Untrained] != 1 || p.learned != 0 {
		t.Errorf("drops %v", p.drops)
	}
}

// Of the agents that an environment trains, the algorithm may choose some by name.
func TestPlanTrainsChosenAgents(t *testing.T) {
	n := plainNetwork(t)
	rules := planRules(t, n)
	g := groupOf(n, 0, 0, 1, 0, 1, 0)
	for i := range g.bundle.Rollouts {
		g.bundle.Rollouts[i].Calls[0].Agent = "checker"
	}
	calls := g.bundle.Rollouts[0].Calls
	for _, tt := range []struct {
		agents []string
		want   int
	}{
		{nil, len(calls[0].Completion) + len(calls[1].Completion)},
		{[]string{"check*"}, len(calls[0].Completion)},
		{[]string{"writer", "agen?"}, len(calls[1].Completion)},
		{[]string{"agent", "checker"}, len(calls[0].Completion) + len(calls[1].Completion)},
	} {
		a := testAlgorithm()
		a.Agents, a.Minibatches = tt.agents, 1
		p := a.plan(rules, []group{g})
		if got := p.minibatches[0].lengths; p.learned != 1 || got[0] != tt.want {
			t.Errorf("%q: trained tokens %v, want %d", tt.agents, got, tt.want)
		}
	}
	a := testAlgorithm()
	a.Agents = []string{"writer"}
	if p := a.plan(rules, []group{g}); p.drops[Untrained] != 1 {
		t.Errorf("drops %v", p.drops)
	}
	a.Agents = []string{"[a"}
	if err := a.check(); err == nil {
		t.Error("a broken pattern passed")
	}
}

// At either level the same tokens are trained, with the same weights.
func TestPlanLevels(t *testing.T) {
	n := plainNetwork(t)
	a := testAlgorithm()
	a.Minibatches = 1
	sum := func(level row.Level) (rows, tokens int, weights float64) {
		a.Level = level
		for _, r := range a.plan(planRules(t, n), []group{groupOf(n, 0, 0, 1, 0, 1, 0)}).minibatches[0].rows {
			rows++
			tokens += len(r.Positions)
			weights += r.weight * float64(len(r.Positions))
		}
		return rows, tokens, weights
	}
	rows, tokens, weights := sum(row.Trajectory)
	if more, same, alike := sum(row.Transition); rows != 4 || more != 8 || same != tokens || math.Abs(alike-weights) > 1e-12 {
		t.Errorf("%d rows with %d tokens of weight %v, as transitions %d with %d of %v", rows, tokens, weights, more, same, alike)
	}
}

// Every way to assign credit goes with every estimator at every level: advantages are finite, those of equal rollouts
// equal, and the better rollout of a group has the larger one.
func TestPlanOfEveryKind(t *testing.T) {
	n := plainNetwork(t)
	rules := planRules(t, n)
	for _, c := range credit.Kinds.Names() {
		for _, e := range advantage.Kinds.Names() {
			for _, level := range []row.Level{row.Trajectory, row.Transition, row.Concatenated} {
				a := testAlgorithm()
				a.Minibatches, a.Level = 1, level
				assigner, err := credit.Kinds.New(c, nil)
				if err != nil {
					t.Fatal(err)
				}
				estimator, err := advantage.Kinds.New(e, nil)
				if err != nil {
					t.Fatal(err)
				}
				a.Credit, a.Advantage = assigner.Part, estimator.Part
				var sums [4]float64
				for _, r := range a.plan(rules, []group{groupOf(n, 0, 0, 1, 0, 1, 0)}).minibatches[0].rows {
					for _, v := range r.Advantages {
						sums[r.rollout] += v
					}
				}
				if !(sums[0] > sums[1]) || math.IsInf(sums[0], 0) || sums[2] != sums[0] || sums[3] != sums[1] {
					t.Errorf("%s, %s, %v: rollouts of reward 1, 0, 1, 0 have %v", c, e, level, sums)
				}
			}
		}
	}
}

// lastCall gives a rollout's whole return to its last call.
type lastCall struct{}

func (lastCall) Assign(r credit.Rollout) []float64 {
	returns := make([]float64, len(r.Calls))
	returns[len(returns)-1] = r.Reward
	return returns
}

// An assigner that tells calls apart gives them advantages of their own, against the same baseline over rollouts.
func TestPlanPerCallReturns(t *testing.T) {
	n := plainNetwork(t)
	a := testAlgorithm()
	a.Credit, a.Minibatches = lastCall{}, 1
	p := a.plan(planRules(t, n), []group{groupOf(n, 0, 0, 1, 0, 1, 0)})
	// The rollouts' returns are 0.5, 0, 0.5, 0: the baseline is 0.25.
	r := p.minibatches[0].rows[0]
	if first, last := r.Advantages[0], r.Advantages[len(r.Advantages)-1]; first != -0.25 || last != 0.75 {
		t.Errorf("advantages %v for the first call and %v for the last", first, last)
	}
}

// With the mean over rollouts, the weights of a rollout's tokens add up to its part of the minibatch whatever its
// length, and whatever the number of its rows.
func TestPlanWeighsRolloutsAlike(t *testing.T) {
	n := plainNetwork(t)
	rules := planRules(t, n)
	rapid.Check(t, func(t *rapid.T) {
		var groups []group
		for i := range rapid.IntRange(1, 6).Draw(t, "groups") {
			g := groupOf(n, uint64(i), 0, 1, 0, 1, 0)
			for j := range g.bundle.Rollouts {
				calls := &g.bundle.Rollouts[j].Calls
				if rapid.Bool().Draw(t, "changed history") {
					(*calls)[1].Prompt[0]++
				}
				*calls = (*calls)[:rapid.IntRange(1, 2).Draw(t, "calls")]
			}
			groups = append(groups, g)
		}
		a := testAlgorithm()
		a.Minibatches = rapid.IntRange(1, 3).Draw(t, "minibatches")
		total := 0
		for _, m := range a.plan(rules, groups).minibatches {
			sums := make([]float64, len(m.lengths))
			for _, r := range m.rows {
				sums[r.rollout] += r.weight * float64(len(r.Positions))
			}
			for _, s := range sums {
				if math.Abs(s-1/float64(len(m.lengths))) > 1e-12 {
					t.Fatalf("a rollout weighs %v of %d", s, len(m.lengths))
				}
			}
			total += len(sums)
		}
		if total != 4*len(groups) {
			t.Fatalf("%d of %d rollouts are trained on", total, 4*len(groups))
		}
	})
}

// The gradient that a row is given is the derivative of the weighted loss that is reported.
func TestTokenLossGradient(t *testing.T) {
	n := plainNetwork(t)
	p := testAlgorithm().plan(planRules(t, n), []group{groupOf(n, 0, 1, 1, 0, 1, 0)})
	r := &p.minibatches[0].rows[1]
	logProbs := make([]float32, len(r.LogProbs))
	for i, recorded := range r.LogProbs {
		logProbs[i] = recorded + float32(i-4)/32
	}
	gradient := make([]float32, len(logProbs))
	entropies := make([]float32, len(logProbs))
	s := tokenLoss(loss.Default, r, logProbs, entropies, gradient, true)
	if s.trained != len(logProbs) || s.onPolicyTokens != 0 {
		t.Errorf("%+v", s)
	}
	for i := range logProbs {
		const h = 1.0 / 1024
		up, down := append([]float32(nil), logProbs...), append([]float32(nil), logProbs...)
		up[i] += h
		down[i] -= h
		scratch := make([]float32, len(logProbs))
		want := (tokenLoss(loss.Default, r, up, entropies, scratch, true).loss - tokenLoss(loss.Default, r, down, entropies, scratch, true).loss) / (2 * h)
		if math.Abs(float64(gradient[i])-want) > 1e-5 {
			t.Errorf("token %d: gradient %v, difference %v", i, gradient[i], want)
		}
	}
}

// A comparison of calls is added to that of rollouts, and a group that has nothing else to teach is kept for it.
func TestPlanAddsComparisons(t *testing.T) {
	n := plainNetwork(t)
	a := testAlgorithm()
	a.Minibatches = 1
	g := groupOf(n, 0, 0, 1, 0, 1, 0)
	alone := a.plan(planRules(t, n), []group{g}).minibatches[0].rows
	a.Credit = credit.TurnGroup{Weight: 0.5}
	for i, r := range a.plan(planRules(t, n), []group{g}).minibatches[0].rows {
		// All rollouts of the group begin with one prompt, so that their first calls are compared as the rollouts are.
		if want := alone[i].Advantages[0] * 1.5; r.Advantages[0] != want {
			t.Errorf("rollout %d: advantage %v, want %v", i, r.Advantages[0], want)
		}
	}

	a.Credit = credit.CounterfactualAgent{}
	p := a.plan(planRules(t, n), []group{g, groupOf(n, 1, 0, 1, 1, 1, 1)})
	if p.learned != 1 || p.drops[ZeroVariance] != 1 {
		t.Fatalf("learned from %d groups, dropped %v", p.learned, p.drops)
	}
	for i, r := range p.minibatches[0].rows {
		if want := []float64{2. / 3, -2. / 3}[i%2]; math.Abs(r.Advantages[0]-want) > 1e-12 {
			t.Errorf("rollout %d: advantage %v, want %v", i, r.Advantages[0], want)
		}
	}
}
