package kernel

import (
	"math"
	"math/rand/v2"
	"testing"
)

// slope is the central difference of f at x[i].
func slope(x []float32, i int, f func() float64) float64 {
	const h = 1e-2
	v := x[i]
	x[i] = v + h
	up := f()
	x[i] = v - h
	down := f()
	x[i] = v
	return (up - down) / (2 * h)
}

// weigh is a loss whose gradient is w.
func weigh(y, w []float32) float64 {
	sum := 0.0
	for i, v := range y {
		sum += float64(v) * float64(w[i])
	}
	return sum
}

// near compares an analytic gradient with a numeric one.
func near(t *testing.T, what string, i int, got float32, want float64) {
	t.Helper()
	if math.Abs(float64(got)-want) > 2e-3*(1+math.Abs(want)) {
		t.Errorf("%s[%d] = %v, numerically %v", what, i, got, want)
	}
}

// TestGradients compares each backward pass with finite differences of its forward pass.
func TestGradients(t *testing.T) {
	const n = 21
	r := rand.New(rand.NewPCG(4, 2))
	x, z, w, y := draw(r, n, false), draw(r, n, false), draw(r, n, false), make([]float32, n)

	t.Run("softmax", func(t *testing.T) {
		const scale = 0.6
		loss := func() float64 {
			copy(y, x)
			SoftmaxScaled(y, scale)
			return weigh(y, w)
		}
		loss()
		p, dp := append([]float32(nil), y...), append([]float32(nil), w...)
		SoftmaxBackward(dp, p, scale)
		for i := range x {
			near(t, "dx", i, dp[i], slope(x, i, loss))
		}
	})
	t.Run("silu", func(t *testing.T) {
		loss := func() float64 {
			SiLUMul(y, x, z)
			return weigh(y, w)
		}
		dGate, dUp := make([]float32, n), make([]float32, n)
		SiLUMulBackward(dGate, dUp, w, x, z)
		for i := range x {
			near(t, "dGate", i, dGate[i], slope(x, i, loss))
			near(t, "dUp", i, dUp[i], slope(z, i, loss))
		}
	})
	t.Run("rmsnorm", func(t *testing.T) {
		loss := func() float64 {
			RMSNorm(y, x, z, 1e-5)
			return weigh(y, w)
		}
		rstd := RMSNorm(y, x, z, 1e-5)
		dx, dGain := make([]float32, n), make([]float32, n)
		RMSNormBackward(dx, dGain, w, x, z, rstd, false)
		for i := range x {
			near(t, "dx", i, dx[i], slope(x, i, loss))
			near(t, "dGain", i, dGain[i], slope(z, i, loss))
		}
	})
	t.Run("rotate", func(t *testing.T) {
		const h = n / 2
		cos, sin := make([]float32, h), make([]float32, h)
		for i := range h {
			s, c := SinCos(float64(i) * 1.7)
			cos[i], sin[i] = float32(c), float32(s)
		}
		v := append([]float32(nil), x[:2*h]...)
		Rotate(v, cos, sin, false)
		if want := float64(x[1]*cos[1] - x[1+h]*sin[1]); math.Abs(float64(v[1])-want) > 1e-6 {
			t.Errorf("v[1] = %v, want %v", v[1], want)
		}
		Rotate(v, cos, sin, true)
		for i := range v {
			if math.Abs(float64(v[i]-x[i])) > 1e-6 {
				t.Errorf("turned forwards and back, x[%d] = %v became %v", i, x[i], v[i])
			}
		}
	})
}

// TestAdamWFollowsItsDefinition compares ten steps with the update written in float64.
func TestAdamWFollowsItsDefinition(t *testing.T) {
	const n, lr, b1, b2, eps, decay, scale = 19, 1e-2, 0.9, 0.99, 1e-8, 0.1, 0.5
	r := rand.New(rand.NewPCG(1, 2))
	p, m, v := draw(r, n, false), make([]float32, n), make([]float32, n)
	p64, m64, v64 := make([]float64, n), make([]float64, n), make([]float64, n)
	for i := range p {
		p64[i] = float64(p[i])
	}
	for step := 1; step <= 10; step++ {
		g := draw(r, n, false)
		AdamW(p, m, v, g, NewAdamWStep(lr, b1, b2, eps, decay, scale, step))
		for i := range g {
			d := float64(g[i]) * scale
			m64[i] = b1*m64[i] + (1-b1)*d
			v64[i] = b2*v64[i] + (1-b2)*d*d
			mean, square := m64[i]/(1-math.Pow(b1, float64(step))), v64[i]/(1-math.Pow(b2, float64(step)))
			p64[i] -= lr * (mean/(math.Sqrt(square)+eps) + decay*p64[i])
			if math.Abs(float64(p[i])-p64[i]) > 2e-6 {
				t.Fatalf("step %d: p[%d] = %v, want %v", step, i, p[i], p64[i])
			}
		}
	}
}
