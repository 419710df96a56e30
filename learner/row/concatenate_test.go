package row_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/lightswarm/lightswarm/learner/row"
)

func TestConcatenated(t *testing.T) {
	untrained := call([]int32{1, 2}, []int32{3}, 1)
	untrained.Train = false
	of := func(altered bool, tokens []int32, positions ...int32) []row.Row {
		r := row.Row{Tokens: tokens, Positions: positions, LogProbs: make([]float32, len(positions)), Altered: altered}
		for range positions {
			r.Advantages = append(r.Advantages, 1)
		}
		return []row.Row{r}
	}
	for name, tt := range map[string]struct {
		calls []row.Call
		limit int
		want  []row.Row
	}{
		"none":         {nil, 9, nil},
		"one call":     {[]row.Call{call([]int32{1, 2}, []int32{3, 4}, 1)}, 9, of(false, []int32{1, 2, 3, 4}, 2, 3)},
		"untrained":    {[]row.Call{untrained}, 9, nil},
		"no room":      {[]row.Call{call([]int32{1, 2}, []int32{3, 4}, 1)}, 3, nil},
		"room exactly": {[]row.Call{call([]int32{1, 2}, []int32{3, 4}, 1)}, 4, of(false, []int32{1, 2, 3, 4}, 2, 3)},
		"a prompt that continues": {[]row.Call{
			call([]int32{1}, []int32{2}, 1), call([]int32{1, 2, 3}, []int32{4}, 1),
		}, 9, of(false, []int32{1, 2, 3, 4}, 1, 3)},
		"a prompt that dropped the completion": {[]row.Call{
			call([]int32{1}, []int32{2}, 1), call([]int32{1, 3}, []int32{4}, 1),
		}, 9, of(true, []int32{1, 2, 1, 3, 4}, 1, 4)},
		"the same prompt again": {[]row.Call{
			call([]int32{1}, []int32{2}, 1), call([]int32{1}, []int32{3}, 1),
		}, 9, of(true, []int32{1, 2, 1, 3}, 1, 3)},
		"a prompt that continues what was altered": {[]row.Call{
			call([]int32{1}, []int32{2}, 1), call([]int32{7}, []int32{8}, 1), call([]int32{7, 8, 9}, []int32{6}, 1),
		}, 9, of(true, []int32{1, 2, 7, 8, 9, 6}, 1, 3, 5)},
		"two roles that alternate": {[]row.Call{
			call([]int32{1}, []int32{2}, 1), call([]int32{7}, []int32{8}, 1),
			call([]int32{1, 2, 3}, []int32{4}, 1), call([]int32{7, 8, 9}, []int32{6}, 1),
		}, 10, of(true, []int32{1, 2, 7, 8, 3, 4, 9, 6}, 1, 3, 5, 7)},
		"the last calls do not fit": {[]row.Call{
			call([]int32{1}, []int32{2}, 1), call([]int32{7, 7, 7}, []int32{8}, 1), call([]int32{1, 2}, []int32{4}, 1),
		}, 5, of(false, []int32{1, 2}, 1)},
		"an untrained call is context where it is repeated": {[]row.Call{
			untrained, call([]int32{1, 2, 3}, []int32{4}, 1), untrained,
		}, 9, of(false, []int32{1, 2, 3, 4}, 3)},
	} {
		if diff := cmp.Diff(tt.want, row.Concatenated.Rows(tt.calls, tt.limit)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// drawCalls draws a rollout. Where exact, every prompt continues the call before, and the last call is trained.
func drawCalls(t *rapid.T, exact bool) (calls []row.Call) {
	tokens := rapid.SliceOfN(rapid.Int32Range(0, 2), 1, 3)
	n := rapid.IntRange(0, 6).Draw(t, "calls")
	for i := range n {
		var prompt []int32
		if i > 0 && (exact || rapid.Bool().Draw(t, "continues")) {
			earlier := calls[i-1]
			prompt = append(append(prompt, earlier.Prompt...), earlier.Completion...)
		}
		if len(prompt) == 0 || rapid.Bool().Draw(t, "longer") {
			prompt = append(prompt, tokens.Draw(t, "suffix")...)
		}
		c := call(prompt, tokens.Draw(t, "completion"), float64(rapid.IntRange(-3, 3).Draw(t, "advantage")))
		for j := range c.LogProbs {
			c.LogProbs[j] = -float32(8*i + j)
		}
		c.Train = exact && i == n-1 || rapid.IntRange(0, 4).Draw(t, "train") > 0
		calls = append(calls, c)
	}
	return calls
}

// Where every prompt continues the call before, concatenated is trajectory to the bit.
func TestConcatenatedIsTrajectoryWhereHistoryContinues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		calls := drawCalls(t, true)
		if diff := cmp.Diff(row.Trajectory.Rows(calls, 99), row.Concatenated.Rows(calls, 99), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("rows (-trajectory +concatenated):\n%s", diff)
		}
	})
}

// At any level the same tokens are trained, with their log-probs and advantages, in the order of the calls. A row that is not
// altered has each of them in the context in which it was sampled.
func TestConcatenatedTrainsTheSameTokens(t *testing.T) {
	type token struct {
		id        int32
		logProb   float32
		advantage float64
	}
	trained := func(rows []row.Row) (all []token) {
		for _, r := range rows {
			for i, p := range r.Positions {
				all = append(all, token{r.Tokens[p], r.LogProbs[i], r.Advantages[i]})
			}
		}
		return all
	}
	rapid.Check(t, func(t *rapid.T) {
		calls := drawCalls(t, false)
		rows, separate := row.Concatenated.Rows(calls, 999), row.Transition.Rows(calls, 999)
		if diff := cmp.Diff(trained(separate), trained(rows), cmp.AllowUnexported(token{})); diff != "" {
			t.Fatalf("trained tokens (-transition +concatenated):\n%s", diff)
		}
		if len(rows) > 1 {
			t.Fatalf("%d rows", len(rows))
		}
		for _, r := range rows {
			want, _ := gradients(separate)
			got, _ := gradients(rows)
			if same := cmp.Equal(want, got); same == r.Altered {
				t.Fatalf("altered: %v, but the contexts are the same: %v", r.Altered, same)
			}
		}
		limit := rapid.IntRange(0, 20).Draw(t, "limit")
		for _, r := range row.Concatenated.Rows(calls, limit) {
			if len(r.Tokens) > limit {
				t.Fatalf("a row of %d tokens, with a limit of %d", len(r.Tokens), limit)
			}
		}
	})
}
