package stream_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"testing"

	"pgregory.net/rapid"

	"github.com/lightswarm/lightswarm/p2p/stream"
)

func TestFramesComeBackAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		messages := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 300), 0, 8).Draw(t, "messages")
		var written bytes.Buffer
		for _, m := range messages {
			if err := stream.WriteFrame(&written, m); err != nil {
				t.Fatal(err)
			}
		}
		r := bufio.NewReader(&written)
		for _, want := range messages {
			got, err := stream.ReadFrame(r, 300)
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("read %x, %v; want %x", got, err, want)
			}
		}
		if _, err := stream.ReadFrame(r, 300); !errors.Is(err, io.EOF) {
			t.Fatalf("after the last frame: %v, want EOF", err)
		}
	})
}

func TestReadFrameRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		data []byte
		want error
	}{
		{"a frame above the limit", append([]byte{17}, make([]byte, 17)...), stream.ErrTooLarge},
		{"a length of ten bytes", bytes.Repeat([]byte{0x80}, 10), stream.ErrTooLarge},
		{"a length that overflows", append(bytes.Repeat([]byte{0xff}, 9), 1), stream.ErrTooLarge},
		{"half a length", []byte{0x80}, io.ErrUnexpectedEOF},
		{"half a frame", []byte{4, 1, 2}, io.ErrUnexpectedEOF},
		{"a length without its frame", []byte{4}, io.ErrUnexpectedEOF},
		{"nothing", nil, io.EOF},
	} {
		if _, err := stream.ReadFrame(bufio.NewReader(bytes.NewReader(c.data)), 16); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

func FuzzReadFrame(f *testing.F) {
	f.Add([]byte{3, 1, 2, 3, 0})
	f.Add([]byte{0x80, 0x80, 0})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, data []byte) {
		const limit = 64
		r := bufio.NewReader(bytes.NewReader(data))
		for {
			m, err := stream.ReadFrame(r, limit)
			if err != nil {
				return
			}
			if len(m) > limit {
				t.Fatalf("a frame of %d bytes passed a limit of %d", len(m), limit)
			}
		}
	})
}
