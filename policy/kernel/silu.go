package kernel

// SiLUMul is the gate of a SwiGLU layer: dst[i] = round(g·σ(g))·up[i] with g = gate[i] and σ(g) = 1/(1 + Exp1(-g)).
// All slices have the same length; dst may be gate or up.
func SiLUMul(dst, gate, up []float32) {
	checkLength("SiLUMul: gate", len(gate), len(dst))
	checkLength("SiLUMul: up", len(up), len(dst))
	if len(dst) == 0 {
		return
	}
	siluMul(current(), dst, gate, up)
}

//go:norace
func siluMulPortable(dst, gate, up []float32) {
	for i, g := range gate {
		s := 1 / (1 + Exp1(-g))
		dst[i] = float32(float32(g*s) * up[i])
	}
}

// SiLUMulBackward computes the gradients of SiLUMul's inputs from the gradient dOut of its output. With s = σ(gate):
// dUp = dOut·(gate·s) and dGate = (dOut·up)·(s·(1 + gate·(1 - s))), each product rounded. All slices have the same
// length; each of dGate and dUp may be any one of the inputs.
func SiLUMulBackward(dGate, dUp, dOut, gate, up []float32) {
	checkLength("SiLUMulBackward: dUp", len(dUp), len(dGate))
	checkLength("SiLUMulBackward: dOut", len(dOut), len(dGate))
	checkLength("SiLUMulBackward: gate", len(gate), len(dGate))
	checkLength("SiLUMulBackward: up", len(up), len(dGate))
	if len(dGate) == 0 {
		return
	}
	siluMulBackward(current(), dGate, dUp, dOut, gate, up)
}

//go:norace
func siluMulBackwardPortable(dGate, dUp, dOut, gate, up []float32) {
	for i, g := range gate {
		d, u := dOut[i], up[i]
		s := 1 / (1 + Exp1(-g))
		slope := float32(s * (1 + float32(g*(1-s))))
		dUp[i] = float32(d * float32(g*s))
		dGate[i] = float32(float32(d*u) * slope)
	}
}
