package learner

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
	"github.com/lightswarm/lightswarm/wire/draw"
)

// The intervals are those of Wilson's formula as tabulated by R's prop.test(x, n, correct = FALSE).
func TestEvaluationInterval(t *testing.T) {
	tests := []struct {
		successes, tasks int
		low, high        float64
	}{
		{0, 0, 0, 1},
		{0, 10, 0, 0.2775328},
		{10, 10, 0.7224672, 1},
		{5, 10, 0.2365931, 0.7634069},
		{90, 100, 0.8256343, 0.9447708},
	}
	for _, tt := range tests {
		e := Evaluation{Successes: tt.successes, Tasks: tt.tasks}
		low, high := e.Interval()
		if math.Abs(low-tt.low) > 1e-6 || math.Abs(high-tt.high) > 1e-6 {
			t.Errorf("%d of %d: [%v, %v], want [%v, %v]", tt.successes, tt.tasks, low, high, tt.low, tt.high)
		}
	}
}

// The intervals are those of Newcombe's table II, method 10.
func TestEvaluationDifference(t *testing.T) {
	for _, tt := range []struct {
		x, n, y, m int
		low, high  float64
	}{
		{56, 70, 48, 80, 0.0524, 0.3339},
		{9, 10, 3, 10, 0.1705, 0.8090},
		{5, 56, 0, 29, -0.0381, 0.1926},
		{10, 10, 0, 10, 0.6075, 1},
	} {
		low, high := Evaluation{Successes: tt.x, Tasks: tt.n}.Difference(Evaluation{Successes: tt.y, Tasks: tt.m}, Confident)
		if math.Abs(low-tt.low) > 1e-4 || math.Abs(high-tt.high) > 1e-4 {
			t.Errorf("%d/%d - %d/%d: [%.4f, %.4f], want [%v, %v]", tt.x, tt.n, tt.y, tt.m, low, high, tt.low, tt.high)
		}
	}
}

func TestBoardCountsFirstResults(t *testing.T) {
	n := plainNetwork(t)
	r, err := NewRules(n.charter, n.base, testContext, nil)
	if err != nil {
		t.Fatal(err)
	}
	b := NewBoard(r)
	const sampled = wire.PurposeEvaluateSampled
	add := func(e *bundle.Bundle, fresh int) {
		t.Helper()
		if got := b.Add(e); got != fresh {
			t.Errorf("%d new results, want %d", got, fresh)
		}
	}
	first := n.evaluation(3, digestOf(3), sampled, 0, 3)
	first.Rollouts[0].Outcome, first.Rollouts[0].Reward = bundle.OutcomeTimeout, 0
	first.Rollouts[3].Outcome, first.Rollouts[3].Reward = bundle.OutcomeAgentError, 0
	add(first, 3)
	if b.Complete(3, sampled, 0) {
		t.Error("a block is complete although a task timed out")
	}
	add(first, 0)
	add(n.evaluation(3, digestOf(3), sampled, 0, 4), 1) // the task that timed out; what the other says of the rest is late
	if !b.Complete(3, sampled, 0) || b.Complete(3, sampled, 1) || b.Complete(3, wire.PurposeEvaluateGreedy, 0) {
		t.Error("the wrong blocks are complete")
	}
	for block := range uint64(draw.EvaluationBlocks(r.Charter)) {
		if results := b.Results(3); results.Version != 3 || results.Has(sampled, block) != (block == 0) || results.Has(wire.PurposeEvaluateGreedy, block) {
			t.Errorf("block %d in %+v", block, results)
		}
	}
	add(n.evaluation(3, digestOf(3), sampled, 5, 1), 2) // the last block of the other environment has two tasks
	want := Evaluation{Version: 3, Purpose: sampled, Tasks: 6, Expected: 20, Successes: 4, RewardMean: 4. / 6}
	if diff := cmp.Diff(want, b.Evaluation(3, sampled)); diff != "" {
		t.Errorf("evaluation (-want +got):\n%s", diff)
	}
	b.Close(4)
	add(n.evaluation(3, digestOf(3), sampled, 1, 1), 0)
	if diff := cmp.Diff([]Evaluation{want}, b.Evaluations()); diff != "" {
		t.Errorf("evaluations of a closed version (-want +got):\n%s", diff)
	}
}

// In whatever order blocks arrive and however often, a version's evaluation ends up the same, and survives being stored.
func TestBoardIsOrderFree(t *testing.T) {
	n := plainNetwork(t)
	r, err := NewRules(n.charter, n.base, testContext, nil)
	if err != nil {
		t.Fatal(err)
	}
	blocks := draw.EvaluationBlocks(&n.charter.Charter)
	rapid.Check(t, func(t *rapid.T) {
		b := NewBoard(r)
		order := rapid.Permutation(indices(blocks)).Draw(t, "order")
		for i, block := range order {
			b.Add(n.evaluation(4, digestOf(4), wire.PurposeEvaluateGreedy, block, block%3))
			again := order[rapid.IntRange(0, i).Draw(t, "again")]
			b.Add(n.evaluation(4, digestOf(4), wire.PurposeEvaluateGreedy, again, 4))
			p := progress{nextOrder: 9, reasons: map[Reason]uint64{Stale: 3}, board: b, behaviours: []Behaviour{{4, digestOf(4), true}}}
			encoded, err := p.encode()
			if err != nil {
				t.Fatal(err)
			}
			decoded, err := decodeProgress(encoded, r)
			if err != nil {
				t.Fatal(err)
			}
			if decoded.nextOrder != 9 || decoded.reasons[Stale] != 3 || decoded.behaviours[0] != p.behaviours[0] {
				t.Fatalf("decoded %+v", decoded)
			}
			b = decoded.board
		}
		got := b.Evaluation(4, wire.PurposeEvaluateGreedy)
		want := Evaluation{Version: 4, Purpose: wire.PurposeEvaluateGreedy, Tasks: 20, Expected: 20, Successes: 6, RewardMean: 0.3}
		if diff := cmp.Diff(want, got); diff != "" || !got.Complete() {
			t.Fatalf("evaluation (-want +got):\n%s", diff)
		}
	})
}

func indices(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}
