package main

import "math"

func f(x float32) uint32 { return math.Float32bits(x) }

// kernel is one element-wise function over slices of equal length.
type kernel struct {
	name     string
	pointers []string
	scalars  []string
	results  []string
	// aggregate, if set, is the Go parameter that carries the scalars as fields.
	aggregate string
	body      func(m machine)
}

func (k *kernel) emit(m machine) {
	m.begin(k)
	k.body(m)
	m.end()
}

// exp computes x = Exp1(x); t, n and y are overwritten.
func exp(m machine, x, t, n, y reg) {
	m.atMost(x, "expMax")
	m.atLeast(x, "expMin")
	m.mul(t, x, constant("log2E"))
	m.add(t, t, constant("roundBit"))
	m.sub(n, t, constant("roundBit"))
	m.mul(y, n, constant("ln2High"))
	m.sub(x, x, y)
	m.mul(y, n, constant("ln2Low"))
	m.sub(x, x, y)
	m.mul(y, x, constant("expP0"))
	m.add(y, y, constant("expP1"))
	for _, p := range []constant{"expP2", "expP3", "expP4", "expP5"} {
		m.mul(y, y, x)
		m.add(y, y, p)
	}
	m.mul(n, x, x)
	m.mul(y, y, n)
	m.add(y, y, x)
	m.add(y, y, constant("one"))
	m.powerOfTwo(t)
	m.mul(x, y, t)
}

// sigmoid computes x = 1/(1 + Exp1(-g)); t, n and y are overwritten.
func sigmoid(m machine, x, g, t, n, y reg) {
	m.negate(x, g)
	exp(m, x, t, n, y)
	m.add(x, x, constant("one"))
	m.set(t, constant("one"))
	m.div(x, t, x)
}

// normGradient is the second pass of RMSNorm's gradient.
func normGradient(add bool) func(m machine) {
	return func(m machine) {
		m.pass(func() {
			m.load(r0, "x")
			m.mul(r0, r0, scalar("rstd"))
			m.mul(r0, r0, scalar("c"))
			m.load(r1, "dy")
			m.load(r2, "gain")
			m.mul(r1, r1, r2)
			m.sub(r1, r1, r0)
			m.mul(r1, r1, scalar("rstd"))
			if add {
				m.load(r2, "dx")
				m.add(r1, r1, r2)
			}
			m.store(r1, "dx")
		})
	}
}

// rotate turns pairs (a, b) forwards or back.
func rotate(back bool) func(m machine) {
	return func(m machine) {
		m.pass(func() {
			m.load(r0, "a")
			m.load(r1, "b")
			m.load(r2, "cos")
			m.load(r3, "sin")
			if back {
				m.negate(r3, r3)
			}
			m.mul(r4, r0, r2)
			m.mul(r5, r1, r3)
			m.sub(r4, r4, r5)
			m.store(r4, "a")
			m.mul(r1, r1, r2)
			m.mul(r0, r0, r3)
			m.add(r1, r1, r0)
			m.store(r1, "b")
		})
	}
}

var kernels = []*kernel{
	{name: "expEach", pointers: []string{"dst", "x"}, body: func(m machine) {
		m.pass(func() {
			m.load(r0, "x")
			exp(m, r0, r1, r2, r3)
			m.store(r0, "dst")
		})
	}},
	{name: "softmaxScaled", pointers: []string{"row"}, scalars: []string{"scale"}, body: func(m machine) {
		m.set(r4, constant("negInf"))
		m.pass(func() {
			m.load(r0, "row")
			m.larger(r4, r0)
		})
		m.foldMax(r4)
		m.mul(r4, r4, scalar("scale"))
		m.set(r5, nil)
		m.pass(func() {
			m.load(r0, "row")
			m.mul(r0, r0, scalar("scale"))
			m.sub(r0, r0, r4)
			exp(m, r0, r1, r2, r3)
			m.store(r0, "row")
			m.sum(r5, r0)
		})
		m.foldSum(r5)
		m.set(r1, constant("one"))
		m.div(r5, r1, r5)
		m.pass(func() {
			m.load(r0, "row")
			m.mul(r0, r0, r5)
			m.store(r0, "row")
		})
	}},
	{name: "softmaxBackward", pointers: []string{"dp", "p"}, scalars: []string{"scale"}, body: func(m machine) {
		m.set(r5, nil)
		m.pass(func() {
			m.load(r0, "p")
			m.load(r1, "dp")
			m.mul(r0, r0, r1)
			m.sum(r5, r0)
		})
		m.foldSum(r5)
		m.pass(func() {
			m.load(r0, "dp")
			m.sub(r0, r0, r5)
			m.load(r1, "p")
			m.mul(r0, r0, r1)
			m.mul(r0, r0, scalar("scale"))
			m.store(r0, "dp")
		})
	}},
	{name: "logSoftmaxParts", pointers: []string{"row"}, results: []string{"max", "sum"}, body: func(m machine) {
		m.set(r4, constant("negInf"))
		m.pass(func() {
			m.load(r0, "row")
			m.larger(r4, r0)
		})
		m.foldMax(r4)
		m.set(r5, nil)
		m.pass(func() {
			m.load(r0, "row")
			m.sub(r0, r0, r4)
			exp(m, r0, r1, r2, r3)
			m.store(r0, "row")
			m.sum(r5, r0)
		})
		m.foldSum(r5)
		m.result("max", r4)
		m.result("sum", r5)
	}},
	{name: "siluMul", pointers: []string{"dst", "gate", "up"}, body: func(m machine) {
		m.pass(func() {
			m.load(r0, "gate")
			sigmoid(m, r1, r0, r2, r3, r4)
			m.mul(r1, r1, r0)
			m.load(r2, "up")
			m.mul(r1, r1, r2)
			m.store(r1, "dst")
		})
	}},
	{name: "siluMulBackward", pointers: []string{"dGate", "dUp", "dOut", "gate", "up"}, body: func(m machine) {
		m.pass(func() {
			m.load(r0, "gate")
			sigmoid(m, r1, r0, r2, r3, r4)
			m.load(r2, "dOut")
			m.load(r3, "up")
			m.mul(r3, r2, r3)
			m.mul(r4, r0, r1)
			m.mul(r2, r2, r4)
			m.set(r5, constant("one"))
			m.sub(r5, r5, r1)
			m.mul(r5, r0, r5)
			m.add(r5, r5, constant("one"))
			m.mul(r5, r1, r5)
			m.mul(r3, r3, r5)
			m.store(r2, "dUp")
			m.store(r3, "dGate")
		})
	}},
	{name: "dot", pointers: []string{"a", "b"}, results: []string{"ret"}, body: func(m machine) {
		m.set(r5, nil)
		m.pass(func() {
			m.load(r0, "a")
			m.load(r1, "b")
			m.mul(r0, r0, r1)
			m.sum(r5, r0)
		})
		m.foldSum(r5)
		m.result("ret", r5)
	}},
	{name: "scaleGain", pointers: []string{"y", "x", "gain"}, scalars: []string{"rstd"}, body: func(m machine) {
		m.pass(func() {
			m.load(r0, "x")
			m.mul(r0, r0, scalar("rstd"))
			m.load(r1, "gain")
			m.mul(r0, r0, r1)
			m.store(r0, "y")
		})
	}},
	{name: "normSum", pointers: []string{"dGain", "dy", "x", "gain"}, scalars: []string{"rstd"}, results: []string{"ret"}, body: func(m machine) {
		m.set(r5, nil)
		m.pass(func() {
			m.load(r0, "x")
			m.mul(r0, r0, scalar("rstd"))
			m.load(r1, "dy")
			m.load(r2, "gain")
			m.mul(r2, r1, r2)
			m.mul(r1, r1, r0)
			m.load(r3, "dGain")
			m.add(r3, r3, r1)
			m.store(r3, "dGain")
			m.mul(r2, r2, r0)
			m.sum(r5, r2)
		})
		m.foldSum(r5)
		m.result("ret", r5)
	}},
	{name: "normGradient", pointers: []string{"dx", "dy", "x", "gain"}, scalars: []string{"rstd", "c"}, body: normGradient(false)},
	{name: "normGradientAdd", pointers: []string{"dx", "dy", "x", "gain"}, scalars: []string{"rstd", "c"}, body: normGradient(true)},
	{name: "rotate", pointers: []string{"a", "b", "cos", "sin"}, body: rotate(false)},
	{name: "rotateBack", pointers: []string{"a", "b", "cos", "sin"}, body: rotate(true)},
	{name: "addEach", pointers: []string{"dst", "x"}, body: func(m machine) {
		m.pass(func() {
			m.load(r0, "dst")
			m.load(r1, "x")
			m.add(r0, r0, r1)
			m.store(r0, "dst")
		})
	}},
	{
		name: "adamW", pointers: []string{"p", "m", "v", "grad"}, aggregate: "h AdamWStep",
		scalars: []string{
			"LearningRate", "Beta1", "Gamma1", "Beta2", "Gamma2",
			"Correction1", "Correction2", "Epsilon", "WeightDecay", "GradScale",
		},
		body: func(m machine) {
			m.pass(func() {
				m.load(r0, "grad")
				m.mul(r0, r0, scalar("GradScale"))
				m.load(r1, "m")
				m.mul(r1, r1, scalar("Beta1"))
				m.mul(r2, r0, scalar("Gamma1"))
				m.add(r1, r1, r2)
				m.store(r1, "m")
				m.load(r2, "v")
				m.mul(r2, r2, scalar("Beta2"))
				m.mul(r0, r0, r0)
				m.mul(r0, r0, scalar("Gamma2"))
				m.add(r2, r2, r0)
				m.store(r2, "v")
				m.mul(r2, r2, scalar("Correction2"))
				m.sqrt(r2, r2)
				m.add(r2, r2, scalar("Epsilon"))
				m.mul(r1, r1, scalar("Correction1"))
				m.div(r1, r1, r2)
				m.load(r0, "p")
				m.mul(r2, r0, scalar("WeightDecay"))
				m.add(r1, r1, r2)
				m.mul(r1, r1, scalar("LearningRate"))
				m.sub(r0, r0, r1)
				m.store(r0, "p")
			})
		},
	},
}
