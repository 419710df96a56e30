// Command enginespeed measures the embedded engine against PyTorch on the CPU and against the CPU's own limit.
//
// Both sides run the same model and batch on one thread, in turns, so that the machine's load weighs on both. Figures
// are tokens a second of process CPU time; a round's figure is the best of a few repetitions, and the ratio that
// counts is the median over the rounds.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/lightswarm/lightswarm/policy/kernel"
	"github.com/lightswarm/lightswarm/policy/transformer"
)

// The ratios to PyTorch that must hold for the small model.
const (
	trainAtLeast    = 0.8
	sample64AtLeast = 1.7
	sample1AtLeast  = 8.0
)

// size is a model and its training batch of Batch sequences of Length tokens.
type size struct {
	name          string
	config        transformer.Config
	batch, length int
}

// speeds are tokens a second.
type speeds struct {
	Train    float64 `json:"train"`
	Forward  float64 `json:"forward"`
	Sample64 float64 `json:"sample64"`
	Sample1  float64 `json:"sample1"`
}

func main() {
	python := flag.String("python", "python3", "an interpreter that has torch")
	script := flag.String("script", "", "path of torch_speed.py")
	rounds := flag.Int("rounds", 3, "measurements of each side, in turns")
	flag.Parse()
	if err := run(*python, *script, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, "engine-speed:", err)
		os.Exit(1)
	}
}

func run(python, script string, rounds int) error {
	sizes := []size{
		{"small", shape(128, 4, 4, 352, 128), 32, 128},
		{"mid", shape(256, 6, 8, 704, 512), 32, 128},
	}
	peak := peakFlops()
	fmt.Printf("kernel %s, one core's float32 peak %.0f GFLOP/s\n", kernel.Active(), peak/1e9)
	var failures []error
	for _, s := range sizes {
		ours, theirs, err := measure(s, python, script, rounds)
		if err != nil {
			return err
		}
		failures = append(failures, show(s, ours, theirs, peak))
	}
	return errors.Join(failures...)
}

// measure runs both sides in turns. PyTorch runs under each BLAS setting of this machine; its best counts.
func measure(s size, python, script string, rounds int) (ours, theirs []speeds, err error) {
	for range rounds {
		best := speeds{}
		for _, core := range []string{"", "SkylakeX", "Haswell"} {
			t, err := torch(s, python, script, core)
			if err != nil {
				return nil, nil, err
			}
			best = speeds{max(best.Train, t.Train), max(best.Forward, t.Forward), max(best.Sample64, t.Sample64), max(best.Sample1, t.Sample1)}
		}
		theirs = append(theirs, best)
		o, err := engine(s)
		if err != nil {
			return nil, nil, err
		}
		ours = append(ours, o)
	}
	return ours, theirs, nil
}

// show prints the figures of one size and says which ratio does not hold.
func show(s size, ours, theirs []speeds, peak float64) error {
	parameters := len(transformer.Init(s.config, 1).Flat)
	fmt.Printf("\n%s: %d parameters, batch %d x %d, one thread, tokens per CPU second (median of %d rounds)\n", s.name, parameters, s.batch, s.length, len(ours))
	fmt.Printf("%-12s %10s %10s %7s %10s\n", "", "embedded", "PyTorch", "ratio", "of peak")
	var failures []error
	for _, row := range []struct {
		name    string
		figure  func(speeds) float64
		flops   float64 // per token and parameter
		atLeast float64
	}{
		{"train", func(v speeds) float64 { return v.Train }, 6, trainAtLeast},
		{"forward", func(v speeds) float64 { return v.Forward }, 2, 0},
		{"sample 64", func(v speeds) float64 { return v.Sample64 }, 2, sample64AtLeast},
		{"sample 1", func(v speeds) float64 { return v.Sample1 }, 2, sample1AtLeast},
	} {
		var a, b, ratios []float64
		for i := range ours {
			a, b = append(a, row.figure(ours[i])), append(b, row.figure(theirs[i]))
			ratios = append(ratios, row.figure(ours[i])/row.figure(theirs[i]))
		}
		share := "unknown"
		if peak > 0 {
			share = fmt.Sprintf("%.0f%%", 100*median(a)*row.flops*float64(parameters)/peak)
		}
		fmt.Printf("%-12s %10.0f %10.0f %7.2f %10s\n", row.name, median(a), median(b), median(ratios), share)
		if s.name == "small" && median(ratios) < row.atLeast {
			failures = append(failures, fmt.Errorf("%s: %.2f times PyTorch, want at least %.1f", row.name, median(ratios), row.atLeast))
		}
	}
	return errors.Join(failures...)
}

func shape(hidden, layers, heads, inner, vocab int) transformer.Config {
	return transformer.Config{
		Hidden: hidden, Layers: layers, Heads: heads, KVHeads: heads, HeadDim: hidden / heads, Intermediate: inner,
		Vocab: vocab, Context: 256, RopeTheta: 10000, NormEpsilon: 1e-6, TieEmbeddings: true,
	}
}

// torch runs torch_speed.py with OpenBLAS's kernels for one kind of core; empty leaves the choice to OpenBLAS.
func torch(s size, python, script, core string) (speeds, error) {
	c := s.config
	args := []string{script}
	for _, f := range []struct {
		name  string
		value int
	}{
		{"vocab", c.Vocab}, {"width", c.Hidden}, {"layers", c.Layers}, {"heads", c.Heads},
		{"inner", c.Intermediate}, {"batch", s.batch}, {"length", s.length}, {"rounds", 5},
	} {
		args = append(args, "--"+f.name, strconv.Itoa(f.value))
	}
	cmd := exec.Command(python, args...) //nolint:gosec // the caller names its own interpreter
	for _, v := range os.Environ() {
		if len(v) < 9 || v[:9] != "OPENBLAS_" {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "OPENBLAS_NUM_THREADS=1", "OMP_NUM_THREADS=1")
	if core != "" {
		cmd.Env = append(cmd.Env, "OPENBLAS_CORETYPE="+core)
	}
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return speeds{}, fmt.Errorf("timing PyTorch: %w", err)
	}
	var v speeds
	if err := json.Unmarshal(out, &v); err != nil {
		return speeds{}, fmt.Errorf("reading PyTorch's figures: %w", err)
	}
	return v, nil
}

// engine measures the embedded engine's trainer and decoder with one thread.
func engine(s size) (speeds, error) {
	const repetitions = 5
	random := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // test data
	var batch []transformer.Sequence
	for range s.batch {
		q := transformer.Sequence{Tokens: make([]int32, s.length)}
		for i := range q.Tokens {
			q.Tokens[i] = random.Int32N(int32(s.config.Vocab)) //nolint:gosec // small
			if i > 0 {
				q.Train = append(q.Train, int32(i)) //nolint:gosec // small
			}
		}
		batch = append(batch, q)
	}
	tokens := s.batch * s.length
	trainer := transformer.NewTrainer(transformer.Init(s.config, 1), transformer.Options{Workers: 1})
	var failure error
	train := best(repetitions, func() {
		failure = errors.Join(failure, trainer.Accumulate(batch, func(_ int, _, _, grad []float32) {
			for i := range grad {
				grad[i] = -1 / float32(tokens)
			}
		}))
		trainer.Step(transformer.AdamW{LR: 1e-3, Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8, WeightDecay: 0.1, ClipNorm: 1})
	})
	forward := best(repetitions, func() {
		_, err := trainer.Forward(batch)
		failure = errors.Join(failure, err)
	})
	model := transformer.NewModel(trainer.Parameters())
	sample := func(slots int) float64 {
		return best(repetitions, func() { decode(model, slots, s.length) })
	}
	return speeds{
		Train: float64(tokens) / train, Forward: float64(tokens) / forward,
		Sample64: float64(64*s.length) / sample(64), Sample1: float64(s.length) / sample(1),
	}, failure
}

// decode samples length tokens for each of slots sequences, one token each a step, at temperature 1.
func decode(m *transformer.Model, slots, length int) {
	random := rand.New(rand.NewPCG(2, 2)) //nolint:gosec // test data
	d := transformer.NewDecoder(1)
	segments := make([]transformer.Segment, slots)
	for i := range segments {
		segments[i] = transformer.Segment{Cache: m.NewCache(), Tokens: []int32{0}, Wanted: 1}
	}
	for range length {
		d.Step(m, segments, func(segment, _ int, logits []float32) {
			_, sum := kernel.LogSoftmaxParts(logits)
			rest := random.Float32() * sum
			chosen := 0
			for i, p := range logits {
				if rest -= p; rest < 0 {
					chosen = i
					break
				}
			}
			segments[segment].Tokens[0] = int32(chosen) //nolint:gosec // below the vocabulary
		})
	}
}

// best returns the least CPU seconds of the process that work took.
func best(repetitions int, work func()) float64 {
	seconds := make([]float64, repetitions)
	for i := range seconds {
		start := cpuTime()
		work()
		seconds[i] = (cpuTime() - start).Seconds()
	}
	return slices.Min(seconds)
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // it cannot fail with these arguments
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return s[len(s)/2]
}
