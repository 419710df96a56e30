package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// reference is the definition of a product's element, written as plainly as possible. It is called by one goroutine on
// memory of its own, as are the others below that are marked go:norace.
//
//go:norace
func reference(transA, transB bool, m, n, k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, accumulate bool) {
	for i := range m {
		for j := range n {
			var acc float32
			if accumulate {
				acc = c[i*ldc+j]
			}
			for l := range k {
				x, y := i*lda+l, l*ldb+j
				if transA {
					x = l*lda + i
				}
				if transB {
					y = j*ldb + l
				}
				acc += float32(a[x] * b[y])
			}
			c[i*ldc+j] = acc
		}
	}
}

// onEachPath runs a test on every available path and restores the active one.
func onEachPath(t *testing.T, f func(t *testing.T)) {
	restorePath(t)
	for _, name := range Available() {
		t.Run(name, func(t *testing.T) {
			mustUse(t, name)
			f(t)
		})
	}
}

// restorePath makes the active path active again when the test ends.
func restorePath(t *testing.T) {
	was := Active()
	t.Cleanup(func() { mustUse(t, was) })
}

func mustUse(t testing.TB, name string) {
	t.Helper()
	if err := Use(name); err != nil {
		t.Fatal(err)
	}
}

// special holds the values at which arithmetic goes wrong first.
var special = []float32{
	0, float32(math.Copysign(0, -1)), 1, -1, float32(math.Inf(1)), negInf, float32(math.NaN()),
	math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat32, 0x1p-126, -0x1p-127, 0x1p-70, -0x1p-75,
	math.MaxFloat32, -math.MaxFloat32, 0x1.fffffep63, 88.3, -87.5, -87.7, 89, 1e-20, 16777217, 0.1,
}

// draw fills a slice with normal values; wild mixes in special ones.
//
//go:norace
func draw(r *rand.Rand, n int, wild bool) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
		if wild && r.IntN(8) == 0 {
			x[i] = special[r.IntN(len(special))]
		}
	}
	return x
}

const guard float32 = -12345.678

// guarded copies x between guard elements; unharmed tells whether they are still there.
//
//go:norace
func guarded(x []float32) (all, inner []float32) {
	all = make([]float32, len(x)+128)
	for i := range all {
		all[i] = guard
	}
	inner = all[64 : 64+len(x) : 64+len(x)]
	copy(inner, x)
	return all, inner
}

//go:norace
func unharmed(all []float32) bool {
	for i := range 64 {
		if all[i] != guard || all[len(all)-1-i] != guard {
			return false
		}
	}
	return true
}

// differ returns the first index at which x and y are not the same bits (or not both NaN), or -1.
//
//go:norace
func differ(x, y []float32) int {
	for i := range x {
		if math.Float32bits(x[i]) != math.Float32bits(y[i]) && (x[i] == x[i] || y[i] == y[i]) {
			return i
		}
	}
	return -1
}

type product struct {
	transA, transB, accumulate, wild bool
	bf16                             bool // B holds bfloat16 values and is kept as such
	m, n, k, padA, padB, padC        int
	seed                             uint64
}

// check compares MatMul on every path with the definition, guards included. The active path is another one afterwards.
func (p product) check(t testing.TB) error {
	r := rand.New(rand.NewPCG(p.seed, 1))
	lda, ra := p.k+p.padA, p.m
	if p.transA {
		lda, ra = p.m+p.padA, p.k
	}
	ldb, rb := p.n+p.padB, p.k
	if p.transB {
		ldb, rb = p.k+p.padB, p.n
	}
	ldc := p.n + p.padC
	a, b := draw(r, ra*lda, p.wild), draw(r, rb*ldb, p.wild)
	// Cut to the last element needed, so that an overrun of the inputs would be caught by the bounds.
	a, b = a[:max(0, len(a)-p.padA)], b[:max(0, len(b)-p.padB)]
	if p.bf16 {
		for i, v := range b {
			b[i] = math.Float32frombits(math.Float32bits(v) &^ 0xffff)
		}
	}
	want := draw(r, p.m*ldc, p.wild)
	want = want[:max(0, len(want)-p.padC)]
	c := append([]float32(nil), want...)
	reference(p.transA, p.transB, p.m, p.n, p.k, a, lda, b, ldb, want, ldc, p.accumulate)
	for _, name := range Available() {
		mustUse(t, name)
		all, got := guarded(c)
		var packed Packed
		if p.bf16 {
			packed.PackBF16(p.transB, p.n, p.k, b, ldb)
		} else {
			packed.Pack(p.transB, p.n, p.k, b, ldb)
		}
		MatMul(p.transA, p.m, p.n, p.k, a, lda, &packed, got, ldc, p.accumulate)
		if i := differ(got, want); i >= 0 {
			return fmt.Errorf("%s, %+v: element %d is %v, want %v", name, p, i, got[i], want[i])
		}
		if !unharmed(all) {
			return fmt.Errorf("%s, %+v: wrote outside C", name, p)
		}
	}
	return nil
}

func TestMatMulShapes(t *testing.T) {
	restorePath(t)
	for m := 0; m <= 26; m++ {
		for _, n := range []int{0, 1, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 47, 48, 63, 64, 65, 127, 128, 129, 161} {
			for _, k := range []int{0, 1, 2, 7, 33} {
				bits := m*7 + n*3 + k
				p := product{bits&1 > 0, bits&2 > 0, bits&4 > 0, bits&8 > 0, false, m, n, k, bits % 3, bits % 5, bits % 2, uint64(bits)}
				for _, p.bf16 = range []bool{false, true} {
					if err := p.check(t); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
}

func TestMatMulDeep(t *testing.T) {
	restorePath(t)
	for _, k := range []int{255, 256, 257, 511, 512, 700} {
		for _, m := range []int{1, 5, 12, 14} {
			p := product{transA: k%2 == 0, accumulate: m == 5, m: m, n: 150, k: k, seed: uint64(k)}
			for _, p.bf16 = range []bool{false, true} {
				if err := p.check(t); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

func TestMatMulProperty(t *testing.T) {
	restorePath(t)
	rapid.Check(t, func(rt *rapid.T) {
		p := product{
			rapid.Bool().Draw(rt, "transA"), rapid.Bool().Draw(rt, "transB"), rapid.Bool().Draw(rt, "accumulate"),
			rapid.Bool().Draw(rt, "wild"), rapid.Bool().Draw(rt, "bf16"), rapid.IntRange(0, 30).Draw(rt, "m"), rapid.IntRange(0, 140).Draw(rt, "n"),
			rapid.IntRange(0, 40).Draw(rt, "k"), rapid.IntRange(0, 9).Draw(rt, "padA"), rapid.IntRange(0, 9).Draw(rt, "padB"),
			rapid.IntRange(0, 9).Draw(rt, "padC"), rapid.Uint64().Draw(rt, "seed"),
		}
		if err := p.check(t); err != nil {
			rt.Fatal(err)
		}
	})
}

// TestMatMulOfAPart uses fewer columns and rows of a packed matrix than it has.
func TestMatMulOfAPart(t *testing.T) {
	onEachPath(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
			n, k := rapid.IntRange(1, 100).Draw(t, "n"), rapid.IntRange(1, 60).Draw(t, "k")
			b := draw(r, n*k, false)
			var packed Packed
			packed.Pack(true, n, k, b, k)
			rows := rapid.IntRange(0, k).Draw(t, "rows")
			columns, m := rapid.IntRange(0, n).Draw(t, "columns"), rapid.IntRange(1, 14).Draw(t, "m")
			a := draw(r, m*rows, false)
			want := draw(r, m*columns, false)
			all, got := guarded(want)
			reference(false, true, m, columns, rows, a, rows, b, k, want, columns, true)
			MatMul(false, m, columns, rows, a, rows, &packed, got, columns, true)
			if i := differ(got, want); i >= 0 || !unharmed(all) {
				t.Fatalf("element %d differs", i)
			}
		})
	})
}

func TestVecMat(t *testing.T) {
	restorePath(t)
	for n := 0; n <= 300; n++ {
		for _, k := range []int{0, 1, 2, 5, 32} {
			r := rand.New(rand.NewPCG(uint64(n), uint64(k)))
			ldb := n + n%3
			a, b, c := draw(r, k, n%2 == 0), draw(r, k*ldb, n%2 == 0), draw(r, n, false)
			b = b[:max(0, len(b)-n%3)]
			accumulate := (n+k)%2 == 0
			want := append([]float32(nil), c...)
			reference(false, false, 1, n, k, a, k, b, ldb, want, n, accumulate)
			for _, name := range Available() {
				mustUse(t, name)
				all, got := guarded(c)
				VecMat(k, n, a, b, ldb, got, accumulate)
				if i := differ(got, want); i >= 0 || !unharmed(all) {
					t.Fatalf("%s, n=%d k=%d: element %d differs", name, n, k, i)
				}
			}
		}
	}
}
