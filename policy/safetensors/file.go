package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of a file.
const (
	MaxHeaderBytes   = 8 << 20
	MaxTensors       = 1 << 16
	MaxMetadata      = 1 << 10
	maxMetadataBytes = 1 << 16
)

// metadataKey is the header entry that is not a tensor.
const metadataKey = "__metadata__"

// File is the content of one safetensors file.
type File struct {
	// Tensors are in the order of their data.
	Tensors []Tensor
	// Metadata is free text, nil when the file has none.
	Metadata map[string]string
}

// Encode writes a file. The bytes depend only on the tensors and the metadata, not on the order of f.Tensors. It
// fails with ErrFormat for an invalid tensor, two of one name, or more than the limits allow.
func Encode(f File) ([]byte, error) {
	if len(f.Tensors) > MaxTensors {
		return nil, fmt.Errorf("%w: %d tensors, at most %d", ErrFormat, len(f.Tensors), MaxTensors)
	}
	if err := checkMetadata(f.Metadata); err != nil {
		return nil, err
	}
	sorted := slices.Clone(f.Tensors)
	slices.SortFunc(sorted, func(a, b Tensor) int {
		return cmp.Or(cmp.Compare(b.DType.Size(), a.DType.Size()), strings.Compare(a.Name, b.Name))
	})

	var header bytes.Buffer
	header.WriteByte('{')
	if len(f.Metadata) > 0 {
		// encoding/json writes maps in key order.
		header.WriteString(`"` + metadataKey + `":`)
		header.Write(marshal(f.Metadata))
	}
	total := 0
	seen := make(map[string]bool, len(sorted))
	for _, t := range sorted {
		if err := t.Validate(); err != nil {
			return nil, err
		}
		if seen[t.Name] {
			return nil, fmt.Errorf("%w: two tensors are named %q", ErrFormat, t.Name)
		}
		seen[t.Name] = true
		if header.Len() > 1 {
			header.WriteByte(',')
		}
		shape := t.Shape
		if shape == nil {
			shape = []int{}
		}
		header.Write(marshal(t.Name))
		header.WriteByte(':')
		header.Write(marshal(entry{t.DType.String(), shape, []int64{int64(total), int64(total + len(t.Data))}}))
		total += len(t.Data)
	}
	header.WriteByte('}')
	for header.Len()%8 != 0 {
		header.WriteByte(' ')
	}
	if header.Len() > MaxHeaderBytes {
		return nil, fmt.Errorf("%w: header of %d bytes, at most %d", ErrFormat, header.Len(), MaxHeaderBytes)
	}

	out := make([]byte, 0, 8+header.Len()+total)
	out = binary.LittleEndian.AppendUint64(out, uint64(header.Len()))
	out = append(out, header.Bytes()...)
	for _, t := range sorted {
		out = append(out, t.Data...)
	}
	return out, nil
}

// entry is a tensor's line in the header.
type entry struct {
	DType   string  `json:"dtype"`
	Shape   []int   `json:"shape"`
	Offsets []int64 `json:"data_offsets"`
}

// marshal is json.Marshal without HTML escapes, for values that always marshal.
func marshal(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// Decode reads a file. The tensors' Data alias data. It fails with ErrFormat.
func Decode(data []byte) (File, error) {
	if len(data) < 8 {
		return File{}, fmt.Errorf("%w: %d bytes are too few", ErrFormat, len(data))
	}
	n := binary.LittleEndian.Uint64(data)
	if n > MaxHeaderBytes {
		return File{}, fmt.Errorf("%w: header of %d bytes, at most %d", ErrFormat, n, MaxHeaderBytes)
	}
	if n > uint64(len(data)-8) {
		return File{}, fmt.Errorf("%w: header of %d bytes in a file of %d", ErrFormat, n, len(data))
	}
	f, ranges, err := decodeHeader(data[8 : 8+n])
	if err != nil {
		return File{}, err
	}
	return f, place(&f, ranges, data[8+n:])
}

// place gives every tensor its data, in the order of the data, and checks that the ranges tile it.
func place(f *File, ranges [][2]int64, data []byte) error {
	order := make([]int, len(ranges))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(ranges[a][0], ranges[b][0]), cmp.Compare(ranges[a][1], ranges[b][1]),
			strings.Compare(f.Tensors[a].Name, f.Tensors[b].Name))
	})
	sorted := make([]Tensor, 0, len(order))
	var at int64
	for _, i := range order {
		t, r := f.Tensors[i], ranges[i]
		if r[0] != at {
			return fmt.Errorf("%w: tensor %q starts at %d, not at %d where the one before it ends", ErrFormat, t.Name, r[0], at)
		}
		if r[1] > int64(len(data)) {
			return fmt.Errorf("%w: tensor %q ends at %d, the data at %d", ErrFormat, t.Name, r[1], len(data))
		}
		t.Data = data[r[0]:r[1]:r[1]]
		at = r[1]
		sorted = append(sorted, t)
	}
	if at != int64(len(data)) {
		return fmt.Errorf("%w: %d bytes after the last tensor", ErrFormat, int64(len(data))-at)
	}
	copy(f.Tensors, sorted)
	return nil
}

// decodeHeader reads the JSON header. It goes token by token, because encoding/json would let a duplicate name
// silently win and would allocate before limits are checked.
func decodeHeader(header []byte) (File, [][2]int64, error) {
	var f File
	var ranges [][2]int64
	bad := func(err error) (File, [][2]int64, error) {
		if !errors.Is(err, ErrFormat) {
			err = fmt.Errorf("%w: header: %s", ErrFormat, err)
		}
		return File{}, nil, err
	}
	if len(header) == 0 || header[0] != '{' {
		return bad(errors.New("it does not start with {"))
	}
	if !utf8.Valid(header) {
		return bad(errors.New("it is not UTF-8"))
	}
	d := json.NewDecoder(bytes.NewReader(header))
	d.DisallowUnknownFields()
	if _, err := d.Token(); err != nil {
		return bad(err)
	}
	seen := map[string]bool{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return bad(err)
		}
		name, ok := key.(string)
		if !ok {
			return bad(fmt.Errorf("key %v is not text", key))
		}
		if seen[name] {
			return bad(fmt.Errorf("%q is there twice", clip(name)))
		}
		seen[name] = true
		if name == metadataKey {
			if err := d.Decode(&f.Metadata); err != nil {
				return bad(err)
			}
			if err := checkMetadata(f.Metadata); err != nil {
				return bad(err)
			}
			continue
		}
		if len(f.Tensors) == MaxTensors {
			return bad(fmt.Errorf("more than %d tensors", MaxTensors))
		}
		var e entry
		if err := d.Decode(&e); err != nil {
			return bad(err)
		}
		t, r, err := e.tensor(name)
		if err != nil {
			return bad(err)
		}
		f.Tensors = append(f.Tensors, t)
		ranges = append(ranges, r)
	}
	if _, err := d.Token(); err != nil {
		return bad(err)
	}
	if _, err := d.Token(); err != io.EOF {
		return bad(errors.New("text after the closing }"))
	}
	return f, ranges, nil
}

// tensor checks a header line and turns it into a tensor without data, and its byte range.
func (e entry) tensor(name string) (Tensor, [2]int64, error) {
	dtype, err := ParseDType(e.DType)
	if err != nil {
		return Tensor{}, [2]int64{}, err
	}
	if e.Shape == nil || len(e.Offsets) != 2 {
		return Tensor{}, [2]int64{}, fmt.Errorf("%w: tensor %q lacks shape or data_offsets", ErrFormat, clip(name))
	}
	size, err := ByteSize(name, dtype, e.Shape)
	if err != nil {
		return Tensor{}, [2]int64{}, err
	}
	begin, end := e.Offsets[0], e.Offsets[1]
	if begin < 0 || end < begin || end-begin != size {
		return Tensor{}, [2]int64{}, fmt.Errorf("%w: tensor %q has byte range [%d, %d), its shape asks for %d bytes", ErrFormat, name, begin, end, size)
	}
	return Tensor{Name: name, DType: dtype, Shape: e.Shape}, [2]int64{begin, end}, nil
}

// checkMetadata bounds the free text of a file.
func checkMetadata(m map[string]string) error {
	n := 0
	for k, v := range m {
		n += len(k) + len(v)
		if !utf8.ValidString(k) || !utf8.ValidString(v) {
			return fmt.Errorf("%w: metadata is not UTF-8", ErrFormat)
		}
	}
	if len(m) > MaxMetadata || n > maxMetadataBytes {
		return fmt.Errorf("%w: metadata of %d entries and %d bytes, at most %d and %d", ErrFormat, len(m), n, MaxMetadata, maxMetadataBytes)
	}
	return nil
}
