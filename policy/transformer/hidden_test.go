package transformer

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/lightswarm/lightswarm/policy/kernel"
)

// What Hidden returns is what the output head makes log-probs of, to the bit, whatever else is in the batch and whatever
// the predicted token is.
func TestHiddenIsWhatTheHeadReads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		var batch []Sequence
		for range rapid.IntRange(1, 4).Draw(t, "sequences") {
			batch = append(batch, restrict(c, random, randomSequence(c, random, c.Context)))
		}
		trainer := NewTrainer(lively(c, random.Uint64()), Options{Workers: rapid.IntRange(1, 3).Draw(t, "workers")})
		want, err := trainer.Forward(batch)
		if err != nil {
			t.Fatal(err)
		}
		hidden, err := trainer.Hidden(batch)
		if err != nil {
			t.Fatal(err)
		}
		logits := make([]float32, c.Vocab)
		for i, s := range batch {
			for k, position := range s.Train {
				kernel.MatMul(false, 1, c.Vocab, c.Hidden, hidden[i][k], c.Hidden, &trainer.model.head, logits, c.Vocab, false)
				Restrict(logits, s.Allowed[k])
				logit := logits[s.Tokens[position]]
				peak, sum := kernel.LogSoftmaxParts(logits)
				if got := LogProb(logit, peak, sum); got != want.LogProbs[i][k] {
					t.Fatalf("sequence %d, position %d: log-prob %v, Forward says %v", i, position, got, want.LogProbs[i][k])
				}
				alone := Sequence{Tokens: append(slices.Clone(s.Tokens[:position]), 0), Train: []int32{position}}
				again, err := trainer.Hidden([]Sequence{alone})
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(again[0][0], hidden[i][k]) {
					t.Fatalf("sequence %d, position %d: alone and before another token it has another state", i, position)
				}
			}
		}
	})
}
