package safetensors

import "math"

// BF16FromFloat32 rounds to the nearest bfloat16, ties to even; what is too large becomes an infinity. A NaN stays
// a NaN of the same sign and is made quiet, so that rounding never turns it into an infinity.
func BF16FromFloat32(f float32) uint16 {
	b := math.Float32bits(f)
	if b&0x7fffffff > 0x7f800000 {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// Float32FromBF16 is exact.
func Float32FromBF16(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// Float32FromF16 is exact; it keeps a NaN's payload.
func Float32FromF16(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exponent := uint32(h >> 10 & 0x1f)
	mantissa := uint32(h & 0x3ff)
	switch exponent {
	case 0: // zero or subnormal: mantissa * 2^-24
		f := float32(mantissa) * (1.0 / (1 << 24))
		return math.Float32frombits(math.Float32bits(f) | sign)
	case 0x1f: // infinity or NaN
		return math.Float32frombits(sign | 0x7f800000 | mantissa<<13)
	}
	return math.Float32frombits(sign | (exponent+127-15)<<23 | mantissa<<13)
}
