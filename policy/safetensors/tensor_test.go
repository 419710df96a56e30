package safetensors

import (
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestBF16RoundTripsExactly(t *testing.T) {
	for h := range 1 << 16 {
		f := Float32FromBF16(uint16(h))
		got := BF16FromFloat32(f)
		want := uint16(h)
		if f != f {
			want |= 0x40 // NaNs become quiet
		}
		if got != want {
			t.Fatalf("%#04x -> %v -> %#04x, want %#04x", h, f, got, want)
		}
	}
}

func TestBF16RoundsToNearestEven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := math.Float32frombits(rapid.Uint32().Draw(t, "bits"))
		got := Float32FromBF16(BF16FromFloat32(f))
		if f != f {
			if got == got || math.Signbit(float64(got)) != math.Signbit(float64(f)) {
				t.Fatalf("NaN %#08x became %v", math.Float32bits(f), got)
			}
			return
		}
		// The neighbours of f among bfloat16 values, by truncation; beyond the largest, infinity counts as 2^128.
		low := math.Float32bits(f) &^ 0xffff
		value := func(b uint32) float64 {
			if b&0x7fffffff == 0x7f800000 {
				return math.Copysign(math.Ldexp(1, 128), float64(math.Float32frombits(b)))
			}
			return float64(math.Float32frombits(b))
		}
		want := low
		if math.IsInf(float64(f), 0) {
			want = math.Float32bits(f)
		} else {
			below, above := math.Abs(float64(f)-value(low)), math.Abs(value(low+0x10000)-float64(f))
			if above < below || above == below && low&0x10000 != 0 {
				want = low + 0x10000
			}
		}
		if math.Float32bits(got) != want {
			t.Fatalf("%v (%#08x) became %#08x, want %#08x", f, math.Float32bits(f), math.Float32bits(got), want)
		}
	})
}

func TestF16Values(t *testing.T) {
	for h, want := range map[uint16]float32{
		0x0000: 0, 0x3c00: 1, 0xc000: -2, 0x7bff: 65504, 0x0400: 1.0 / (1 << 14), 0x0001: 1.0 / (1 << 24),
		0x3555: 0.333251953125, 0x7c00: float32(math.Inf(1)), 0xfc00: float32(math.Inf(-1)),
	} {
		if got := Float32FromF16(h); got != want {
			t.Errorf("%#04x is %v, want %v", h, got, want)
		}
	}
	if got := math.Float32bits(Float32FromF16(0x8000)); got != 0x80000000 {
		t.Errorf("negative zero is %#08x", got)
	}
	if got := math.Float32bits(Float32FromF16(0xfe01)); got != 0xffc02000 {
		t.Errorf("NaN is %#08x", got)
	}
}

func TestFloat32sRoundTrip(t *testing.T) {
	values := []float32{0, 1, -1.5, 3.0e38, 1e-40, float32(math.Inf(-1))}
	got := FromFloat32s("x", F32, []int{2, 3}, values).AppendFloat32s(nil)
	if diff := cmp.Diff(values, got); diff != "" {
		t.Error(diff)
	}
	half := FromFloat32s("x", BF16, []int{6}, values)
	for i, v := range half.AppendFloat32s(nil) {
		if want := Float32FromBF16(BF16FromFloat32(values[i])); v != want {
			t.Errorf("element %d is %v, want %v", i, v, want)
		}
	}
	f16 := Tensor{Name: "x", DType: F16, Shape: []int{1}, Data: binary.LittleEndian.AppendUint16(nil, 0x3c00)}
	if got := f16.AppendFloat32s(nil); len(got) != 1 || got[0] != 1 {
		t.Errorf("F16 one is %v", got)
	}
}

func TestValidateRefuses(t *testing.T) {
	for name, tensor := range map[string]Tensor{
		"no name":        {DType: F32, Data: make([]byte, 4)},
		"long name":      {Name: strings.Repeat("x", MaxNameBytes+1), DType: F32, Data: make([]byte, 4)},
		"metadata":       {Name: "__metadata__", DType: F32, Data: make([]byte, 4)},
		"not UTF-8":      {Name: "\xff", DType: F32, Data: make([]byte, 4)},
		"no type":        {Name: "x", Data: make([]byte, 4)},
		"negative":       {Name: "x", DType: F32, Shape: []int{-1}},
		"two negatives":  {Name: "x", DType: F32, Shape: []int{-1, -1}, Data: make([]byte, 4)},
		"too short":      {Name: "x", DType: F32, Shape: []int{2}, Data: make([]byte, 7)},
		"overflow":       {Name: "x", DType: F32, Shape: []int{1 << 30, 1 << 30, 4}},
		"empty overflow": {Name: "x", DType: F32, Shape: []int{0, 1 << 30, 1 << 30}},
		"rank":           {Name: "x", DType: F32, Shape: make([]int, MaxRank+1)},
	} {
		if err := tensor.Validate(); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := (Tensor{Name: "x", DType: BF16, Shape: []int{0, 5}}).Validate(); err != nil {
		t.Errorf("an empty tensor: %v", err)
	}
}
