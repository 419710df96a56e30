package kernel

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"testing"
)

// golden is the digest of one fixed computation through every kernel. It is the same on every architecture, path and
// compiler setting; a change of it means that nodes of different builds no longer compute the same policy.
const golden = "fd5ff60e8fe772f8e43c55bf5f3ef69f1f2854c36ecfb9f15b7a570dd8a79377"

// even draws n values in [-2, 2) from integers alone: math's generators of normal numbers use math.Exp.
func even(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(int32(r.Uint32())) / (1 << 30)
	}
	return x
}

func TestGoldenBits(t *testing.T) {
	onEachPath(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(7, 11))
		h := sha256.New()
		put := func(x ...float32) {
			for _, v := range x {
				h.Write(binary.LittleEndian.AppendUint32(nil, math.Float32bits(v)))
			}
		}
		put64 := func(x ...float64) {
			for _, v := range x {
				h.Write(binary.LittleEndian.AppendUint64(nil, math.Float64bits(v)))
			}
		}
		const m, n, k = 29, 71, 300
		for bits := range 8 {
			a, b, c := even(r, m*k), even(r, n*k), even(r, m*n)
			lda, ldb := k, n
			if bits&1 > 0 {
				lda = m
			}
			if bits&2 > 0 {
				ldb = k
			}
			var packed Packed
			packed.Pack(bits&2 > 0, n, k, b, ldb)
			MatMul(bits&1 > 0, m, n, k, a, lda, &packed, c, n, bits&4 > 0)
			put(c...)
			VecMat(k, n, a, b, n, c[:n], bits&4 > 0)
			put(c[:n]...)
		}
		for _, n := range []int{16, 128, 333} {
			s := func() []float32 { return even(r, n) }
			x, y, z, w, v := s(), s(), s(), s(), s()
			Exp(v, x)
			put(v...)
			SoftmaxScaled(x, 3)
			put(x...)
			SoftmaxBackward(y, x, 0.3)
			put(y...)
			max, sum := LogSoftmaxParts(z)
			put(max, sum)
			put(z...)
			x = s()
			SiLUMul(v, x, w)
			put(v...)
			SiLUMulBackward(v, w, y, x, z)
			put(v...)
			put(w...)
			x, y, z, w = s(), s(), s(), s()
			put(RMSNorm(v, x, y, 1e-5))
			put(v...)
			RMSNormBackward(v, w, z, x, y, 0.7, false)
			RMSNormBackward(v, w, z, x, y, 0.9, true)
			put(v...)
			put(w...)
			h := n / 2
			Rotate(x[:2*h], y[:h], z[:h], false)
			put(x...)
			Rotate(x[:2*h], y[:h], z[:h], true)
			Add(x, y)
			put(x...)
			put64(SumSquares(x))
			Exp(w, w)
			AdamW(x, y, w, z, NewAdamWStep(1e-3, 0.9, 0.999, 1e-8, 0.01, 0.7, 3))
			put(x...)
			put(y...)
			put(w...)
		}
		for range 2000 {
			x := float64(int64(r.Uint64())) / (1 << 55) // [-256, 256)
			sin, cos := SinCos(x)
			put64(sin, cos, Exp64(x), Log(math.Abs(x)), Pow(math.Abs(x), x/256))
			put(Exp1(float32(x)))
		}
		if got := hex.EncodeToString(h.Sum(nil)); got != golden {
			t.Errorf("digest %s, want %s", got, golden)
		}
	})
}
