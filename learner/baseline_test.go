package learner

import (
	"maps"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lightswarm/lightswarm/learner/advantage"
	"github.com/lightswarm/lightswarm/wire"
)

// Roles have baselines of their own, and a group whose returns are all equal teaches against what was before.
func TestPlanComparesRoles(t *testing.T) {
	n := plainNetwork(t)
	rules := planRules(t, n)
	g := groupOf(n, 0, 0, 1, 1, 1, 1)
	for i := range g.bundle.Rollouts {
		g.bundle.Rollouts[i].Calls[0].Agent = "checker"
	}
	environment := g.bundle.Environment.String()
	agent, checker := advantage.Role{Environment: environment, Agent: "agent"}, advantage.Role{Environment: environment, Agent: "checker"}
	a := testAlgorithm()
	a.Minibatches = 1
	a.Advantage = advantage.RAE{Decay: 0.5}.With(advantage.Memory{agent: 0.25, checker: 2})
	p := a.plan(rules, []group{g})
	if p.learned != 1 || len(p.minibatches[0].rows) != 4 {
		t.Fatalf("learned from %d groups, %d rows", p.learned, len(p.minibatches[0].rows))
	}
	for _, r := range p.minibatches[0].rows {
		if first, last := r.Advantages[0], r.Advantages[len(r.Advantages)-1]; first != -1 || last != 0.75 {
			t.Errorf("advantages %v of the checker, %v of the agent", first, last)
		}
	}
	want := advantage.Memory{agent: 1 - 0.75/16, checker: 1 + 1./16}
	if diff := cmp.Diff(want, p.memory); diff != "" {
		t.Errorf("memory (-want +got):\n%s", diff)
	}

	manifest := wire.EnvironmentManifest{RewardMax: 1, Agents: []string{"agent", "checker"}, TrainedAgents: []string{"agent"}}
	rules.Manifests = map[wire.CID]wire.EnvironmentManifest{g.bundle.Environment: manifest}
	want[checker] = 2
	if diff := cmp.Diff(want, a.plan(rules, []group{g}).memory); diff != "" {
		t.Errorf("memory of trained roles alone (-want +got):\n%s", diff)
	}
}

// What roles returned is forgotten with a step that is undone, and is there again after a restart.
func TestMemoryFollowsTheWeights(t *testing.T) {
	n := plainNetwork(t)
	store := NewMemory()
	for i := range 12 {
		g := groupOf(n, uint64(i), 0, 1, 0, 1, 0)
		a, raw := encode(t, g.bundle, key(1).Peer())
		r := Record{CID: a.Bundle, Purpose: a.Purpose, Environment: a.Environment, Peer: a.Signer, Counter: a.Counter, Order: uint64(i)}
		if err := store.Accept(t.Context(), []Accepted{{r, raw}}); err != nil {
			t.Fatal(err)
		}
	}
	open := func() *Learner {
		c := n.config(newSwarm())
		c.Store, c.Algorithm.Advantage, c.Batch.Groups = store, advantage.RAE{Decay: 0.5}, 4
		// The second update of the second step is bad.
		c.Trainer = &fakeTrainer{weights: make([]float32, 4), norm: func(step int) float64 {
			if step == 3 {
				return math.NaN()
			}
			return 1
		}}
		l, err := Open(t.Context(), c)
		if err == nil {
			err = l.begin(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	l := open()
	var memories []advantage.Memory
	for range 3 {
		batch, _ := l.take()
		if err := l.step(t.Context(), batch, false); err != nil {
			t.Fatal(err)
		}
		memories = append(memories, maps.Clone(l.memory))
	}
	if len(memories[0]) == 0 || !maps.Equal(memories[0], memories[1]) || maps.Equal(memories[1], memories[2]) {
		t.Errorf("memories after a step, an undone one and another: %v", memories)
	}
	if diff := cmp.Diff(memories[2], open().memory); diff != "" {
		t.Errorf("memory (-before +after a restart):\n%s", diff)
	}
}
