package bundle

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/lightswarm/lightswarm/wire"
)

// forge builds a file from columns that no encoder would write.
func forge(t *testing.T, b *Bundle, rollouts int, change func(cols *[columns]column), frame func(body []byte) []byte) []byte {
	t.Helper()
	e, err := encodeColumns(b)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&e.cols)
	}
	body := joinColumns(e.columns())
	packed := encoder().EncodeAll(body, nil)
	if frame != nil {
		packed = frame(body)
	}
	shaped := *b
	shaped.Rollouts = make([]Rollout, rollouts)
	return append(append(appendHeader(nil, e.major(), e.minor(), &shaped, e.form, len(packed)), packed...), e.raw.bytes()...)
}

// allocated returns how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestBombsAreRefusedBeforeTheyAllocate(t *testing.T) {
	if _, err := Decode(nil, Limits{}); err == nil { // builds the shared decoder
		t.Fatal("nothing is a bundle")
	}
	small := newGenerator(5, 0).group(1)
	long := newGenerator(5, 0).group(1)
	for len(long.Rollouts[0].Calls[0].Prompt) < wire.MaxTokensPerCall/2 {
		long.Rollouts[0].Calls[0].Prompt = append(long.Rollouts[0].Calls[0].Prompt, long.Rollouts[0].Calls[0].Prompt...)
	}
	zeros, err := zstd.NewWriter(nil, zstd.WithEncoderCRC(false), zstd.WithSingleSegment(true))
	if err != nil {
		t.Fatal(err)
	}
	defer zeros.Close()
	bomb := func(size int) func([]byte) []byte {
		return func([]byte) []byte { return zeros.EncodeAll(make([]byte, size), nil) }
	}
	tests := []struct {
		name string
		want error
		lim  Limits
		data []byte
	}{
		{"columns above the protocol's limit", wire.ErrTooLarge, Limits{}, forge(t, small, 1, nil, bomb(wire.MaxBundleDecodedBytes+1))},
		{"columns above the reader's limit", wire.ErrTooLarge, Limits{DecodedBytes: 1 << 16}, forge(t, small, 1, nil, bomb(1<<17))},
		{"frame longer than it says", wire.ErrMalformed, Limits{}, forge(t, small, 1, nil, func([]byte) []byte {
			f := bomb(10 << 20)(nil)
			var h zstd.Header
			if err := h.Decode(f); err != nil {
				t.Fatal(err)
			}
			lying, err := (&zstd.Header{SingleSegment: true, HasFCS: true, FrameContentSize: 100}).AppendTo(nil)
			if err != nil {
				t.Fatal(err)
			}
			return append(lying, f[h.HeaderSize:]...)
		})},
		{"a second frame", wire.ErrMalformed, Limits{}, forge(t, small, 1, nil, func(body []byte) []byte {
			return append(encoder().EncodeAll(body, nil), bomb(10<<20)(nil)...)
		})},
		{"copies of a long call", wire.ErrTooLarge, Limits{Tokens: 1 << 17}, forge(t, long, wire.MaxRolloutsPerBundle, func(cols *[columns]column) {
			for range wire.MaxRolloutsPerBundle - 1 {
				for col, v := range map[int]uint64{colMember: 0, colTask: 0, colOutcome: 1, colReward: 0, colComponents: 0, colCalls: 2} {
					cols[col].put(v)
				}
				for range 2 {
					cols[colComponentValue].put(0)
					cols[colCopy].put(1)
				}
			}
		}, nil)},
		{"more rollouts than the reader wants", wire.ErrTooLarge, Limits{Rollouts: 7}, forge(t, small, 8, nil, nil)},
		{"longer than the reader wants", wire.ErrTooLarge, Limits{Bytes: 100}, forge(t, small, 1, nil, nil)},
		{"one token more than there is", wire.ErrMalformed, Limits{}, forge(t, small, 1, func(cols *[columns]column) {
			cols[colPromptNew] = column{0xff, 0xff, 1, 0}
		}, nil)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var err error
			used := allocated(func() { _, err = Decode(test.data, test.lim) })
			if !errors.Is(err, test.want) {
				t.Errorf("the error is %v, want %v", err, test.want)
			}
			if limit := uint64(4 << 20); used > limit {
				t.Errorf("%d bytes of input made it allocate %d", len(test.data), used)
			}
		})
	}
}

func TestEveryBrokenReferenceIsRefused(t *testing.T) {
	b := ask(constrain(newGenerator(6, 0).group(3)))
	for name, change := range map[string]func(cols *[columns]column){
		"copy of a later rollout":    func(c *[columns]column) { c[colCopy][0] = 1 },
		"agent not in the table":     func(c *[columns]column) { c[colAgent][0] = 1 },
		"reward not in the table":    func(c *[columns]column) { c[colReward][0] = 100 },
		"call reward not in it":      func(c *[columns]column) { c[colCallReward][0] = 100 },
		"components not in it":       func(c *[columns]column) { c[colComponents][0] = 100 },
		"prompt of a later call":     func(c *[columns]column) { c[colPromptSource][0] = 1 },
		"cut longer than the source": func(c *[columns]column) { c[colPromptCut][0] = 1 },
		"completion of a later call": func(c *[columns]column) { c[colCompletionSource][0] = 1 },
		"shared without a source":    func(c *[columns]column) { c[colCompletionShared][0] = 1 },
		"own without shared":         func(c *[columns]column) { c[colLogProbsOwn][0] = 1 },
		"too many calls":             func(c *[columns]column) { c[colCalls][0] = 100 },
		"unknown outcome":            func(c *[columns]column) { c[colOutcome][0] = 6 },
		"a number too many":          func(c *[columns]column) { c[colTask].put(0) },
		"a log-prob too many":        func(c *[columns]column) { c[colLogProbClass] = append(c[colLogProbClass], 0) },
		"an impossible class":        func(c *[columns]column) { c[colLogProbClass][0] = maxGridClass + 1 },
		"half a float":               func(c *[columns]column) { c[colFloats] = append(c[colFloats], 0) },
		"an empty column":            func(c *[columns]column) { c[colMember] = nil },
		"grammar not in the table":   func(c *[columns]column) { c[colGrammar][0] = 3 },
		"an empty grammar":           func(c *[columns]column) { c[colGrammars].putString("") },
		"a long grammar":             func(c *[columns]column) { c[colGrammars].putString(strings.Repeat("x", wire.MaxGrammarBytes+1)) },
		"more grammars than calls": func(c *[columns]column) {
			for range 2 * wire.MaxCallsPerRollout {
				c[colGrammars].putString("x")
			}
		},
		"half a grammar":            func(c *[columns]column) { c[colGrammars] = append(c[colGrammars], 9) },
		"a grammar twice":           func(c *[columns]column) { c[colGrammars] = append(c[colGrammars], c[colGrammars]...) },
		"a grammar of no call":      func(c *[columns]column) { c[colGrammars].putString("x") },
		"no grammar of any":         func(c *[columns]column) { c[colGrammars], c[colGrammar] = nil, make(column, len(c[colGrammar])) },
		"nothing asked by any":      func(c *[columns]column) { c[colAskedTexts], c[colAsked] = nil, make(column, len(c[colAsked])) },
		"what was asked not in it":  func(c *[columns]column) { c[colAsked][len(c[colAsked])-1] = 3 },
		"asked out of order":        func(c *[columns]column) { slices.Reverse(c[colAsked]) },
		"asked by no call":          func(c *[columns]column) { clear(c[colAsked]) },
		"an empty text asked":       func(c *[columns]column) { c[colAskedTexts].putString("") },
		"a long text asked":         func(c *[columns]column) { c[colAskedTexts].putString(strings.Repeat("x", wire.MaxAskedBytes+1)) },
		"an unprintable text asked": func(c *[columns]column) { c[colAskedTexts][1] = '\n' },
		"half of what was asked":    func(c *[columns]column) { c[colAskedTexts] = append(c[colAskedTexts], 9) },
		"asked a number too often":  func(c *[columns]column) { c[colAsked].put(0) },
		"more asked than calls made": func(c *[columns]column) {
			for i := range 3 * wire.MaxCallsPerRollout {
				c[colAskedTexts].putString(fmt.Sprint(i))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Decode(forge(t, b, 3, change, nil), Limits{}); !errors.Is(err, wire.ErrMalformed) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

func TestEveryTruncationIsRefused(t *testing.T) {
	data, err := Encode(newGenerator(7, 0.5).group(4))
	if err != nil {
		t.Fatal(err)
	}
	for n := range data {
		if _, err := Decode(data[:n], Limits{}); !errors.Is(err, wire.ErrMalformed) && !errors.Is(err, wire.ErrTooLarge) {
			t.Fatalf("of its first %d bytes: %v", n, err)
		}
	}
	if _, err := Decode(append(data, 0), Limits{}); !errors.Is(err, wire.ErrMalformed) {
		t.Errorf("with a byte more: %v", err)
	}
}

func TestFutureAndForeignFiles(t *testing.T) {
	b := newGenerator(8, 0.5).group(4)
	data, err := Encode(b)
	if err != nil {
		t.Fatal(err)
	}
	newer := bytes.Clone(data)
	newer[len(magic)] = major + 1
	if _, err := Decode(newer, Limits{}); !errors.Is(err, wire.ErrNewerMajor) {
		t.Errorf("a newer major: %v", err)
	}
	older := bytes.Clone(data)
	older[len(magic)] = 0
	if _, err := Decode(older, Limits{}); !errors.Is(err, wire.ErrMalformed) {
		t.Errorf("major 0: %v", err)
	}
	if _, err := Decode([]byte("{\"rollouts\":[]}"), Limits{}); !errors.Is(err, wire.ErrMalformed) {
		t.Errorf("JSON: %v", err)
	}
	unknown, err := zstd.NewWriter(nil, zstd.WithEncoderDictRaw(77, make([]byte, 64)), zstd.WithSingleSegment(true))
	if err != nil {
		t.Fatal(err)
	}
	defer unknown.Close()
	foreign := forge(t, b, 4, nil, func(body []byte) []byte { return unknown.EncodeAll(body, nil) })
	if _, err := Decode(foreign, Limits{}); !errors.Is(err, wire.ErrNewerMajor) {
		t.Errorf("an unknown dictionary: %v", err)
	}

	// A newer minor appends to the header and adds a column.
	e, err := encodeColumns(ask(b))
	if err != nil {
		t.Fatal(err)
	}
	body := append(joinColumns(e.columns()), 3, 'n', 'e', 'w')
	frame := encoder().EncodeAll(body, nil)
	minor := appendHeader(nil, e.major(), minorAsked+1, b, e.form, len(frame))
	minor = append(minor, "extra"...)
	at := minor[len(magic)+2:]
	binary.LittleEndian.PutUint16(at, binary.LittleEndian.Uint16(at)+5)
	got, err := Decode(append(append(minor, frame...), e.raw.bytes()...), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(b, got, sameBits); d != "" {
		t.Error(d)
	}
}

func TestErrorsOfTheSourceAreKept(t *testing.T) {
	data, err := Encode(newGenerator(9, 0.5).group(2))
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken disk")
	for _, n := range []int{0, 5, 50, len(data) - 1, len(data)} {
		src := io.MultiReader(bytes.NewReader(data[:n]), iotest.ErrReader(broken))
		if _, err := NewReader(src, Limits{}); !errors.Is(err, broken) {
			t.Errorf("after %d bytes: %v", n, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	files, err := filepath.Glob("testdata/golden/*.bundle")
	if err != nil || len(files) == 0 {
		f.Fatalf("no golden bundles (%v)", err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	limits := Limits{Bytes: 1 << 16, DecodedBytes: 1 << 16, Tokens: 1 << 16, Rollouts: 16}
	f.Fuzz(func(t *testing.T, data []byte) { checkDecoder(t, data, limits) })
}

// FuzzColumns reaches what the compressor hides from FuzzDecode.
func FuzzColumns(f *testing.F) {
	for seed := range uint64(4) {
		b := newGenerator(seed, 0.4).group(3)
		if seed == 3 {
			constrain(b)
		}
		if seed >= 2 {
			ask(b)
		}
		e, err := encodeColumns(b)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(joinColumns(e.columns()), e.raw.bytes(), uint8(3))
	}
	limits := Limits{Bytes: 1 << 16, DecodedBytes: 1 << 16, Tokens: 1 << 16, Rollouts: 16}
	b := newGenerator(1, 0).group(1)
	f.Fuzz(func(t *testing.T, body, raw []byte, rollouts uint8) {
		shaped := *b
		shaped.Rollouts = make([]Rollout, rollouts)
		frame := encoder().EncodeAll(body, nil)
		for _, v := range [][2]byte{{majorPlain, minorPlain}, {majorPlain, minorAsked}, {majorGrammars, minorPlain}, {majorGrammars, minorAsked}} {
			for _, f := range []form{formGrid, formFloat32} {
				checkDecoder(t, append(append(appendHeader(nil, v[0], v[1], &shaped, f, len(frame)), frame...), raw...), limits)
			}
		}
	})
}

// checkDecoder decodes data. What is decoded must keep to the limits and survive another round.
func checkDecoder(t *testing.T, data []byte, lim Limits) {
	b, err := Decode(data, lim)
	if err != nil {
		if !errors.Is(err, wire.ErrMalformed) && !errors.Is(err, wire.ErrTooLarge) && !errors.Is(err, wire.ErrNewerMajor) {
			t.Fatalf("an error of no kind: %v", err)
		}
		return
	}
	tokens := 0
	for _, r := range b.Rollouts {
		for _, c := range r.Calls {
			tokens += len(c.Prompt) + len(c.Completion)
		}
	}
	if tokens > lim.Tokens || len(b.Rollouts) > lim.Rollouts {
		t.Fatalf("%d rollouts with %d tokens are above the limits", len(b.Rollouts), tokens)
	}
	again, err := Encode(b)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(again, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(b, got, sameBits); d != "" {
		t.Fatal(d)
	}
}

func BenchmarkEncode(b *testing.B) {
	group := newGenerator(1, 0.5).group(8)
	for b.Loop() {
		if _, err := Encode(group); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	data, err := Encode(newGenerator(1, 0.5).group(8))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := Decode(data, Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}
