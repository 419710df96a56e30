package meter

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tetratelabs/wazero"
	"pgregory.net/rapid"
)

// place is a segment of the tests; its bytes are never zero, so that a zero that overwrites one is seen.
type place struct {
	at    uint32
	bytes []byte
}

func dataSectionOf(places []place) []byte {
	content := appendU32(nil, uint32(len(places)))
	for _, p := range places {
		content = append(appendSigned(append(content, 0, opI32Const), int64(int32(p.at))), opEnd)
		content = append(content, sized(p.bytes)...)
	}
	return content
}

// tooMany are segments far apart, two that touch, and two that nearly do.
func tooMany() (places []place) {
	for i := range uint32(maxLooked + 1) {
		places = append(places, place{1000 * i, []byte{1}})
	}
	return append(places, place{1<<20 + 0, []byte{2}}, place{1<<20 + 1, []byte{3}}, place{1<<20 + 3, []byte{4}})
}

// filled is a memory after a data section was applied, and how many segments did that.
func filled(t interface{ Fatal(...any) }, content []byte, size int) (memory []byte, n int) {
	segments, ok := (&reader{b: content}).segments()
	if !ok {
		t.Fatal("a segment has no known place")
	}
	memory = make([]byte, size)
	for _, s := range segments {
		if s.end() > uint64(size) {
			return nil, len(segments) // it traps
		}
		copy(memory[s.at:], s.bytes)
	}
	return memory, len(segments)
}

// Whatever the order and overlap of segments, the memory is the same.
func TestJoinedSegmentsFillTheSame(t *testing.T) {
	const size = 1200
	rapid.Check(t, func(t *rapid.T) {
		var places []place
		end := uint32(0)
		for range rapid.IntRange(0, 20).Draw(t, "segments") {
			at := end + rapid.SampledFrom([]uint32{0, 0, 1, 7, maxGap, maxGap + 1}).Draw(t, "gap")
			if rapid.IntRange(0, 3).Draw(t, "jump") == 0 {
				at = rapid.Uint32Range(0, size+2).Draw(t, "at")
			}
			b := bytes.Repeat([]byte{byte(len(places) + 1)}, rapid.IntRange(0, 90).Draw(t, "bytes"))
			places = append(places, place{at, b})
			end = at + uint32(len(b))
		}
		content := dataSectionOf(places)
		before, n := filled(t, content, size)
		after, joint := filled(t, joined(&reader{b: content}), size)
		if diff := cmp.Diff(before, after); diff != "" {
			t.Fatal(diff)
		}
		if joint > n {
			t.Fatalf("%d segments became %d", n, joint)
		}
	})
}

func TestSegmentsAreJoined(t *testing.T) {
	for name, c := range map[string]struct {
		content []byte
		want    int
	}{
		"close":              {dataSectionOf([]place{{8, []byte{1}}, {9, []byte{2}}, {15, []byte{3}}}), 1},
		"far":                {dataSectionOf([]place{{8, bytes.Repeat([]byte{1}, 100)}, {109 + maxGap, []byte{3}}}), 2},
		"backwards":          {dataSectionOf([]place{{200, []byte{1}}, {100, []byte{2}}, {102, []byte{3}}}), 2},
		"around another":     {dataSectionOf([]place{{103, []byte{1}}, {100, []byte{2}}, {105, bytes.Repeat([]byte{3}, 9)}}), 3},
		"between others":     {dataSectionOf([]place{{10, bytes.Repeat([]byte{1}, 30)}, {900, []byte{1}}, {500, []byte{2}}, {502, []byte{3}}}), 3},
		"too many":           {dataSectionOf(tooMany()), maxLooked + 3},
		"above 2 GiB":        {dataSectionOf([]place{{1 << 31, []byte{1}}, {1<<31 + 1, []byte{2}}}), 1},
		"more zeros than it": {dataSectionOf([]place{{0, nil}, {maxGap, nil}, {2 * maxGap, nil}}), 3},
	} {
		segments, ok := (&reader{b: joined(&reader{b: c.content})}).segments()
		if !ok || len(segments) != c.want {
			t.Errorf("%s: %d segments, want %d", name, len(segments), c.want)
		}
	}
	// What has no known place is left as it is.
	passive := []byte{2, 1, 1, 7, 0, opI32Const, 8, opEnd, 1, 7}
	global := []byte{1, 0, 0x23, 0, opEnd, 1, 7}
	for _, content := range [][]byte{passive, global} {
		if got := joined(&reader{b: content}); !bytes.Equal(got, content) {
			t.Errorf("%x became %x", content, got)
		}
	}
}

// A whole module begins with the same memory, and one that names its segments keeps them.
func TestRewrittenModulesBeginWithTheSameMemory(t *testing.T) {
	places := []place{{100, []byte{1, 2}}, {103, []byte{3}}, {50, []byte{4}}, {60, []byte{5}}, {101, []byte{6}}}
	module := assemble(body{typ: 1})
	content := dataSectionOf(places)
	counted := slices.Clone(module)
	at := bytes.Index(counted, section(10, []byte{1, 2, 0, opEnd}))
	if at < 0 {
		t.Fatal("the module has no such code")
	}
	counted = slices.Concat(counted[:at], section(12, []byte{byte(len(places))}), counted[at:])
	want, _ := filled(t, content, 200)
	for name, c := range map[string]struct {
		module   []byte
		segments int
	}{"joined": {module, 3}, "counted": {counted, len(places)}} {
		rewritten, err := Rewrite(append(slices.Clone(c.module), section(11, content)...), 1000)
		if err != nil {
			t.Fatal(name, err)
		}
		data := (&reader{b: rewritten, at: 8}).sections()[dataSection]
		if segments, _ := data.segments(); len(segments) != c.segments {
			t.Errorf("%s: %d segments, want %d", name, len(segments), c.segments)
		}
		ctx := context.Background()
		runtime := wazero.NewRuntime(ctx)
		_, err = runtime.NewHostModuleBuilder(importFrom).NewFunctionBuilder().
			WithFunc(func(int32, int32, int32, int32) int32 { return 0 }).Export(importName).Instantiate(ctx)
		if err != nil {
			t.Fatal(name, err)
		}
		m, err := runtime.Instantiate(ctx, rewritten)
		if err != nil {
			t.Fatal(name, err)
		}
		if got, _ := m.Memory().Read(0, 200); !bytes.Equal(got, want) {
			t.Errorf("%s: the memory is %x, want %x", name, got, want)
		}
		if err := runtime.Close(ctx); err != nil {
			t.Fatal(err)
		}
	}
}
