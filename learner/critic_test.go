package learner

import (
	"bytes"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lightswarm/lightswarm/learner/credit"
	"github.com/lightswarm/lightswarm/learner/row"
)

func testCritic() credit.LearnedGAE {
	return credit.LearnedGAE{Discount: 1, Lambda: 0.95, Decay: 0.9, Ridge: 0.1}
}

func embeddedTrainer(t *testing.T, n network) Embedded {
	t.Helper()
	trainer, err := NewEmbedded(n.base, 1)
	if err != nil {
		t.Fatal(err)
	}
	return trainer
}

// worth makes a group whose task is told by its prompt: of one with an even number, three rollouts of four succeed, of
// another one does.
func worth(n network, prompt uint64) group {
	if prompt%2 == 0 {
		return groupOf(n, prompt, 0, 1, 1, 1, 0)
	}
	return groupOf(n, prompt, 0, 0, 1, 0, 0)
}

// A call's state is that of its prompt alone, to the bit, whichever prompts share its row.
func TestCriticSeesPrompts(t *testing.T) {
	n := newNetwork(t, tinyModel(t), nil)
	trainer := embeddedTrainer(t, n)
	g := worth(n, 3)
	g.bundle.Rollouts[1].Calls[1].Prompt[0]++
	g.bundle.Rollouts[2].Calls = g.bundle.Rollouts[2].Calls[:1]
	if err := g.look(trainer); err != nil {
		t.Fatal(err)
	}
	for i, r := range g.bundle.Rollouts {
		for j, c := range r.Calls {
			alone := row.Row{Tokens: append(append([]int32{}, c.Prompt...), 7), Positions: []int32{int32(len(c.Prompt))}}
			want, err := trainer.Hidden([]row.Row{alone})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want[0][0], g.states[i][j]); diff != "" {
				t.Errorf("rollout %d, call %d (-alone +in the group):\n%s", i, j, diff)
			}
		}
	}
}

// Where the reward depends on the prompt, the critic comes to say which it will be, in advance.
func TestCriticLearnsWhatPromptsAreWorth(t *testing.T) {
	n := newNetwork(t, tinyModel(t), nil)
	rules, trainer := planRules(t, n), embeddedTrainer(t, n)
	a, rule := testAlgorithm(), testCritic()
	rule.Ridge = 0.001 // The random model tells prompts apart by little.
	var groups []group
	for prompt := range uint64(8) {
		g := worth(n, prompt)
		if err := g.look(trainer); err != nil {
			t.Fatal(err)
		}
		groups = append(groups, g)
	}
	var m credit.Memory
	explained := math.NaN()
	for range 20 {
		learning := rule.With(m)
		a.Credit = learning
		explained = a.plan(rules, groups).explained
		var seen [][]credit.Rollout
		for _, g := range groups {
			seen = append(seen, a.score(rules, g).seen)
		}
		m = learning.Learn(seen)
	}
	head := m.Fit(rule.Ridge)
	for prompt, g := range groups {
		want := 0.75
		if prompt%2 == 1 {
			want = 0.25
		}
		for call, state := range g.states[0] {
			if got := head.Value(state); math.Abs(got-want) > 0.1 {
				t.Errorf("call %d of a rollout with prompt %d is worth %.2f, the critic says %.2f", call, prompt, want, got)
			}
		}
	}
	// The variance of the returns is 1/4, that of the prompts' means 1/16.
	if math.Abs(explained-0.25) > 0.02 {
		t.Errorf("the critic explains %.3f of the returns' variance, want 0.25", explained)
	}
}

// stored is a store with groups for some steps.
func stored(t *testing.T, n network, groups int) *Memory {
	t.Helper()
	store := NewMemory()
	for i := range groups {
		a, raw := encode(t, worth(n, uint64(i)).bundle, key(1).Peer())
		r := Record{CID: a.Bundle, Purpose: a.Purpose, Environment: a.Environment, Peer: a.Signer, Counter: a.Counter, Order: uint64(i)}
		if err := store.Accept(t.Context(), []Accepted{{r, raw}}); err != nil {
			t.Fatal(err)
		}
	}
	return store
}

func openCritic(t *testing.T, n network, store Store, trainer Trainer) *Learner {
	t.Helper()
	c := n.config(newSwarm())
	c.Store, c.Algorithm.Credit, c.Batch.Groups, c.Trainer = store, testCritic(), 4, trainer
	l, err := Open(t.Context(), c)
	if err == nil {
		err = l.begin(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func stepOnce(t *testing.T, l *Learner) {
	t.Helper()
	batch, _ := l.take()
	if err := l.step(t.Context(), batch, false); err != nil {
		t.Fatal(err)
	}
}

// A learner that is started anew before each step ends with the weights and the critic of one that ran on, to the bit.
func TestCriticGoesOnExactly(t *testing.T) {
	n := newNetwork(t, tinyModel(t), nil)
	const steps = 3
	run := func(restart bool) Checkpoint {
		store := stored(t, n, 4*steps)
		l := openCritic(t, n, store, embeddedTrainer(t, n))
		for range steps {
			if restart {
				l = openCritic(t, n, store, embeddedTrainer(t, n))
			}
			stepOnce(t, l)
		}
		r, err := store.Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return *r.Checkpoint
	}
	whole, again := run(false), run(true)
	if !bytes.Equal(whole.Trainer, again.Trainer) || !bytes.Equal(whole.Progress, again.Progress) {
		t.Error("restarts changed the weights or what the critic knows")
	}
}

// A critic learns from states of the weights that it will be asked about. What a step taught it is forgotten with the step
// when that is undone.
func TestCriticFollowsTheWeights(t *testing.T) {
	n := plainNetwork(t)
	trainer := &fakeTrainer{weights: make([]float32, 4), norm: func(step int) float64 {
		if step == 3 { // the second update of the second step
			return math.NaN()
		}
		return 1
	}}
	l := openCritic(t, n, stored(t, n, 12), trainer)
	var heads []credit.Head
	for range 3 {
		stepOnce(t, l)
		// A fake state's third number is a weight, which is 0 until the first update.
		if squares := l.critic.Gram[5]; squares == 0 {
			t.Error("the critic learns from states that the weights make no more")
		}
		heads = append(heads, l.critic.Fit(0.1))
	}
	if len(heads[0]) == 0 || !cmp.Equal(heads[0], heads[1]) || cmp.Equal(heads[1], heads[2]) {
		t.Errorf("heads after a step, an undone one and another: %v", heads)
	}
}
