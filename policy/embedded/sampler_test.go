package embedded

import (
	"cmp"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lightswarm/lightswarm/policy"
	"pgregory.net/rapid"
)

// naive is the distribution that the package promises, in float64.
func naive(logits []float32, p policy.Sampling) []float64 {
	ids := make([]int, len(logits))
	weights := make([]float64, len(logits))
	top := slices.Max(logits)
	for i, l := range logits {
		ids[i], weights[i] = i, math.Exp(float64(l-top)/float64(p.Temperature))
	}
	slices.SortFunc(ids, func(a, b int) int {
		return cmp.Or(cmp.Compare(logits[b], logits[a]), cmp.Compare(a, b))
	})
	if p.TopK > 0 {
		ids = ids[:min(len(ids), p.TopK)]
	}
	if p.TopP > 0 && p.TopP < 1 {
		total, sum := 0.0, 0.0
		for _, id := range ids {
			total += weights[id]
		}
		for n, id := range ids {
			if sum += weights[id]; sum >= float64(p.TopP)*total {
				ids = ids[:n+1]
				break
			}
		}
	}
	total, out := 0.0, make([]float64, len(logits))
	for _, id := range ids {
		total += weights[id]
	}
	for _, id := range ids {
		out[id] = weights[id] / total
	}
	return out
}

func TestSampledLogProbsAreOfTheDistribution(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		logits := make([]float32, rapid.IntRange(1, 80).Draw(t, "vocab"))
		for i := range logits {
			logits[i] = float32(random.IntN(17) - 8) // ties are common
			if random.IntN(2) == 0 {
				logits[i] += random.Float32()
			}
		}
		p := policy.Sampling{
			Temperature: rapid.SampledFrom([]float32{1, 0.3, 2, 1e-30}).Draw(t, "temperature"),
			TopK:        rapid.IntRange(0, 90).Draw(t, "k"),
			TopP:        rapid.SampledFrom([]float32{0, 1, 0.1, 0.5, 0.9, 0.999}).Draw(t, "p"),
		}
		want := naive(logits, p)
		var s sampler
		for position := range 20 {
			token, logProb, err := s.sample(slices.Clone(logits), p, policy.SampleKey{1}, position)
			if err != nil {
				t.Fatal(err)
			}
			if d := math.Abs(math.Log(want[token]) - float64(logProb)); !(d < 1e-4) {
				t.Fatalf("token %d has log-prob %v, want %v", token, logProb, math.Log(want[token]))
			}
			if logProb != float32(math.RoundToEven(float64(logProb)/policy.LogProbGrid)*policy.LogProbGrid) || logProb > 0 {
				t.Fatalf("log-prob %v is not on the grid", logProb)
			}
		}
	})
}

// The numbers of a key's stream draw each token as often as it is likely.
func TestSamplingFollowsTheDistribution(t *testing.T) {
	logits := []float32{0, 1, -30, 2, 1, 0.5, -1}
	for _, p := range []policy.Sampling{{Temperature: 1}, {Temperature: 0.5}, {Temperature: 1, TopK: 3}, {Temperature: 2, TopP: 0.7}} {
		const draws = 20000
		want, counts := naive(logits, p), make([]float64, len(logits))
		var s sampler
		for i := range draws {
			token, _, err := s.sample(slices.Clone(logits), p, policy.SampleKey{7}, i)
			if err != nil {
				t.Fatal(err)
			}
			counts[token]++
		}
		for id, n := range counts {
			deviation := math.Sqrt(draws*want[id]*(1-want[id])) + 1e-9
			if math.Abs(n-draws*want[id]) > 4*deviation+0.5 {
				t.Errorf("%+v: token %d came %v times, expected %.1f ± %.1f", p, id, n, draws*want[id], deviation)
			}
		}
	}
}

func TestTiesGoToTheLowestID(t *testing.T) {
	logits := []float32{1, 3, 3, 2, 3}
	var s sampler
	for position := range 50 {
		for _, p := range []policy.Sampling{{}, {Temperature: 1, TopK: 1}, {Temperature: 1, TopP: 0.01}} {
			token, logProb, err := s.sample(slices.Clone(logits), p, policy.SampleKey{9}, position)
			if err != nil || token != 1 {
				t.Fatalf("%+v: token %d, %v", p, token, err)
			}
			if greedy := p.Temperature == 0; greedy != (logProb < 0) {
				t.Fatalf("%+v: log-prob %v", p, logProb)
			}
		}
		if token, _, _ := s.sample(slices.Clone(logits), policy.Sampling{Temperature: 1, TopK: 2}, policy.SampleKey{9}, position); token != 1 && token != 2 {
			t.Fatalf("top-2 drew %d", token)
		}
	}
}

func TestLogitsThatAreNotFinite(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	var s sampler
	for _, logits := range [][]float32{{nan, nan}, {1, nan}, {nan, 1}, {inf, 1}, {inf, inf}, {-inf, -inf}} {
		for _, p := range []policy.Sampling{{}, {Temperature: 1}, {Temperature: 0.5}, {Temperature: 1, TopK: 1}, {Temperature: 1, TopP: 0.5}} {
			if _, _, err := s.sample(slices.Clone(logits), p, policy.SampleKey{}, 0); !errors.Is(err, ErrNotFinite) {
				t.Errorf("%v %+v: %v", logits, p, err)
			}
		}
	}
}
