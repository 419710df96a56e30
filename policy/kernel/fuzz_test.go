package kernel

import (
	"math"
	"math/rand/v2"
	"testing"
)

// FuzzMatMul compares every path with the definition of a product.
func FuzzMatMul(f *testing.F) {
	f.Add(uint8(0), uint8(1), uint8(1), uint8(1), uint8(0), uint64(1))
	f.Add(uint8(7), uint8(13), uint8(33), uint8(0), uint8(2), uint64(2))
	f.Add(uint8(10), uint8(12), uint8(65), uint8(31), uint8(5), uint64(3))
	f.Add(uint8(29), uint8(3), uint8(97), uint8(20), uint8(6), uint64(5))
	f.Add(uint8(15), uint8(25), uint8(128), uint8(64), uint8(1), uint64(4))
	f.Fuzz(func(t *testing.T, bits, m, n, k, pad uint8, seed uint64) {
		was := Active()
		defer func() { mustUse(t, was) }()
		p := product{
			transA: bits&1 > 0, transB: bits&2 > 0, accumulate: bits&4 > 0, wild: bits&8 > 0, bf16: bits&16 > 0,
			m: int(m) % 40, n: int(n), k: int(k), padA: int(pad) % 7, padB: int(pad) % 5, padC: int(pad) % 3, seed: seed,
		}
		if err := p.check(t); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzVecMat compares every path with the definition of a product.
func FuzzVecMat(f *testing.F) {
	f.Add(uint16(1), uint8(1), uint8(0), false, uint64(1))
	f.Add(uint16(257), uint8(32), uint8(3), true, uint64(2))
	f.Add(uint16(95), uint8(0), uint8(1), true, uint64(3))
	f.Fuzz(func(t *testing.T, columns uint16, links, pad uint8, accumulate bool, seed uint64) {
		was := Active()
		defer func() { mustUse(t, was) }()
		r := rand.New(rand.NewPCG(seed, 0))
		n, k := int(columns)%600, int(links)
		ldb := n + int(pad)
		a, b, c := draw(r, k, true), draw(r, k*ldb, true), draw(r, n, true)
		b = b[:max(0, len(b)-int(pad))]
		want := append([]float32(nil), c...)
		reference(false, false, 1, n, k, a, k, b, ldb, want, n, accumulate)
		for _, name := range Available() {
			mustUse(t, name)
			all, got := guarded(c)
			VecMat(k, n, a, b, ldb, got, accumulate)
			if i := differ(got, want); i >= 0 {
				t.Fatalf("%s: element %d is %v, want %v", name, i, got[i], want[i])
			}
			if !unharmed(all) {
				t.Fatalf("%s: wrote outside c", name)
			}
		}
	})
}

// FuzzVectors compares every element-wise kernel on every path with the portable one.
func FuzzVectors(f *testing.F) {
	for i := range vectorCases {
		f.Add(uint8(i), uint16(17*i), uint64(i), true)
	}
	f.Fuzz(func(t *testing.T, which uint8, n uint16, seed uint64, wild bool) {
		was := Active()
		defer func() { mustUse(t, was) }()
		if err := vectorCases[int(which)%len(vectorCases)].agree(t, seed, int(n)%1000, wild); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzExp1 holds the exponential to its error bound and its limits.
func FuzzExp1(f *testing.F) {
	for _, x := range special {
		f.Add(x)
	}
	f.Fuzz(func(t *testing.T, x float32) {
		got, want := float64(Exp1(x)), math.Exp(float64(x))
		switch {
		case x != x:
			if got == got {
				t.Fatalf("Exp1(NaN) = %v", got)
			}
		case x > 88.37 || x < -87.33:
			// Near the ends only the order is promised: no overflow before 88.37, nothing negative, no NaN.
			if !(got >= 0) || x > 88.4 && !math.IsInf(got, 1) || x < -87.7 && got != 0 {
				t.Fatalf("Exp1(%v) = %v", x, got)
			}
		case math.Abs(got-want) > 8.5e-8*want:
			t.Fatalf("Exp1(%v) = %v, want %v", x, got, want)
		}
	})
}
