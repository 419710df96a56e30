package row_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lightswarm/lightswarm/learner/row"
)

func TestLevels(t *testing.T) {
	untrained := call([]int32{1, 2, 3}, []int32{4}, 1)
	untrained.Train = false
	calls := []row.Call{call([]int32{1}, []int32{2}, 1), untrained, call([]int32{1, 2, 3}, []int32{4}, 2)}
	for level, want := range map[row.Level][]row.Row{
		row.Trajectory: {{Tokens: []int32{1, 2, 3, 4}, Positions: []int32{1}, LogProbs: make([]float32, 1), Advantages: []float64{1}},
			{Tokens: []int32{1, 2, 3, 4}, Positions: []int32{3}, LogProbs: make([]float32, 1), Advantages: []float64{2}}},
		row.Transition: {{Tokens: []int32{1, 2}, Positions: []int32{1}, LogProbs: make([]float32, 1), Advantages: []float64{1}},
			{Tokens: []int32{1, 2, 3, 4}, Positions: []int32{3}, LogProbs: make([]float32, 1), Advantages: []float64{2}}},
		row.Concatenated: {{Tokens: []int32{1, 2, 3, 4}, Positions: []int32{1, 3}, LogProbs: make([]float32, 2), Advantages: []float64{1, 2}}},
	} {
		if diff := cmp.Diff(want, level.Rows(calls, 99)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", level, diff)
		}
		if read, err := row.ParseLevel(level.String()); err != nil || read != level {
			t.Errorf("%v reads as %v, %v", level, read, err)
		}
	}
	if _, err := row.ParseLevel("rollout"); err == nil || err.Error() != `unknown level "rollout"; use trajectory, transition or concatenated` {
		t.Errorf("%v", err)
	}
}
