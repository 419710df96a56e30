package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// repeat is how often a short kernel runs in one measured iteration.
const repeat = 16

// eachPath runs a benchmark on every available path.
func eachPath(b *testing.B, f func(b *testing.B)) {
	was := Active()
	b.Cleanup(func() { mustUse(b, was) })
	for _, name := range Available() {
		b.Run(name, func(b *testing.B) {
			mustUse(b, name)
			f(b)
		})
	}
}

// measure runs f and reports the rate of its operations: the mean, and that of the fastest iteration, which is what
// counts on a machine that others use too.
func measure(b *testing.B, operations int, unit string, f func()) {
	best := time.Duration(math.MaxInt64)
	for b.Loop() {
		start := time.Now()
		f()
		best = min(best, time.Since(start))
	}
	b.ReportMetric(float64(operations)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), unit)
	b.ReportMetric(float64(operations)/float64(best.Nanoseconds()), "best-"+unit)
}

// BenchmarkMatMul covers the shapes of a small model's training (4096 rows), batched decoding (64) and one stream (1).
func BenchmarkMatMul(b *testing.B) {
	shapes := []struct {
		name    string
		transA  bool
		m, n, k int
	}{
		{"forward", false, 4096, 384, 128},
		{"forward", false, 4096, 704, 128},
		{"forward", false, 4096, 128, 352},
		{"gradient", true, 384, 128, 4096},
		{"gradient", true, 128, 352, 4096},
		{"scores", false, 128, 128, 32},
		{"values", false, 128, 32, 128},
		{"decode", false, 64, 384, 128},
		{"decode", false, 8, 384, 128},
		{"decode", false, 1, 384, 128},
		{"decode", false, 1, 128, 352},
	}
	for _, s := range shapes {
		b.Run(fmt.Sprintf("%s/%dx%dx%d", s.name, s.m, s.n, s.k), func(b *testing.B) {
			eachPath(b, func(b *testing.B) {
				r := rand.New(rand.NewPCG(1, 2))
				x, w, c := Alloc(s.m*s.k), even(r, s.n*s.k), Alloc(s.m*s.n)
				copy(x, even(r, len(x)))
				lda := s.k
				if s.transA {
					lda = s.m
				}
				var packed Packed
				packed.Pack(false, s.n, s.k, w, s.n)
				measure(b, 2*s.m*s.n*s.k, "GFLOP/s", func() {
					MatMul(s.transA, s.m, s.n, s.k, x, lda, &packed, c, s.n, false)
				})
			})
		})
	}
}

func BenchmarkPack(b *testing.B) {
	for _, trans := range []bool{false, true} {
		b.Run(fmt.Sprintf("trans=%v/128x128", trans), func(b *testing.B) {
			eachPath(b, func(b *testing.B) {
				w := make([]float32, 128*128)
				var packed Packed
				measure(b, 128*128, "Gelement/s", func() { packed.Pack(trans, 128, 128, w, 128) })
			})
		})
	}
}

func BenchmarkVecMat(b *testing.B) {
	for _, s := range [][2]int{{32, 100}, {100, 32}} {
		b.Run(fmt.Sprintf("k=%d/n=%d", s[0], s[1]), func(b *testing.B) {
			eachPath(b, func(b *testing.B) {
				a, m, c := make([]float32, s[0]), make([]float32, s[0]*s[1]), make([]float32, s[1])
				measure(b, 2*s[0]*s[1]*repeat, "GFLOP/s", func() {
					for range repeat {
						VecMat(s[0], s[1], a, m, s[1], c, false)
					}
				})
			})
		})
	}
}

// BenchmarkVectors runs the element-wise kernels on rows of 352, and softmax on 100.
func BenchmarkVectors(b *testing.B) {
	for _, c := range vectorCases {
		b.Run(c.name, func(b *testing.B) {
			n := 352
			if c.name == "SoftmaxScaled" || c.name == "SoftmaxBackward" {
				n = 100
			}
			eachPath(b, func(b *testing.B) {
				r := rand.New(rand.NewPCG(1, 2))
				s := make([][]float32, c.slices)
				for i := range s {
					s[i] = even(r, n)
				}
				measure(b, n*repeat, "Gelement/s", func() {
					for range repeat {
						c.run(s, r)
					}
				})
			})
		})
	}
}
