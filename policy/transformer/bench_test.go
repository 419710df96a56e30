package transformer

import (
	"math/rand/v2"
	"testing"

	"github.com/lightswarm/lightswarm/policy/kernel"
)

// sizes are those that the project quotes speeds for.
var sizes = []struct {
	name string
	c    Config
}{
	{"small", Config{Hidden: 128, Layers: 4, Heads: 4, KVHeads: 4, HeadDim: 32, Intermediate: 352, Vocab: 128, Context: 256, RopeTheta: 10000, NormEpsilon: 1e-6, TieEmbeddings: true}},
	{"mid", Config{Hidden: 256, Layers: 6, Heads: 8, KVHeads: 8, HeadDim: 32, Intermediate: 704, Vocab: 512, Context: 256, RopeTheta: 10000, NormEpsilon: 1e-6, TieEmbeddings: true}},
}

// benchmarkBatch is 32 sequences of 128 tokens, all but the first of each trained.
func benchmarkBatch(c Config) (batch []Sequence, tokens int) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 32 {
		s := Sequence{Tokens: make([]int32, 128)}
		for i := range s.Tokens {
			s.Tokens[i] = int32(random.IntN(c.Vocab))
			if i > 0 {
				s.Train = append(s.Train, int32(i))
			}
		}
		batch = append(batch, s)
	}
	return batch, 32 * 128
}

// measure runs f as a benchmark and reports how many tokens it does in a second, and in a second of processor time.
func measure(b *testing.B, tokens int, f func()) {
	b.ReportAllocs()
	f() // memory and caches
	before := cpuTime()
	for b.Loop() {
		f()
	}
	total := float64(tokens) * float64(b.N)
	b.ReportMetric(total/(cpuTime()-before).Seconds(), "tok/cpu-s")
	b.ReportMetric(total/b.Elapsed().Seconds(), "tok/s")
}

// BenchmarkTrain is forward, backward and update with one worker.
func BenchmarkTrain(b *testing.B) {
	for _, size := range sizes {
		b.Run(size.name, func(b *testing.B) {
			batch, tokens := benchmarkBatch(size.c)
			trainer := NewTrainer(Init(size.c, 1), Options{Workers: 1})
			measure(b, tokens, func() {
				err := trainer.Accumulate(batch, func(_ int, logProbs, _, grad []float32) {
					for i := range grad {
						grad[i] = -1 / float32(tokens)
					}
				})
				if err != nil {
					b.Fatal(err)
				}
				trainer.Step(AdamW{LR: 1e-3, Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8, WeightDecay: 0.1, ClipNorm: 1})
			})
		})
	}
}

// BenchmarkForward is the forward pass with one worker.
func BenchmarkForward(b *testing.B) {
	for _, size := range sizes {
		b.Run(size.name, func(b *testing.B) {
			batch, tokens := benchmarkBatch(size.c)
			trainer := NewTrainer(Init(size.c, 1), Options{Workers: 1})
			measure(b, tokens, func() {
				if _, err := trainer.Forward(batch); err != nil {
					b.Fatal(err)
				}
			})
		})
	}
}

// BenchmarkDecode is 128 steps of one thread: one token of every stream a step, with the log-prob of each.
func BenchmarkDecode(b *testing.B) {
	for _, size := range sizes {
		m := NewModel(Init(size.c, 1))
		for _, streams := range []struct {
			name string
			n    int
		}{{"64", 64}, {"1", 1}} {
			b.Run(size.name+"/"+streams.name, func(b *testing.B) {
				d := NewDecoder(1)
				segments := make([]Segment, streams.n)
				for i := range segments {
					segments[i] = Segment{Cache: m.NewCache(), Tokens: []int32{int32(i)}, Wanted: 1}
				}
				measure(b, 128*streams.n, func() {
					for i := range segments {
						segments[i].Cache.CopyPrefix(segments[i].Cache, 0)
					}
					for range 128 {
						d.Step(m, segments, func(s, _ int, logits []float32) {
							logit := logits[7]
							peak, sum := kernel.LogSoftmaxParts(logits)
							if LogProb(logit, peak, sum) > -1 {
								segments[s].Tokens[0] = 1
							}
						})
					}
				})
			})
		}
	}
}
