package safetensors

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// DType is the type of a tensor's elements.
type DType uint8

// The element types that are understood.
const (
	F32  DType = 1 // IEEE 754 binary32
	BF16 DType = 2 // the upper half of binary32
	F16  DType = 3 // IEEE 754 binary16
)

// Size is the number of bytes of one element, or 0 for an unknown type.
func (d DType) Size() int {
	switch d {
	case F32:
		return 4
	case BF16, F16:
		return 2
	}
	return 0
}

// String is the type's spelling in a file: "F32", "BF16" or "F16".
func (d DType) String() string {
	switch d {
	case F32:
		return "F32"
	case BF16:
		return "BF16"
	case F16:
		return "F16"
	}
	return fmt.Sprintf("DType(%d)", uint8(d))
}

// ParseDType is the inverse of String. It fails with ErrFormat.
func ParseDType(s string) (DType, error) {
	switch s {
	case "F32":
		return F32, nil
	case "BF16":
		return BF16, nil
	case "F16":
		return F16, nil
	}
	return 0, fmt.Errorf("%w: dtype %q is not one of BF16, F16, F32", ErrFormat, clip(s))
}

// Limits of a tensor. They bound what a reader allocates.
const (
	MaxNameBytes = 256
	MaxRank      = 8
	// MaxTensorBytes bounds one tensor's data; it keeps every size inside an int64 with room to add.
	MaxTensorBytes = 1 << 40
)

// ErrFormat says that bytes are not a file that this package accepts, or that a tensor is not one it can write.
var ErrFormat = errors.New("bad safetensors")

// Tensor is a named array in row-major order.
type Tensor struct {
	Name  string
	DType DType
	// Shape lists the dimensions, outermost first; a scalar has none.
	Shape []int
	// Data is the elements, little-endian. Whoever holds a Tensor treats it as read-only unless they made it.
	Data []byte
}

// Elements is the number of elements that the shape asks for.
func (t Tensor) Elements() int {
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// Validate checks name, type and shape against the limits, and that Data has the size they ask for. It fails with
// ErrFormat.
func (t Tensor) Validate() error {
	size, err := ByteSize(t.Name, t.DType, t.Shape)
	if err != nil {
		return err
	}
	if int64(len(t.Data)) != size {
		return fmt.Errorf("%w: tensor %q has %d bytes of data, its shape asks for %d", ErrFormat, t.Name, len(t.Data), size)
	}
	return nil
}

// ByteSize checks a tensor's name, type and shape against the limits and returns the bytes that its data takes, in
// [0, MaxTensorBytes]. It fails with ErrFormat.
func ByteSize(name string, dtype DType, shape []int) (int64, error) {
	switch {
	case name == "" || len(name) > MaxNameBytes || !utf8.ValidString(name) || name == metadataKey:
		return 0, fmt.Errorf("%w: tensor name %q is not 1 to %d bytes of UTF-8", ErrFormat, clip(name), MaxNameBytes)
	case dtype.Size() == 0:
		return 0, fmt.Errorf("%w: tensor %q has unknown dtype %d", ErrFormat, name, uint8(dtype))
	case len(shape) > MaxRank:
		return 0, fmt.Errorf("%w: tensor %q has rank %d, at most %d", ErrFormat, name, len(shape), MaxRank)
	}
	size, empty := int64(dtype.Size()), false
	for _, d := range shape {
		if d < 0 || int64(d) > MaxTensorBytes {
			return 0, fmt.Errorf("%w: tensor %q has dimension %d", ErrFormat, name, d)
		}
		if d == 0 {
			empty = true
			continue // the other dimensions must still be sane
		}
		if size > MaxTensorBytes/int64(d) {
			return 0, fmt.Errorf("%w: tensor %q of shape %v is over %d bytes", ErrFormat, name, shape, int64(MaxTensorBytes))
		}
		size *= int64(d)
	}
	if empty {
		size = 0
	}
	return size, nil
}

// FromFloat32s makes a tensor of type F32 or BF16 out of values, rounding to nearest even for BF16. It panics if
// the shape does not fit the values or the type is another.
func FromFloat32s(name string, dtype DType, shape []int, values []float32) Tensor {
	t := Tensor{Name: name, DType: dtype, Shape: shape}
	if t.Elements() != len(values) {
		panic(fmt.Sprintf("safetensors: %d values for shape %v", len(values), shape))
	}
	switch dtype {
	case F32:
		t.Data = make([]byte, 4*len(values))
		for i, v := range values {
			binary.LittleEndian.PutUint32(t.Data[4*i:], math.Float32bits(v))
		}
	case BF16:
		t.Data = make([]byte, 2*len(values))
		for i, v := range values {
			binary.LittleEndian.PutUint16(t.Data[2*i:], BF16FromFloat32(v))
		}
	default:
		panic(fmt.Sprintf("safetensors: cannot write %v from float32", dtype))
	}
	return t
}

// AppendFloat32s appends the elements to dst, each converted to float32; the conversion is exact for every type.
// The tensor must be valid.
func (t Tensor) AppendFloat32s(dst []float32) []float32 {
	switch t.DType {
	case F32:
		for i := 0; i+4 <= len(t.Data); i += 4 {
			dst = append(dst, math.Float32frombits(binary.LittleEndian.Uint32(t.Data[i:])))
		}
	case BF16:
		for i := 0; i+2 <= len(t.Data); i += 2 {
			dst = append(dst, Float32FromBF16(binary.LittleEndian.Uint16(t.Data[i:])))
		}
	case F16:
		for i := 0; i+2 <= len(t.Data); i += 2 {
			dst = append(dst, Float32FromF16(binary.LittleEndian.Uint16(t.Data[i:])))
		}
	}
	return dst
}

// clip shortens text from outside before it enters an error.
func clip(s string) string {
	if len(s) > 80 {
		return s[:80] + "…"
	}
	return s
}
