package transformer

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// loss is a smooth function of log-probs whose derivative differs from token to token.
func loss(sequence, token int, logProb float64) (value, derivative float64) {
	weight := math.Sin(float64(3*sequence + token + 1))
	return weight * (logProb + 0.1*logProb*logProb), weight * (1 + 0.2*logProb)
}

func TestForwardMatchesReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		p := lively(c, random.Uint64())
		s := restrict(c, random, randomSequence(c, random, min(c.Context, 20)))
		got, err := NewTrainer(p, Options{}).Forward([]Sequence{s})
		if err != nil {
			t.Fatal(err)
		}
		logProbs, entropies := newReference(p).logProbs(s)
		for i := range logProbs {
			if d := math.Abs(logProbs[i] - float64(got.LogProbs[0][i])); !(d < 1e-3*(1+math.Abs(logProbs[i]))) {
				t.Errorf("log-prob %d is %v, want %v", i, got.LogProbs[0][i], logProbs[i])
			}
			if d := math.Abs(entropies[i] - float64(got.Entropies[0][i])); !(d < 1e-3) {
				t.Errorf("entropy %d is %v, want %v", i, got.Entropies[0][i], entropies[i])
			}
		}
	})
}

// Every element of the gradient agrees with the difference quotient of the reference.
func TestGradientMatchesFiniteDifferences(t *testing.T) {
	for name, c := range map[string]Config{
		"tied":    {Hidden: 6, Layers: 2, Heads: 2, KVHeads: 2, HeadDim: 4, Intermediate: 7, Vocab: 9, Context: 60, RopeTheta: 100, NormEpsilon: 1e-5, TieEmbeddings: true},
		"grouped": {Hidden: 5, Layers: 1, Heads: 4, KVHeads: 2, HeadDim: 2, Intermediate: 6, Vocab: 8, Context: 60, RopeTheta: 10000, NormEpsilon: 1e-6},
	} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(7, 7))
			p := lively(c, 11)
			batch := []Sequence{
				randomSequence(c, random, 8),
				{Tokens: []int32{1, 2, 3}}, // nothing to train
				randomSequence(c, random, 8),
			}
			long := Sequence{Tokens: make([]int32, attentionRows+3)} // more than one block of queries
			for i := range long.Tokens {
				long.Tokens[i] = int32(random.IntN(c.Vocab))
			}
			long.Train = []int32{1, 5, attentionRows + 2}
			batch = append(batch, long, restrict(c, random, randomSequence(c, random, 12)))

			trainer := NewTrainer(p, Options{Workers: 2})
			if err := trainer.Accumulate(batch, func(i int, logProbs, _, grad []float32) {
				for j, l := range logProbs {
					_, derivative := loss(i, j, float64(l))
					grad[j] = float32(derivative)
				}
			}); err != nil {
				t.Fatal(err)
			}
			if c.TieEmbeddings {
				for i, v := range trainer.headGradient {
					trainer.gradients.head[i] += v
				}
			}

			r := newReference(p)
			total := func() (sum float64) {
				for i, s := range batch {
					logProbs, _ := r.logProbs(s)
					for j, l := range logProbs {
						value, _ := loss(i, j, l)
						sum += value
					}
				}
				return sum
			}
			const h = 1e-6
			for i, g := range trainer.gradients.Flat {
				w := r.flat[i]
				r.flat[i] = w + h
				up := total()
				r.flat[i] = w - h
				down := total()
				r.flat[i] = w
				want := (up - down) / (2 * h)
				if !(math.Abs(want-float64(g)) < 5e-5*(1+math.Abs(want))) {
					t.Errorf("gradient %d is %v, want %v", i, g, want)
				}
			}
		})
	}
}
