package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// build puts a header before data.
func build(header string, data []byte) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), data...)
}

func TestEncodeLayout(t *testing.T) {
	data, err := Encode(File{
		Tensors: []Tensor{
			{Name: "b", DType: BF16, Shape: []int{1}, Data: []byte{1, 2}},
			{Name: "z<", DType: F32, Data: []byte{3, 4, 5, 6}},
			{Name: "a", DType: BF16, Shape: []int{1, 1}, Data: []byte{7, 8}},
		},
		Metadata: map[string]string{"format": "pt"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"__metadata__":{"format":"pt"},` +
		`"z<":{"dtype":"F32","shape":[],"data_offsets":[0,4]},` +
		`"a":{"dtype":"BF16","shape":[1,1],"data_offsets":[4,6]},` +
		`"b":{"dtype":"BF16","shape":[1],"data_offsets":[6,8]}}`
	want += strings.Repeat(" ", (8-len(want)%8)%8)
	if diff := cmp.Diff(build(want, []byte{3, 4, 5, 6, 7, 8, 1, 2}), data); diff != "" {
		t.Error(diff)
	}
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.StringN(1, 20, 100), 0, 8, rapid.ID).Draw(t, "names")
		f := File{Metadata: rapid.MapOfN(rapid.String(), rapid.String(), 0, 3).Draw(t, "metadata")}
		for _, name := range names {
			tensor := Tensor{
				Name:  name,
				DType: rapid.SampledFrom([]DType{F32, BF16, F16}).Draw(t, "dtype"),
				Shape: rapid.SliceOfN(rapid.IntRange(0, 4), 0, 3).Draw(t, "shape"),
			}
			n := tensor.Elements() * tensor.DType.Size()
			tensor.Data = rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, "data")
			f.Tensors = append(f.Tensors, tensor)
		}
		data, err := Encode(f)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		byName := cmpopts.SortSlices(func(a, b Tensor) bool { return a.Name < b.Name })
		if diff := cmp.Diff(f, got, byName, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
		seed := rapid.Uint64().Draw(t, "seed")
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(f.Tensors), func(i, j int) {
			f.Tensors[i], f.Tensors[j] = f.Tensors[j], f.Tensors[i]
		})
		if again, err := Encode(f); err != nil || !bytes.Equal(again, data) {
			t.Fatalf("another order of tensors gives other bytes (%v)", err)
		}
	})
}

func TestEncodeRefuses(t *testing.T) {
	one := Tensor{Name: "x", DType: BF16, Shape: []int{1}, Data: []byte{0, 0}}
	for name, f := range map[string]File{
		"twice":       {Tensors: []Tensor{one, one}},
		"wrong size":  {Tensors: []Tensor{{Name: "x", DType: F32, Shape: []int{1}, Data: []byte{0, 0}}}},
		"metadata":    {Metadata: map[string]string{"x": strings.Repeat("y", maxMetadataBytes)}},
		"not UTF-8":   {Metadata: map[string]string{"x": "\xff"}},
		"too many":    {Tensors: make([]Tensor, MaxTensors+1)},
		"bad tensors": {Tensors: make([]Tensor, 1)},
	} {
		if _, err := Encode(f); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	x := func(begin, end int64) string {
		return fmt.Sprintf(`"x":{"dtype":"BF16","shape":[2],"data_offsets":[%d,%d]}`, begin, end)
	}
	y := func(begin, end int) string {
		return fmt.Sprintf(`"y":{"dtype":"BF16","shape":[2],"data_offsets":[%d,%d]}`, begin, end)
	}
	eight := make([]byte, 8)
	if _, err := Decode(build("{"+x(4, 8)+","+y(0, 4)+"}  ", eight)); err != nil {
		t.Fatalf("a good file: %v", err)
	}
	for name, data := range map[string][]byte{
		"empty":             nil,
		"short":             make([]byte, 7),
		"huge header":       binary.LittleEndian.AppendUint64(nil, 1<<62),
		"header beyond end": build("{}", nil)[:9],
		"no header":         make([]byte, 8),
		"not an object":     build("[]", nil),
		"space first":       build(" {}", nil),
		"unclosed":          build("{"+x(0, 4), eight[:4]),
		"text after":        build("{}{}", nil),
		"not UTF-8":         build("{\"\xff\":1}", nil),
		"overlap":           build("{"+x(0, 4)+","+y(2, 6)+"}", eight[:6]),
		"same range":        build("{"+x(0, 4)+","+y(0, 4)+"}", eight[:4]),
		"gap":               build("{"+x(0, 4)+","+y(6, 10)+"}", make([]byte, 10)),
		"gap at the start":  build("{"+x(2, 6)+"}", eight[:6]),
		"rest":              build("{"+x(0, 4)+"}", eight),
		"beyond end":        build("{"+x(0, 4)+"}", eight[:2]),
		"far beyond end":    build("{"+x(1<<60, 1<<60+4)+"}", eight),
		"negative":          build("{"+x(-4, 0)+"}", nil),
		"backwards":         build("{"+x(4, 0)+"}", eight[:4]),
		"size differs":      build("{"+x(0, 8)+"}", eight),
		"twice":             build("{"+x(0, 4)+","+x(4, 8)+"}", eight),
		"dtype":             build(`{"x":{"dtype":"I8","shape":[2],"data_offsets":[0,2]}}`, eight[:2]),
		"extra field":       build(`{"x":{"dtype":"F32","shape":[],"data_offsets":[0,4],"more":1}}`, eight[:4]),
		"no shape":          build(`{"x":{"dtype":"F32","data_offsets":[0,4]}}`, eight[:4]),
		"one offset":        build(`{"x":{"dtype":"F32","shape":[],"data_offsets":[0]}}`, eight[:4]),
		"fraction":          build(`{"x":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}}`, eight[:4]),
		"huge number":       build(`{"x":{"dtype":"F32","shape":[99999999999999999999],"data_offsets":[0,4]}}`, eight[:4]),
		"null":              build(`{"x":null}`, nil),
		"metadata":          build(`{"__metadata__":{"x":1}}`, nil),
	} {
		if _, err := Decode(data); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	good, err := Encode(File{
		Tensors: []Tensor{
			{Name: "w", DType: BF16, Shape: []int{2, 2}, Data: make([]byte, 8)},
			{Name: "b", DType: F32, Shape: []int{0, 3}},
		},
		Metadata: map[string]string{"format": "pt"},
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(build(`{"x":{"dtype":"F16","shape":[],"data_offsets":[0,2]}}`, []byte{0, 0}))
	f.Add(build("{}", nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Decode(data)
		if err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Fatalf("untyped error: %v", err)
			}
			return
		}
		again, err := Encode(file)
		if err != nil {
			t.Fatalf("a decoded file does not encode: %v", err)
		}
		back, err := Decode(again)
		if err != nil {
			t.Fatal(err)
		}
		byName := cmpopts.SortSlices(func(a, b Tensor) bool { return a.Name < b.Name })
		if diff := cmp.Diff(file, back, byName, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
	})
}
