package kernel

import "math"

// RMSNorm normalises one row: y[i] = round(x[i]·rstd)·gain[i], rstd = 1/√(Σx²/n + eps) with Σ in canonical lanes. It
// returns rstd for the backward pass. y, x and gain have the same length n > 0; y may be x.
func RMSNorm(y, x, gain []float32, eps float32) (rstd float32) {
	checkLength("RMSNorm: x", len(x), len(y))
	checkLength("RMSNorm: gain", len(gain), len(y))
	if len(y) == 0 {
		panic("kernel: RMSNorm: empty row")
	}
	p := current()
	rstd = rstdOf(dot(p, x, x), len(x), eps)
	scaleGain(p, y, x, gain, rstd)
	return rstd
}

func rstdOf(squares float32, n int, eps float32) float32 {
	mean := squares / float32(n)
	return 1 / float32(math.Sqrt(float64(mean+eps)))
}

// RMSNormBackward computes the gradients of one row of RMSNorm from the gradient dy of its output and the rstd it
// returned. With h[i] = round(x[i]·rstd) and g[i] = round(dy[i]·gain[i]): dGain[i] += dy[i]·h[i], and
// dx[i] = (g[i] - h[i]·c)·rstd with c = Σ(g·h)/n, or dx[i] += that if accumulateDX is set. All slices have the same
// length; dx may be dy unless accumulateDX is set.
func RMSNormBackward(dx, dGain, dy, x, gain []float32, rstd float32, accumulateDX bool) {
	checkLength("RMSNormBackward: dGain", len(dGain), len(dx))
	checkLength("RMSNormBackward: dy", len(dy), len(dx))
	checkLength("RMSNormBackward: x", len(x), len(dx))
	checkLength("RMSNormBackward: gain", len(gain), len(dx))
	if len(dx) == 0 {
		return
	}
	p := current()
	c := normSum(p, dGain, dy, x, gain, rstd) / float32(len(dx))
	if accumulateDX {
		normGradientAdd(p, dx, dy, x, gain, rstd, c)
	} else {
		normGradient(p, dx, dy, x, gain, rstd, c)
	}
}

// dotPortable is Σ a·b in canonical lanes.
//
//go:norace
func dotPortable(a, b []float32) float32 {
	var l lanes
	for i, v := range a {
		l[i%16] += float32(v * b[i])
	}
	return l.sum()
}

//go:norace
func scaleGainPortable(y, x, gain []float32, rstd float32) {
	for i, v := range x {
		y[i] = float32(float32(v*rstd) * gain[i])
	}
}

// normSumPortable adds to dGain and returns Σ(g·h) in canonical lanes.
//
//go:norace
func normSumPortable(dGain, dy, x, gain []float32, rstd float32) float32 {
	var l lanes
	for i, d := range dy {
		h := float32(x[i] * rstd)
		g := float32(d * gain[i])
		dGain[i] += float32(d * h)
		l[i%16] += float32(g * h)
	}
	return l.sum()
}

//go:norace
func normGradientPortable(dx, dy, x, gain []float32, rstd, c float32) {
	for i, d := range dy {
		h := float32(x[i] * rstd)
		g := float32(d * gain[i])
		dx[i] = float32((g - float32(h*c)) * rstd)
	}
}

//go:norace
func normGradientAddPortable(dx, dy, x, gain []float32, rstd, c float32) {
	for i, d := range dy {
		h := float32(x[i] * rstd)
		g := float32(d * gain[i])
		dx[i] += float32((g - float32(h*c)) * rstd)
	}
}
