package row_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lightswarm/lightswarm/learner/row"
)

func TestPrompts(t *testing.T) {
	rows, places := row.Prompts([][]int32{{1, 2, 3}, {4}, {1}, {1, 2, 9}, {1, 2, 3}, {1, 2}})
	if diff := cmp.Diff([]row.Row{
		{Tokens: []int32{1, 2, 3, 1}, Positions: []int32{1, 2, 3}},
		{Tokens: []int32{1, 2, 9, 1}, Positions: []int32{3}},
		{Tokens: []int32{4, 4}, Positions: []int32{1}},
	}, rows); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]row.Place{{0, 2}, {2, 0}, {0, 0}, {1, 0}, {0, 2}, {0, 1}}, places); diff != "" {
		t.Errorf("places (-want +got):\n%s", diff)
	}
}

// Each prompt lies where its place says, positions rise within the tokens, no row begins another, and the order of the prompts
// does not matter.
func TestPromptsLieWhereTheySay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		prompts := rapid.SliceOfN(rapid.SliceOfN(rapid.Int32Range(0, 2), 1, 4), 0, 8).Draw(t, "prompts")
		rows, places := row.Prompts(prompts)
		for i, p := range places {
			r := rows[p.Row]
			if got := r.Tokens[:r.Positions[p.Position]]; !slices.Equal(got, prompts[i]) {
				t.Fatalf("prompt %v lies at %v: %v", prompts[i], p, got)
			}
		}
		for i, r := range rows {
			for j, p := range r.Positions {
				if int(p) >= len(r.Tokens) || p < 1 || j > 0 && p <= r.Positions[j-1] {
					t.Fatalf("row %d: positions %v of %d tokens", i, r.Positions, len(r.Tokens))
				}
			}
			whole := r.Tokens[:len(r.Tokens)-1]
			for j, other := range rows {
				if i != j && len(other.Tokens) > len(whole) && slices.Equal(whole, other.Tokens[:len(whole)]) {
					t.Fatalf("row %v begins row %v", whole, other.Tokens)
				}
			}
		}
		slices.Reverse(prompts)
		if again, _ := row.Prompts(prompts); !cmp.Equal(rows, again) {
			t.Fatalf("in another order the rows are %v, not %v", again, rows)
		}
	})
}
