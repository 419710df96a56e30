package kernel

import "math"

// AdamWStep holds the numbers of one AdamW update (Loshchilov and Hutter, 2019), already rounded to float32 so that a
// step is the same everywhere. NewAdamWStep fills it.
type AdamWStep struct {
	LearningRate float32
	Beta1        float32 // decay of the gradient's mean
	Gamma1       float32 // 1 - Beta1
	Beta2        float32 // decay of the squared gradient's mean
	Gamma2       float32 // 1 - Beta2
	Correction1  float32 // 1/(1 - Beta1**step)
	Correction2  float32 // 1/(1 - Beta2**step)
	Epsilon      float32
	WeightDecay  float32
	GradScale    float32 // multiplies the gradient first: clipping by norm, averaging; 1 to leave it
}

// NewAdamWStep computes the update number step, counted from 1.
func NewAdamWStep(learningRate, beta1, beta2, epsilon, weightDecay, gradScale float64, step int) AdamWStep {
	if step < 1 {
		panic("kernel: NewAdamWStep: steps count from 1")
	}
	return AdamWStep{
		LearningRate: float32(learningRate),
		Beta1:        float32(beta1),
		Gamma1:       float32(1 - beta1),
		Beta2:        float32(beta2),
		Gamma2:       float32(1 - beta2),
		Correction1:  float32(1 / (1 - power(beta1, step))),
		Correction2:  float32(1 / (1 - power(beta2, step))),
		Epsilon:      float32(epsilon),
		WeightDecay:  float32(weightDecay),
		GradScale:    float32(gradScale),
	}
}

// power returns x**n for n >= 0 by repeated squaring, each product rounded.
func power(x float64, n int) float64 {
	y := 1.0
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			y = float64(y * x)
		}
		x = float64(x * x)
	}
	return y
}

// AdamW updates parameters p and their moments m and v from gradients g, in one pass. Each operation is rounded:
//
//	g' = g·GradScale
//	m  = m·Beta1 + g'·Gamma1
//	v  = v·Beta2 + (g'·g')·Gamma2
//	p  = p - ((m·Correction1) / (√(v·Correction2) + Epsilon) + p·WeightDecay)·LearningRate
//
// All slices have the same length and must not overlap.
func AdamW(p, m, v, g []float32, h AdamWStep) {
	checkLength("AdamW: m", len(m), len(p))
	checkLength("AdamW: v", len(v), len(p))
	checkLength("AdamW: g", len(g), len(p))
	if len(p) == 0 {
		return
	}
	adamW(current(), p, m, v, g, h)
}

//go:norace
func adamWPortable(p, m, v, g []float32, h AdamWStep) {
	for i, d := range g {
		d = float32(d * h.GradScale)
		mi := float32(m[i]*h.Beta1) + float32(d*h.Gamma1)
		vi := float32(v[i]*h.Beta2) + float32(float32(d*d)*h.Gamma2)
		m[i], v[i] = mi, vi
		root := float32(math.Sqrt(float64(float32(vi * h.Correction2))))
		u := float32(mi*h.Correction1)/(root+h.Epsilon) + float32(p[i]*h.WeightDecay)
		p[i] -= float32(u * h.LearningRate)
	}
}
