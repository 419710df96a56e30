package meter

import "fmt"

// Error says why a module cannot be metered.
type Error struct {
	// Offset is where in the module, in bytes.
	Offset int
	Why    string
}

func (e *Error) Error() string { return fmt.Sprintf("byte %d: %s", e.Offset, e.Why) }

// reader reads a module's bytes. Its methods panic with an *Error, which Rewrite recovers.
type reader struct {
	b    []byte
	at   int
	base int // offset of b in the module
}

func (r *reader) fail(format string, arguments ...any) {
	panic(&Error{Offset: r.base + r.at, Why: fmt.Sprintf(format, arguments...)})
}

func (r *reader) more() bool { return r.at < len(r.b) }

func (r *reader) byte() byte {
	if r.at >= len(r.b) {
		r.fail("the module ends too early")
	}
	r.at++
	return r.b[r.at-1]
}

// take returns the next n bytes, without a copy.
func (r *reader) take(n uint32) []byte {
	if uint64(n) > uint64(len(r.b)-r.at) {
		r.fail("the module ends too early")
	}
	r.at += int(n)
	return r.b[r.at-int(n) : r.at]
}

// part returns a reader of the next n bytes.
func (r *reader) part(n uint32) *reader {
	base := r.base + r.at
	return &reader{b: r.take(n), base: base}
}

func (r *reader) u32() uint32 {
	var v uint64
	for shift := 0; ; shift += 7 {
		c := r.byte()
		v |= uint64(c&0x7f) << shift
		if v > 1<<32-1 || shift > 28 {
			r.fail("a number is too large")
		}
		if c < 0x80 {
			return uint32(v)
		}
	}
}

func (r *reader) i32() int32 {
	var v int64
	for shift := 0; ; shift += 7 {
		c := r.byte()
		v |= int64(c&0x7f) << shift
		if c < 0x80 {
			if c&0x40 != 0 {
				v |= -1 << (shift + 7)
			}
			if v != int64(int32(v)) {
				r.fail("a number is too large")
			}
			return int32(v)
		}
		if shift >= 28 {
			r.fail("a number is too large")
		}
	}
}

// skipSigned skips a signed number of at most so many bytes.
func (r *reader) skipSigned(bytes int) {
	for range bytes {
		if r.byte() < 0x80 {
			return
		}
	}
	r.fail("a number is too large")
}

// count reads the length of a list whose elements have at least one byte each.
func (r *reader) count() uint32 {
	n := r.u32()
	if uint64(n) > uint64(len(r.b)-r.at) {
		r.fail("a list is longer than the module")
	}
	return n
}

func (r *reader) name() string { return string(r.take(r.u32())) }

func (r *reader) done() {
	if r.more() {
		r.fail("there is more than there should be")
	}
}

// value types.
const (
	i32  = 0x7f
	i64  = 0x7e
	f32  = 0x7d
	f64  = 0x7c
	v128 = 0x7b
)

func (r *reader) valueType() byte {
	switch t := r.byte(); t {
	case i32, i64, f32, f64, v128, 0x70, 0x6f:
		return t
	default:
		r.at--
		r.fail("value type 0x%02x is not of WebAssembly 2.0", t)
		return 0
	}
}

func appendU32(b []byte, v uint32) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

func appendSigned(b []byte, v int64) []byte {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}
