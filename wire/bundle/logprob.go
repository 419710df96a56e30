package bundle

import (
	"math"
	"math/bits"
)

// A log-prob is stored as a class, one byte in a column that compresses well, and some raw bits, which do not and are
// kept out of the compressor. How the two make a number is the bundle's form.
type form uint8

const (
	formGrid    form = 1 // multiples of 2^-16 from -256, exclusive, to 0
	formFloat32 form = 2 // any finite float32
)

// gridScale turns a log-prob on the grid into a whole number; it is the inverse of policy.LogProbGrid.
const gridScale = 1 << 16

// maxGridClass is the class of the largest magnitudes that a float32 holds exactly on the grid: 24 bits.
const maxGridClass = 25

// onGrid says whether v survives the grid form to the bit: v is 0, -0, or a negative multiple of 2^-16 above -256.
func onGrid(v float32) bool {
	q := -float64(v) * gridScale
	return q >= 0 && q < 1<<24 && q == math.Trunc(q)
}

// formOf returns the grid form when it loses nothing.
func formOf(b *Bundle) form {
	for i := range b.Rollouts {
		for j := range b.Rollouts[i].Calls {
			for _, v := range b.Rollouts[i].Calls[j].LogProbs {
				if !onGrid(v) {
					return formFloat32
				}
			}
		}
	}
	return formGrid
}

// split returns v's class and raw bits. In the grid form class 0 is 0, class 1 is -0, and class c above is a
// magnitude of c-1 bits whose leading one is left out. In the float32 form the class is the exponent, and the raw
// bits are the sign and the fraction.
func (f form) split(v float32) (class uint8, raw uint32) {
	b := math.Float32bits(v)
	if f == formFloat32 {
		return uint8(b >> 23), b>>31<<23 | b&(1<<23-1)
	}
	if v == 0 {
		return uint8(b >> 31), 0
	}
	q := uint32(-float64(v) * gridScale)
	n := bits.Len32(q)
	return uint8(n + 1), q &^ (1 << (n - 1))
}

// rawBits returns how many raw bits follow a class, and false when there is no such class.
func (f form) rawBits(class uint8) (n uint, ok bool) {
	switch {
	case f == formFloat32:
		return 24, class != math.MaxUint8 // exponent 255 is infinity and NaN
	case class <= 1:
		return 0, true
	}
	return uint(class - 2), class <= maxGridClass
}

// join undoes split.
func (f form) join(class uint8, raw uint32) float32 {
	switch {
	case f == formFloat32:
		return math.Float32frombits(raw>>23<<31 | uint32(class)<<23 | raw&(1<<23-1))
	case class <= 1:
		return math.Float32frombits(uint32(class) << 31)
	}
	q := raw | 1<<(class-2)
	return -float32(float64(q) / gridScale)
}

// bitWriter appends bit fields, least significant bit first.
type bitWriter struct {
	out  []byte
	acc  uint64
	used uint // bits of acc in use, below 8 between calls
}

func (w *bitWriter) write(v uint32, n uint) {
	w.acc |= uint64(v) << w.used
	for w.used += n; w.used >= 8; w.used -= 8 {
		w.out = append(w.out, byte(w.acc))
		w.acc >>= 8
	}
}

// bytes returns everything written, the last byte filled up with zero bits.
func (w *bitWriter) bytes() []byte {
	if w.used == 0 {
		return w.out
	}
	return append(w.out, byte(w.acc))
}

// bitReader reads what a bitWriter wrote. The caller knows from the classes how many bits there are.
type bitReader struct {
	rest []byte
	acc  uint64
	have uint
}

func (r *bitReader) read(n uint) uint32 {
	for r.have < n {
		r.acc |= uint64(r.rest[0]) << r.have
		r.rest = r.rest[1:]
		r.have += 8
	}
	v := uint32(r.acc & (1<<n - 1))
	r.acc >>= n
	r.have -= n
	return v
}
