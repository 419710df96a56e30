//go:build !race

package warmstart_test

import (
	"testing"

	"github.com/lightswarm/lightswarm/policy/base"
	"github.com/lightswarm/lightswarm/rollout/env/calc"
	"github.com/lightswarm/lightswarm/rollout/warmstart"
)

// TestBasePolicyPassesTheGate measures the policy that policy/base carries as its recipe does, and compares it with
// what the recipe reported when it was made. That is arithmetic over two thousand rollouts, in which the race detector
// would find nothing that it does not find in a few of package rollout's own tests.
func TestBasePolicyPassesTheGate(t *testing.T) {
	s, err := base.Load()
	if err != nil {
		t.Fatal(err)
	}
	recipe, err := warmstart.Recipe(t.Context(), warmstart.Options{Environment: calc.New(), Seed: 1, Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
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
