package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// vectorCase runs one element-wise function on slices s (each n long, changed in place) and scalars; it returns scalar
// results.
type vectorCase struct {
	name   string
	slices int
	run    func(s [][]float32, r *rand.Rand) []float32
}

var vectorCases = []vectorCase{
	{"Exp", 2, func(s [][]float32, _ *rand.Rand) []float32 { Exp(s[0], s[1]); return nil }},
	{"ExpInPlace", 1, func(s [][]float32, _ *rand.Rand) []float32 { Exp(s[0], s[0]); return nil }},
	{"SoftmaxScaled", 1, func(s [][]float32, r *rand.Rand) []float32 {
		SoftmaxScaled(s[0], r.Float32()+0.01)
		return nil
	}},
	{"SoftmaxBackward", 2, func(s [][]float32, r *rand.Rand) []float32 {
		SoftmaxBackward(s[0], s[1], r.Float32())
		return nil
	}},
	{"LogSoftmaxParts", 1, func(s [][]float32, _ *rand.Rand) []float32 {
		max, sum := LogSoftmaxParts(s[0])
		return []float32{max, sum}
	}},
	{"SiLUMul", 3, func(s [][]float32, _ *rand.Rand) []float32 { SiLUMul(s[0], s[1], s[2]); return nil }},
	{"SiLUMulInPlace", 2, func(s [][]float32, _ *rand.Rand) []float32 { SiLUMul(s[0], s[0], s[1]); return nil }},
	{"SiLUMulBackward", 5, func(s [][]float32, _ *rand.Rand) []float32 {
		SiLUMulBackward(s[0], s[1], s[2], s[3], s[4])
		return nil
	}},
	{"SiLUMulBackwardInPlace", 3, func(s [][]float32, _ *rand.Rand) []float32 {
		SiLUMulBackward(s[1], s[2], s[0], s[1], s[2])
		return nil
	}},
	{"RMSNorm", 3, func(s [][]float32, _ *rand.Rand) []float32 {
		if len(s[0]) == 0 {
			return nil
		}
		return []float32{RMSNorm(s[0], s[1], s[2], 1e-5)}
	}},
	{"RMSNormBackward", 5, func(s [][]float32, r *rand.Rand) []float32 {
		RMSNormBackward(s[0], s[1], s[2], s[3], s[4], r.Float32(), false)
		return nil
	}},
	{"RMSNormBackwardInPlace", 4, func(s [][]float32, r *rand.Rand) []float32 {
		RMSNormBackward(s[0], s[1], s[0], s[2], s[3], r.Float32(), false)
		return nil
	}},
	{"RMSNormBackwardAdd", 5, func(s [][]float32, r *rand.Rand) []float32 {
		RMSNormBackward(s[0], s[1], s[2], s[3], s[4], r.Float32(), true)
		return nil
	}},
	{"Rotate", 1, func(s [][]float32, r *rand.Rand) []float32 {
		h := len(s[0]) / 2
		Rotate(s[0][:2*h], draw(r, h, false), draw(r, h, false), false)
		return nil
	}},
	{"RotateBack", 1, func(s [][]float32, r *rand.Rand) []float32 {
		h := len(s[0]) / 2
		Rotate(s[0][:2*h], draw(r, h, false), draw(r, h, false), true)
		return nil
	}},
	{"Add", 2, func(s [][]float32, _ *rand.Rand) []float32 { Add(s[0], s[1]); return nil }},
	{"AddItself", 1, func(s [][]float32, _ *rand.Rand) []float32 { Add(s[0], s[0]); return nil }},
	{"SumSquares", 1, func(s [][]float32, _ *rand.Rand) []float32 {
		b := math.Float64bits(SumSquares(s[0]))
		if v := math.Float64frombits(b); v != v {
			return []float32{float32(v)}
		}
		// Both halves of the float64, as numbers that float32 holds exactly.
		return []float32{float32(b >> 48), float32(b >> 32 & 0xffff), float32(b >> 16 & 0xffff), float32(b & 0xffff)}
	}},
	{"AdamW", 4, func(s [][]float32, r *rand.Rand) []float32 {
		for i := range s[2] {
			s[2][i] = float32(math.Abs(float64(s[2][i]))) // the moment of squares is never negative
		}
		AdamW(s[0], s[1], s[2], s[3], NewAdamWStep(1e-3, 0.9, 0.999, 1e-8, 0.01, 0.7, 1+r.IntN(1000)))
		return nil
	}},
}

// result runs the case on the active path on inputs that depend on the seed alone.
func (c vectorCase) result(seed uint64, n int, wild bool) ([]float32, error) {
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	s, all := make([][]float32, c.slices), make([][]float32, c.slices)
	for i := range s {
		all[i], s[i] = guarded(draw(r, n, wild))
	}
	out := c.run(s, r)
	for i := range s {
		if !unharmed(all[i]) {
			return nil, fmt.Errorf("%s, n=%d: wrote outside slice %d", c.name, n, i)
		}
		out = append(out, s[i]...)
	}
	return out, nil
}

// agree compares every path with the portable one.
func (c vectorCase) agree(t testing.TB, seed uint64, n int, wild bool) error {
	var want []float32
	for i, name := range Available() {
		mustUse(t, name)
		got, err := c.result(seed, n, wild)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if i == 0 {
			want = got
		} else if at := differ(got, want); at >= 0 {
			return fmt.Errorf("%s, n=%d seed=%d wild=%v: %s gives %v at %d, portable %v", c.name, n, seed, wild, name, got[at], at, want[at])
		}
	}
	return nil
}

func TestVectorsAgreeAtEveryLength(t *testing.T) {
	was := Active()
	defer func() { mustUse(t, was) }()
	for _, c := range vectorCases {
		t.Run(c.name, func(t *testing.T) {
			for n := 0; n <= 100; n++ {
				for seed := range uint64(4) {
					if err := c.agree(t, seed, n, seed%2 == 1); err != nil {
						t.Fatal(err)
					}
				}
			}
		})
	}
}

func TestVectorsAgreeProperty(t *testing.T) {
	was := Active()
	defer func() { mustUse(t, was) }()
	rapid.Check(t, func(r *rapid.T) {
		c := rapid.SampledFrom(vectorCases).Draw(r, "case")
		n := rapid.IntRange(0, 700).Draw(r, "n")
		if err := c.agree(t, rapid.Uint64().Draw(r, "seed"), n, rapid.Bool().Draw(r, "wild")); err != nil {
			r.Fatal(err)
		}
	})
}

// TestExpAgreesOnAllExponents walks through all of float32 in steps, with every path.
func TestExpAgreesOnAllExponents(t *testing.T) {
	was := Active()
	defer func() { mustUse(t, was) }()
	const step = 40_009 // prime, so that the low bits vary
	x := make([]float32, 0, 1<<32/step+1)
	for b := uint64(0); b < 1<<32; b += step {
		x = append(x, math.Float32frombits(uint32(b)))
	}
	want, got := make([]float32, len(x)), make([]float32, len(x))
	for i, v := range x {
		want[i] = Exp1(v)
	}
	for _, name := range Available() {
		mustUse(t, name)
		Exp(got, x)
		if i := differ(got, want); i >= 0 {
			t.Fatalf("%s: Exp(%v) = %v, Exp1 gives %v", name, x[i], got[i], want[i])
		}
	}
}
