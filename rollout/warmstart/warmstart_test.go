package warmstart_test

import (
	"testing"

	"github.com/lightswarm/lightswarm/policy/base"
	"github.com/lightswarm/lightswarm/rollout/warmstart"
)

// TestBasePolicyPassesTheGate measures the policy that policy/base carries as its recipe does, and compares it with
// what the recipe reported when it was made.
func TestBasePolicyPassesTheGate(t *testing.T) {
	s, err := base.Load()
	if err != nil {
		t.Fatal(err)
	}
	const made = "717a5067b07895a949daa885a164c6e5377ff1d2debd01ea43c8d0cc9c43a1b1"
	if got := s.Digest().String(); got != made {
		t.Errorf("policy/base carries %s, not %s", got, made)
	}
	recipe := warmstart.Calc(1, 2)
	got, err := recipe.Measure(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	// Decoding is exact, so the figures are the recorded ones, on every machine.
	if got.Sampled != 0.3291015625 || got.Greedy != 0 || got.Best != 1 {
		t.Errorf("ability %+v", got)
	}
	g := recipe.Gate
	if got.Best < g.MinBest || got.Sampled < g.MinSampled || got.Sampled > g.MaxSampled || got.Greedy > g.MaxGreedy {
		t.Errorf("ability %+v does not pass %+v", got, g)
	}
}
