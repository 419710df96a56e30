package transformer

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite golden files")

var stepOptions = AdamW{LR: 1e-2, Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8, WeightDecay: 0.1, ClipNorm: 1}

// likelihood makes every trained token likelier.
func likelihood(_ int, _, _, grad []float32) {
	for i := range grad {
		grad[i] = -1
	}
}

func trainingBatch(c Config, n int) (batch []Sequence) {
	random := rand.New(rand.NewPCG(5, 5))
	for range n {
		batch = append(batch, randomSequence(c, random, c.Context))
	}
	return batch
}

var trainingConfig = Config{Hidden: 32, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 8, Intermediate: 48, Vocab: 20, Context: 30, RopeTheta: 10000, NormEpsilon: 1e-6, TieEmbeddings: true}

func TestTrainingLearns(t *testing.T) {
	batch := trainingBatch(trainingConfig, 4)
	trainer := NewTrainer(Init(trainingConfig, 1), Options{Workers: 2})
	mean := func() float64 {
		o, err := trainer.Forward(batch)
		if err != nil {
			t.Fatal(err)
		}
		sum, n := 0.0, 0
		for _, s := range o.LogProbs {
			for _, l := range s {
				sum += float64(l)
				n++
			}
		}
		return sum / float64(n)
	}
	if before := mean(); math.Abs(before+math.Log(20)) > 0.2 {
		t.Errorf("a fresh model gives its tokens a mean log-prob of %.2f", before)
	}
	for range 120 {
		if err := trainer.Accumulate(batch, likelihood); err != nil {
			t.Fatal(err)
		}
		trainer.Step(stepOptions)
	}
	if after := mean(); after < -0.3 {
		t.Errorf("after training on four sequences, their tokens have a mean log-prob of %.2f", after)
	}
}

// A trainer restored from a state goes on with the same bits, and so does one whose release was loaded.
func TestRestoreGoesOnExactly(t *testing.T) {
	batch := trainingBatch(trainingConfig, 6)
	train := func(trainer *Trainer, steps int) {
		for range steps {
			if err := trainer.Accumulate(batch, likelihood); err != nil {
				t.Fatal(err)
			}
			trainer.Step(stepOptions)
		}
	}
	a := NewTrainer(Init(trainingConfig, 1), Options{})
	train(a, 2)
	state := a.State()
	if err := a.Accumulate(batch, likelihood); err != nil { // is not part of the state
		t.Fatal(err)
	}
	b := NewTrainer(Init(trainingConfig, 2), Options{Workers: 3})
	if err := errors.Join(b.Accumulate(batch[:1], likelihood), b.Restore(state), a.Restore(state)); err != nil {
		t.Fatal(err)
	}
	train(a, 2)
	train(b, 2)
	if !slices.Equal(a.State(), b.State()) || a.Steps() != 4 || b.Steps() != 4 {
		t.Error("the restored trainer went another way")
	}
	loaded, err := FromTensors(trainingConfig, a.Released())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(loaded.Flat, b.Parameters().Flat) {
		t.Error("the release does not hold the weights in use")
	}
}

func TestStepRefusesGradientsThatAreNotFinite(t *testing.T) {
	batch := trainingBatch(trainingConfig, 2)
	trainer := NewTrainer(Init(trainingConfig, 1), Options{})
	before := trainer.State()
	if err := trainer.Accumulate(batch, func(_ int, _, _, grad []float32) { grad[0] = float32(math.NaN()) }); err != nil {
		t.Fatal(err)
	}
	if norm := trainer.Step(stepOptions); !math.IsNaN(norm) {
		t.Errorf("gradient norm %v", norm)
	}
	if !slices.Equal(before, trainer.State()) {
		t.Error("the step changed the trainer")
	}
	if norm := trainer.Step(stepOptions); norm != 0 {
		t.Errorf("a gradient of norm %v is left", norm)
	}
}

func TestSequencesAreChecked(t *testing.T) {
	trainer := NewTrainer(Init(trainingConfig, 1), Options{})
	for name, s := range map[string]Sequence{
		"too long":            {Tokens: make([]int32, trainingConfig.Context+1)},
		"unknown token":       {Tokens: []int32{1, 20}},
		"negative token":      {Tokens: []int32{-1}},
		"first token trained": {Tokens: []int32{1, 2}, Train: []int32{0}},
		"trained twice":       {Tokens: []int32{1, 2}, Train: []int32{1, 1}},
		"beyond the end":      {Tokens: []int32{1, 2}, Train: []int32{2}},
		"not allowed":         {Tokens: []int32{1, 2}, Train: []int32{1}, Allowed: [][]uint64{{1 << 1}}},
		"too few sets":        {Tokens: []int32{1, 2}, Train: []int32{1}, Allowed: [][]uint64{}},
		"short set":           {Tokens: []int32{1, 2}, Train: []int32{1}, Allowed: [][]uint64{{}}},
	} {
		if _, err := trainer.Forward([]Sequence{{Tokens: []int32{1, 2}}, s}); err == nil || !strings.Contains(err.Error(), "sequence 1: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	o, err := trainer.Forward([]Sequence{{}, {Tokens: []int32{3}}})
	if err != nil || len(o.LogProbs) != 2 || len(o.LogProbs[0])+len(o.LogProbs[1]) != 0 {
		t.Errorf("sequences without trained tokens: %+v, %v", o, err)
	}
}

func TestRestoreRefuses(t *testing.T) {
	trainer := NewTrainer(Init(trainingConfig, 1), Options{})
	state := trainer.State()
	other := trainingConfig
	other.RopeTheta++
	nan := slices.Clone(state)
	copy(nan[len(nan)-4:], "\x00\x00\xc0\x7f")
	newer := slices.Clone(state)
	newer[len(stateMagic)-1]++
	for name, bad := range map[string][]byte{
		"empty":       nil,
		"short":       state[:len(state)-1],
		"long":        append(slices.Clone(state), 0),
		"other shape": NewTrainer(Init(other, 1), Options{}).State(),
		"NaN":         nan,
		"newer":       newer,
	} {
		if err := trainer.Restore(bad); !errors.Is(err, ErrState) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !slices.Equal(state, trainer.State()) {
		t.Error("a refused state changed the trainer")
	}
}

func FuzzRestore(f *testing.F) {
	c := Config{Hidden: 2, Layers: 1, Heads: 1, KVHeads: 1, HeadDim: 2, Intermediate: 1, Vocab: 2, Context: 4, RopeTheta: 1e4, NormEpsilon: 1e-6, TieEmbeddings: true}
	trainer := NewTrainer(Init(c, 1), Options{})
	f.Add(trainer.State())
	f.Add([]byte(stateMagic))
	f.Fuzz(func(t *testing.T, state []byte) {
		if err := trainer.Restore(state); err == nil && !slices.Equal(state, trainer.State()) {
			t.Fatal("an accepted state does not come back")
		}
	})
}

// The bits of initialisation, log-probs, gradients and updates are these on every machine.
func TestGolden(t *testing.T) {
	c := Config{Hidden: 40, Layers: 2, Heads: 6, KVHeads: 2, HeadDim: 12, Intermediate: 56, Vocab: 33, Context: 100, RopeTheta: 10000, NormEpsilon: 1e-6}
	batch := trainingBatch(c, 5)
	trainer := NewTrainer(lively(c, 9), Options{Workers: 2})
	hash := sha256.New()
	for range 3 {
		if err := trainer.Accumulate(batch, func(_ int, logProbs, entropies, grad []float32) {
			for i, l := range logProbs {
				grad[i] = l - entropies[i]
			}
		}); err != nil {
			t.Fatal(err)
		}
		trainer.Step(stepOptions)
		hash.Write(trainer.State())
	}
	got := hex.EncodeToString(hash.Sum(nil)) + "\n"
	path := filepath.Join("testdata", "state.sha256")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("states hash to %swant %s", got, want)
	}
}

func TestSteadyStateAllocatesLittle(t *testing.T) {
	batch := trainingBatch(trainingConfig, 40)
	trainer := NewTrainer(Init(trainingConfig, 1), Options{})
	step := func() {
		if err := trainer.Accumulate(batch, likelihood); err != nil {
			t.Fatal(err)
		}
		trainer.Step(stepOptions)
	}
	step()
	// Closures and no more: the batch has 40 sequences, and each row hundreds of numbers.
	if n := testing.AllocsPerRun(3, step); n > 150 {
		t.Errorf("a step makes %v allocations", n)
	}
}
