package transformer

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lightswarm/lightswarm/policy/kernel"
)

// decodeLogProbs feeds the sequences to a decoder in steps of random composition: random segments of random sequences,
// sometimes after its cache was thrown away and replaced by a copy of a prefix of another sequence's.
func decodeLogProbs(m *Model, batch []Sequence, random *rand.Rand, threads int) [][]float32 {
	d := NewDecoder(threads)
	caches := make([]*Cache, len(batch))
	all := make([][][]float32, len(batch)) // logits by position
	for i := range batch {
		caches[i] = m.NewCache()
		all[i] = make([][]float32, len(batch[i].Tokens))
	}
	for {
		var segments []Segment
		var of []int
		for i := range batch {
			left := len(batch[i].Tokens) - 1 - caches[i].Len()
			if left == 0 || random.IntN(3) == 0 {
				continue
			}
			if random.IntN(4) == 0 {
				j := random.IntN(len(batch))
				shared := 0
				for shared < min(caches[j].Len(), len(batch[i].Tokens)-1) && batch[i].Tokens[shared] == batch[j].Tokens[shared] {
					shared++
				}
				// The last shared token's successor may differ, so it is fed again.
				shared = max(shared-1, 0)
				caches[i].CopyPrefix(caches[j], shared)
				copy(all[i][:shared+1], all[j])
				left = len(batch[i].Tokens) - 1 - shared
			}
			if left > 0 {
				from := caches[i].Len()
				n := 1 + random.IntN(left)
				segments = append(segments, Segment{Cache: caches[i], Tokens: batch[i].Tokens[from : from+n], Wanted: n})
				of = append(of, i)
			}
		}
		first := make([]int, len(segments))
		for s := range segments {
			first[s] = caches[of[s]].Len() + 1
		}
		d.Step(m, segments, func(s, token int, logits []float32) {
			all[of[s]][first[s]+token] = slices.Clone(logits)
		})
		done := true
		for i := range batch {
			done = done && caches[i].Len() == len(batch[i].Tokens)-1
		}
		if done {
			break
		}
	}
	trained := make([][]float32, len(batch))
	for i := range batch {
		trained[i] = []float32{}
		for k, position := range batch[i].Train {
			logits := slices.Clone(all[i][position])
			if batch[i].Allowed != nil {
				Restrict(logits, batch[i].Allowed[k])
			}
			logit := logits[batch[i].Tokens[position]]
			peak, sum := kernel.LogSoftmaxParts(logits)
			trained[i] = append(trained[i], LogProb(logit, peak, sum))
		}
	}
	return trained
}

func TestDecodingEqualsTraining(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		p := lively(c, random.Uint64())
		for i := range p.Flat { // a checkpoint in float32 is rounded by both
			p.Flat[i] *= 1 + random.Float32()/1000
		}
		var batch []Sequence
		for range rapid.IntRange(1, 6).Draw(t, "sequences") {
			s := randomSequence(c, random, c.Context)
			if len(batch) > 0 && random.IntN(2) == 0 { // a shared prefix
				copy(s.Tokens[:random.IntN(len(s.Tokens))], batch[0].Tokens)
			}
			if random.IntN(2) == 0 {
				s = restrict(c, random, s)
			}
			batch = append(batch, s)
		}
		trainer := NewTrainer(p, Options{Workers: rapid.IntRange(1, 3).Draw(t, "workers")})
		want, err := trainer.Forward(batch)
		if err != nil {
			t.Fatal(err)
		}
		err = trainer.Accumulate(batch, func(i int, logProbs, entropies, grad []float32) {
			if !slices.Equal(logProbs, want.LogProbs[i]) || !slices.Equal(entropies, want.Entropies[i]) {
				t.Fatalf("sequence %d: Accumulate has other log-probs than Forward", i)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		got := decodeLogProbs(NewModel(p), batch, random, rapid.IntRange(1, 4).Draw(t, "threads"))
		if diff := cmp.Diff(want.LogProbs, got); diff != "" {
			t.Fatalf("decoding differs from training (-training +decoding):\n%s", diff)
		}
	})
}

// A trainer's whole state is the same for any number of workers and any division of a batch among calls.
func TestTrainingIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		p := lively(c, random.Uint64())
		var batch []Sequence
		for range rapid.IntRange(1, 8).Draw(t, "sequences") { // more than workers, and more than one block of queries
			batch = append(batch, restrict(c, random, randomSequence(c, random, min(c.Context, attentionRows+20))))
		}
		var want []byte
		for _, workers := range []int{1, 2, 5} {
			trainer := NewTrainer(p, Options{Workers: workers})
			cuts := rand.New(rand.NewPCG(uint64(workers), 0))
			for range 2 {
				for from := 0; from < len(batch); {
					to := len(batch)
					if workers > 1 {
						to = from + 1 + cuts.IntN(len(batch)-from)
					}
					err := trainer.Accumulate(batch[from:to], func(i int, logProbs, entropies, grad []float32) {
						for j, l := range logProbs {
							grad[j] = l + 1
						}
					})
					if err != nil {
						t.Fatal(err)
					}
					from = to
				}
				trainer.Step(AdamW{LR: 1e-2, Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8, WeightDecay: 0.1, ClipNorm: 1})
			}
			state := trainer.State()
			if want == nil {
				want = state
			}
			if !slices.Equal(state, want) {
				t.Fatalf("%d workers: another state", workers)
			}
		}
	})
}

// Kernel paths do not change a bit of decoding or training.
func TestKernelPathsAgree(t *testing.T) {
	defer func(path string) {
		if err := kernel.Use(path); err != nil {
			t.Error(err)
		}
	}(kernel.Active())
	c := Config{Hidden: 48, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 24, Intermediate: 80, Vocab: 50, Context: 120, RopeTheta: 10000, NormEpsilon: 1e-6, TieEmbeddings: true}
	random := rand.New(rand.NewPCG(1, 2))
	p := lively(c, 3)
	var batch []Sequence
	for range 4 {
		batch = append(batch, restrict(c, random, randomSequence(c, random, c.Context)))
	}
	var wantLogProbs [][]float32
	var wantState []byte
	for _, path := range kernel.Available() {
		if err := kernel.Use(path); err != nil {
			t.Fatal(err)
		}
		logProbs := decodeLogProbs(NewModel(p), batch, random, 2)
		trainer := NewTrainer(p, Options{Workers: 2})
		for range 2 {
			if err := trainer.Accumulate(batch, func(_ int, logProbs, _, grad []float32) {
				for j, l := range logProbs {
					grad[j] = l * 0.01
				}
			}); err != nil {
				t.Fatal(err)
			}
			trainer.Step(AdamW{LR: 1e-2, Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8})
		}
		if wantState == nil {
			wantLogProbs, wantState = logProbs, trainer.State()
			continue
		}
		if diff := cmp.Diff(wantLogProbs, logProbs); diff != "" {
			t.Errorf("%s: log-probs differ (-portable +%s):\n%s", path, path, diff)
		}
		if !slices.Equal(trainer.State(), wantState) {
			t.Errorf("%s: another trainer state than portable's", path)
		}
	}
}
