package advantage_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lightswarm/lightswarm/learner/advantage"
)

func TestRAE(t *testing.T) {
	writer, checker := advantage.Role{Environment: "e", Agent: "writer"}, advantage.Role{Environment: "e", Agent: "checker"}
	start := advantage.Memory{writer: 0.5}
	r := advantage.RAE{Decay: 0.5}.With(start)
	if got := r.Of(writer).Of(1); got != 0.5 {
		t.Errorf("the writer's advantage is %v, want 0.5", got)
	}
	if got := r.Of(checker).Of(1); got != 1 {
		t.Errorf("an unknown role's advantage is %v, want 1", got)
	}
	// Twice halfway to 1 from 0.5, once halfway to -1 from 0.
	after := r.Remember(map[advantage.Role][]float64{writer: {2, 0}, checker: {-1}})
	if diff := cmp.Diff(advantage.Memory{writer: 0.875, checker: -0.5}, after); diff != "" {
		t.Errorf("memory (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(advantage.Memory{writer: 0.5}, start); diff != "" {
		t.Errorf("the memory that was passed in changed:\n%s", diff)
	}
}

// The order of returns changes nothing, equal returns move the average as one by one, and nothing leaves their range.
func TestRAERemembers(t *testing.T) {
	role := advantage.Role{Agent: "a"}
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Map(rapid.IntRange(-8, 8), func(n int) float64 { return float64(n) / 8 }), 1, 8).Draw(t, "returns")
		rule := advantage.RAE{Decay: rapid.Float64Range(0, 0.99).Draw(t, "decay")}.With(advantage.Memory{role: 0.25})
		remember := func(r advantage.Remembering, v ...float64) float64 {
			return r.Remember(map[advantage.Role][]float64{role: v})[role]
		}
		got := remember(rule, values...)
		if other := remember(rule, rapid.Permutation(values).Draw(t, "order")...); other != got {
			t.Fatalf("%v, in another order %v", got, other)
		}
		low, high := 0.25, 0.25
		for _, v := range values {
			low, high = min(low, v), max(high, v)
		}
		if got < low-1e-12 || got > high+1e-12 {
			t.Fatalf("%v is outside [%v, %v]", got, low, high)
		}
		one := rule
		for range values {
			one = one.With(advantage.Memory{role: remember(one, values[0])})
		}
		same := make([]float64, len(values))
		for i := range same {
			same[i] = values[0]
		}
		if a, b := remember(rule, same...), one.Of(role).Mean; math.Abs(a-b) > 1e-12 {
			t.Fatalf("together %v, one by one %v", a, b)
		}
	})
}

func TestRAEIsBounded(t *testing.T) {
	returns := make(map[advantage.Role][]float64)
	for i := range 5000 {
		returns[advantage.Role{Agent: fmt.Sprint(i)}] = []float64{1}
	}
	first := advantage.RAE{Decay: 0.5}.With(nil).Remember(returns)
	if len(first) != 1024 {
		t.Fatalf("%d roles are remembered", len(first))
	}
	second := advantage.RAE{Decay: 0.5}.With(first).Remember(returns)
	for _, role := range second.Roles() {
		if first[role] != 0.5 || second[role] != 0.75 {
			t.Fatalf("%v has %v, then %v", role, first[role], second[role])
		}
	}
}

// The batch's mean is the baseline of all groups, so that advantages sum to zero over the batch but not in a group.
func TestReinforcePPBatch(t *testing.T) {
	got := estimate(advantage.ReinforcePPBatch{}, [][]float64{{1, 1}, {1, 0, 0, 0}})
	// Mean 0.5, standard deviation 0.5.
	for i, want := range [][]float64{{1, 1}, {1, -1, -1, -1}} {
		for j := range want {
			if !near(got[i][j], want[j]) {
				t.Errorf("group %d rollout %d: %v, want %v", i, j, got[i][j], want[j])
			}
		}
	}
	if got := (advantage.ReinforcePPBatch{}).Estimate(nil); len(got) != 0 {
		t.Errorf("baselines of nothing: %v", got)
	}
}

// Estimators that look at one group alone give it the same baseline whatever else is in the batch, flat groups included;
// all that learn nothing from flat groups give those advantages of zero.
func TestFlatGroups(t *testing.T) {
	alone := []advantage.Estimator{advantage.GRPO{}, advantage.DrGRPO{}, advantage.RLOO{}}
	rapid.Check(t, func(t *rapid.T) {
		returns := drawGroups(t)
		level := rapid.Float64Range(-10, 10).Draw(t, "level")
		more := append(append([][]float64{}, returns...), []float64{level, level})
		for _, e := range alone {
			if diff := cmp.Diff(e.Estimate(returns), e.Estimate(more)[:len(returns)]); diff != "" {
				t.Fatalf("%T (-without +with a flat group):\n%s", e, diff)
			}
		}
		for _, e := range append(alone, advantage.ReinforcePP{}) {
			if advantage.LearnsFromFlat(e) || e.Estimate(more)[len(returns)].Of(level) != 0 {
				t.Fatalf("%T learns from a flat group", e)
			}
		}
	})
	if !advantage.LearnsFromFlat(advantage.ReinforcePPBatch{}) || !advantage.LearnsFromFlat(advantage.RAE{}) {
		t.Error("those that compare beyond the group do not learn from flat ones")
	}
}

// The order in which the rollouts of a group, and the groups of a batch, arrive changes no baseline beyond rounding.
func TestEstimatorsIgnoreOrder(t *testing.T) {
	for _, name := range advantage.Kinds.Names() {
		made, err := advantage.Kinds.New(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				returns := drawGroups(t)
				want := made.Part.Estimate(returns)
				shuffled := make([][]float64, len(returns))
				for i, group := range returns {
					shuffled[len(returns)-1-i] = rapid.Permutation(group).Draw(t, "order")
				}
				for i, b := range made.Part.Estimate(shuffled) {
					w := want[len(returns)-1-i]
					if !near(b.Mean, w.Mean) || !near(b.Scale/w.Scale, 1) && w.Scale < 1e4 {
						t.Fatalf("group %d: baseline %v, in another order %v", len(returns)-1-i, w, b)
					}
				}
			})
		})
	}
}
