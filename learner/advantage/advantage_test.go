package advantage_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/lightswarm/lightswarm/learner/advantage"
)

var estimators = map[string]advantage.Estimator{
	"GRPO":        advantage.GRPO{},
	"DrGRPO":      advantage.DrGRPO{},
	"RLOO":        advantage.RLOO{},
	"ReinforcePP": advantage.ReinforcePP{},
}

// estimate returns the advantage of every rollout.
func estimate(e advantage.Estimator, returns [][]float64) [][]float64 {
	out := make([][]float64, len(returns))
	for g, b := range e.Estimate(returns) {
		for _, r := range returns[g] {
			out[g] = append(out[g], b.Of(r))
		}
	}
	return out
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-5*(1+math.Abs(a)+math.Abs(b)) }

func TestEstimators(t *testing.T) {
	returns := [][]float64{{1, 0, 0, 0}, {1, 1, 0, 0}}
	tests := []struct {
		name string
		want [][]float64
	}{
		{"GRPO", [][]float64{{math.Sqrt(3), -1 / math.Sqrt(3), -1 / math.Sqrt(3), -1 / math.Sqrt(3)}, {1, 1, -1, -1}}},
		{"DrGRPO", [][]float64{{0.75, -0.25, -0.25, -0.25}, {0.5, 0.5, -0.5, -0.5}}},
		{"RLOO", [][]float64{{1, -1. / 3, -1. / 3, -1. / 3}, {2. / 3, 2. / 3, -2. / 3, -2. / 3}}},
		// The batch's variance is (0.5625 + 3*0.0625 + 4*0.25)/8 = 0.21875.
		{"ReinforcePP", [][]float64{
			{0.75 / math.Sqrt(0.21875), -0.25 / math.Sqrt(0.21875), -0.25 / math.Sqrt(0.21875), -0.25 / math.Sqrt(0.21875)},
			{0.5 / math.Sqrt(0.21875), 0.5 / math.Sqrt(0.21875), -0.5 / math.Sqrt(0.21875), -0.5 / math.Sqrt(0.21875)},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := estimate(estimators[tt.name], returns)
			for g := range tt.want {
				for i := range tt.want[g] {
					if !near(got[g][i], tt.want[g][i]) {
						t.Errorf("group %d rollout %d: %v, want %v", g, i, got[g][i], tt.want[g][i])
					}
				}
			}
		})
	}
}

func drawGroups(t *rapid.T) [][]float64 {
	return rapid.SliceOfN(rapid.SliceOfN(rapid.Float64Range(-10, 10), 2, 8), 1, 5).Draw(t, "returns")
}

// The advantages of a group sum to zero, keep the order of its returns, and ignore a constant added to them.
func TestEstimatorInvariants(t *testing.T) {
	for name, e := range estimators {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				returns := drawGroups(t)
				got := estimate(e, returns)
				shifted := make([][]float64, len(returns))
				for g, group := range returns {
					sum := 0.0
					for i, r := range group {
						sum += got[g][i]
						shifted[g] = append(shifted[g], r+5)
						for j := range group {
							if r > group[j] && got[g][i] < got[g][j] {
								t.Fatalf("group %d: return %v > %v but advantage %v < %v", g, r, group[j], got[g][i], got[g][j])
							}
						}
					}
					if math.Abs(sum) > 1e-6 {
						t.Fatalf("group %d: advantages sum to %v", g, sum)
					}
				}
				for g, group := range estimate(e, shifted) {
					for i, a := range group {
						// Where returns differ by rounding alone, GRPO's division magnifies the difference.
						if math.Abs(a-got[g][i]) > 1e-6 {
							t.Fatalf("group %d rollout %d: %v became %v for returns shifted by 5", g, i, got[g][i], a)
						}
					}
				}
			})
		})
	}
}

func TestFlat(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		group := rapid.SliceOfN(rapid.SampledFrom([]float64{0, 0.5, 1}), 0, 5).Draw(t, "group")
		want := true
		for i := range group {
			for j := range group {
				want = want && group[i] == group[j]
			}
		}
		if got := advantage.Flat(group); got != want {
			t.Fatalf("Flat(%v) = %v", group, got)
		}
		if len(group) < 2 || !want {
			return
		}
		for name, e := range estimators {
			for _, a := range estimate(e, [][]float64{group})[0] {
				if math.Abs(a) > 1e-9 {
					t.Fatalf("%s of the flat group %v: advantage %v", name, group, a)
				}
			}
		}
	})
}
