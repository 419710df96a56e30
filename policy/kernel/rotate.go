package kernel

import "fmt"

// Rotate applies a rotary position embedding to one head in place. x has an even length 2h; the pair (x[i], x[i+h]) is
// turned by the angle whose cosine and sine are cos[i] and sin[i], the half-split order of Hugging Face's Llama:
// x[i] = round(a·cos) - round(b·sin), x[i+h] = round(b·cos) + round(a·sin). inverse turns back, which is also the
// gradient. cos and sin have length h.
func Rotate(x, cos, sin []float32, inverse bool) {
	h := len(cos)
	if len(x) != 2*h || len(sin) != h {
		panic(fmt.Sprintf("kernel: Rotate: lengths %d, %d, %d: need 2h, h, h", len(x), h, len(sin)))
	}
	if h == 0 {
		return
	}
	a, b := x[:h], x[h:]
	if inverse {
		rotateBack(current(), a, b, cos, sin)
	} else {
		rotate(current(), a, b, cos, sin)
	}
}

//go:norace
func rotatePortable(a, b, cos, sin []float32) {
	for i, x := range a {
		y, c, s := b[i], cos[i], sin[i]
		a[i] = float32(x*c) - float32(y*s)
		b[i] = float32(y*c) + float32(x*s)
	}
}

//go:norace
func rotateBackPortable(a, b, cos, sin []float32) {
	for i, x := range a {
		y, c, s := b[i], cos[i], -sin[i]
		a[i] = float32(x*c) - float32(y*s)
		b[i] = float32(y*c) + float32(x*s)
	}
}
