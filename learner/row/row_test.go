package row_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lightswarm/lightswarm/learner/row"
)

func call(prompt, completion []int32, advantage float64) row.Call {
	return row.Call{
		Prompt:     prompt,
		Completion: completion,
		LogProbs:   make([]float32, len(completion)),
		Advantage:  advantage,
		Train:      true,
	}
}

func within(c row.Call, grammar string) row.Call {
	c.Grammar, c.Room = grammar, 9
	return c
}

func TestMerge(t *testing.T) {
	untrained := call([]int32{1, 2}, []int32{3}, 1)
	untrained.Train = false
	tests := []struct {
		name  string
		calls []row.Call
		want  []row.Row
	}{
		{"none", nil, nil},
		{"one call", []row.Call{call([]int32{1, 2}, []int32{3, 4}, 1)}, []row.Row{
			{Tokens: []int32{1, 2, 3, 4}, Positions: []int32{2, 3}, LogProbs: make([]float32, 2), Advantages: []float64{1, 1}},
		}},
		{"a second call that continues the first", []row.Call{
			call([]int32{1, 2}, []int32{3}, 1), call([]int32{1, 2, 3, 9}, []int32{5}, 2),
		}, []row.Row{
			{Tokens: []int32{1, 2, 3, 9, 5}, Positions: []int32{2, 4}, LogProbs: make([]float32, 2), Advantages: []float64{1, 2}},
		}},
		{"a second call whose prompt is the first in full", []row.Call{
			call([]int32{1}, []int32{3}, 1), call([]int32{1, 3}, []int32{5}, 2),
		}, []row.Row{
			{Tokens: []int32{1, 3, 5}, Positions: []int32{1, 2}, LogProbs: make([]float32, 2), Advantages: []float64{1, 2}},
		}},
		{"one token differs", []row.Call{
			call([]int32{1, 2}, []int32{3}, 1), call([]int32{1, 2, 4, 9}, []int32{5}, 1),
		}, []row.Row{
			{Tokens: []int32{1, 2, 3}, Positions: []int32{2}, LogProbs: make([]float32, 1), Advantages: []float64{1}},
			{Tokens: []int32{1, 2, 4, 9, 5}, Positions: []int32{4}, LogProbs: make([]float32, 1), Advantages: []float64{1}},
		}},
		{"the same prompt twice", []row.Call{
			call([]int32{1}, []int32{3}, 1), call([]int32{1}, []int32{3}, 1),
		}, []row.Row{
			{Tokens: []int32{1, 3}, Positions: []int32{1}, LogProbs: make([]float32, 1), Advantages: []float64{1}},
			{Tokens: []int32{1, 3}, Positions: []int32{1}, LogProbs: make([]float32, 1), Advantages: []float64{1}},
		}},
		{"two roles that alternate", []row.Call{
			call([]int32{1}, []int32{2}, 1), call([]int32{7}, []int32{8}, 1),
			call([]int32{1, 2, 3}, []int32{4}, 1), call([]int32{7, 8, 9}, []int32{6}, 1),
		}, []row.Row{
			{Tokens: []int32{1, 2, 3, 4}, Positions: []int32{1, 3}, LogProbs: make([]float32, 2), Advantages: []float64{1, 1}},
			{Tokens: []int32{7, 8, 9, 6}, Positions: []int32{1, 3}, LogProbs: make([]float32, 2), Advantages: []float64{1, 1}},
		}},
		{"an untrained call is context only", []row.Call{untrained, call([]int32{1, 2, 3}, []int32{4}, 1)}, []row.Row{
			{Tokens: []int32{1, 2, 3, 4}, Positions: []int32{3}, LogProbs: make([]float32, 1), Advantages: []float64{1}},
		}},
		{"grammars", []row.Call{
			within(call([]int32{1}, []int32{2, 3}, 1), "g"), call([]int32{1, 2, 3}, []int32{4}, 1),
			within(untrained, "g"), within(call([]int32{1, 2, 3, 4, 5}, []int32{6}, 1), "h"),
		}, []row.Row{{
			Tokens: []int32{1, 2, 3, 4, 5, 6}, Positions: []int32{1, 2, 3, 5}, LogProbs: make([]float32, 4), Advantages: []float64{1, 1, 1, 1},
			Grammars: []row.Grammar{{Encoded: "g", Room: 9, From: 0, Tokens: 2}, {Encoded: "h", Room: 9, From: 3, Tokens: 1}},
		}}},
		{"an untrained call alone is left out", []row.Call{untrained}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := row.Merge(tt.calls)
			if len(got) == 0 && len(tt.want) == 0 {
				return
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
		})
	}
}

// model is a toy autoregressive model: the log-prob of a token depends on it and on every token before it, and its
// gradient by the model's parameters is the vector feature.
func feature(context []int32, token int32) [4]float64 {
	var f [4]float64
	for i, t := range context {
		f[int(t)%4] += math.Sin(float64(i+1) * float64(t+1))
	}
	f[int(token)%4] += float64(token)
	return f
}

type trained struct {
	logProb   float32
	advantage float64
	feature   [4]float64
}

// gradients returns what each trained token of the rows contributes, in no particular order, and the tokens run.
func gradients(rows []row.Row) (map[string]int, int) {
	out, size := make(map[string]int), 0
	for _, r := range rows {
		size += len(r.Tokens)
		for i, p := range r.Positions {
			out[fmt.Sprint(trained{r.LogProbs[i], r.Advantages[i], feature(r.Tokens[:p], r.Tokens[p])})]++
		}
	}
	return out, size
}

// Merged rows train exactly the tokens that one row for each call would, each in the same context and with the same
// log-prob and advantage, and never run more tokens.
func TestMergeEqualsSeparateRows(t *testing.T) {
	tokens := rapid.SliceOfN(rapid.Int32Range(0, 2), 1, 3)
	rapid.Check(t, func(t *rapid.T) {
		var calls []row.Call
		for i := range rapid.IntRange(0, 6).Draw(t, "calls") {
			var prompt []int32
			// Continue an earlier call, exactly or after a change, or start afresh.
			if i > 0 && rapid.Bool().Draw(t, "continues") {
				earlier := calls[rapid.IntRange(0, i-1).Draw(t, "earlier")]
				prompt = append(append(prompt, earlier.Prompt...), earlier.Completion...)
				if rapid.Bool().Draw(t, "changed") {
					prompt[rapid.IntRange(0, len(prompt)-1).Draw(t, "at")] = rapid.Int32Range(0, 2).Draw(t, "to")
				}
			}
			if len(prompt) == 0 || rapid.Bool().Draw(t, "longer") {
				prompt = append(prompt, tokens.Draw(t, "suffix")...)
			}
			c := call(prompt, tokens.Draw(t, "completion"), float64(rapid.IntRange(-3, 3).Draw(t, "advantage")))
			for j := range c.LogProbs {
				c.LogProbs[j] = -float32(8*i + j)
			}
			c.Train = rapid.IntRange(0, 4).Draw(t, "train") > 0
			calls = append(calls, c)
		}
		var separate []row.Row
		for _, c := range calls {
			separate = append(separate, row.Merge([]row.Call{c})...)
		}
		want, most := gradients(separate)
		for _, c := range calls {
			if !c.Train {
				most += len(c.Prompt) + len(c.Completion) // context that a merged row may carry along
			}
		}
		got, size := gradients(row.Merge(calls))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("trained tokens (-separate +merged):\n%s", diff)
		}
		if size > most {
			t.Fatalf("merged rows run %d tokens, separate ones %d", size, most)
		}
	})
}

func TestPack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOf(rapid.IntRange(1, 20)).Draw(t, "sizes")
		budget := rapid.IntRange(1, 40).Draw(t, "budget")
		start := 0
		for _, end := range row.Pack(len(sizes), func(i int) int { return sizes[i] }, budget) {
			sum := 0
			for _, s := range sizes[start:end] {
				sum += s
			}
			if end <= start || (sum > budget && end-start > 1) {
				t.Fatalf("micro-batch [%d,%d) has %d tokens of %d", start, end, sum, budget)
			}
			if end < len(sizes) && sum+sizes[end] <= budget {
				t.Fatalf("micro-batch [%d,%d) had room for row %d", start, end, end)
			}
			start = end
		}
		if start != len(sizes) {
			t.Fatalf("packed %d of %d rows", start, len(sizes))
		}
	})
}
