package kernel

import "math"

// Constants of Exp1. The cut of ln 2 in two and the polynomial are those of the Cephes library's expf.
const (
	expMax   float32 = 89 // clamps: any x beyond gives +Inf or 0 as the clamp itself does
	expMin   float32 = -88
	log2E    float32 = 1.44269504088896341
	roundBit float32 = 12582912    // 1.5·2^23: adding it rounds to an integer, which stands in the low bits
	ln2High  float32 = 0.693359375 // 9 significant bits: n·ln2High is exact for |n| <= 128
	ln2Low   float32 = -2.12194440e-4
	expP0    float32 = 1.9875691500e-4
	expP1    float32 = 1.3981999507e-3
	expP2    float32 = 8.3334519073e-3
	expP3    float32 = 4.1665795894e-2
	expP4    float32 = 1.6666665459e-1
	expP5    float32 = 5.0000001201e-1
)

var negInf = float32(math.Inf(-1))

// Exp1 returns e**x.
//
// With n = round(x·log2 e) the result is p(x - n·ln 2)·2**n, p a polynomial. The relative error is below 8.5e-8 where
// -126 <= n <= 127. The result is +Inf where n >= 128 (x above about 88.376) and +0 where n <= -127 (x below about
// -87.683); where n = -126 it may be subnormal. Exp1(NaN) is NaN.
func Exp1(x float32) float32 {
	if x > expMax {
		x = expMax
	}
	if x < expMin {
		x = expMin
	}
	t := float32(x*log2E) + roundBit
	n := t - roundBit
	r := x - float32(n*ln2High)
	r = r - float32(n*ln2Low)
	y := float32(expP0*r) + expP1
	y = float32(y*r) + expP2
	y = float32(y*r) + expP3
	y = float32(y*r) + expP4
	y = float32(y*r) + expP5
	y = float32(y*float32(r*r)) + r
	y = y + 1
	scale := math.Float32frombits(math.Float32bits(t)<<23 + 127<<23)
	return float32(y * scale)
}

// Exp sets dst[i] = Exp1(x[i]). dst and x have the same length and may be the same slice.
func Exp(dst, x []float32) {
	checkLength("Exp: dst", len(dst), len(x))
	if len(x) == 0 {
		return
	}
	expEach(current(), dst, x)
}

//go:norace
func expEachPortable(dst, x []float32) {
	for i, v := range x {
		dst[i] = Exp1(v)
	}
}
