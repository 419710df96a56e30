package block

import (
	"bufio"
	"bytes"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lightswarm/lightswarm/p2p/stream"
	"github.com/lightswarm/lightswarm/wire"
)

// script is a stream whose peer sends fixed bytes and reads everything.
type script struct {
	*bytes.Reader
	written bytes.Buffer
}

func (s *script) Write(b []byte) (int, error)    { return s.written.Write(b) }
func (*script) SetReadDeadline(time.Time) error  { return nil }
func (*script) SetWriteDeadline(time.Time) error { return nil }

// FuzzReceive answers a request with any bytes: what passes is the block and nothing else.
func FuzzReceive(f *testing.F) {
	data := []byte("the block that was asked for")
	answer := func(h wire.BlockHeader, body []byte) []byte {
		raw, err := wire.EncodeBlockHeader(h)
		if err != nil {
			f.Fatal(err)
		}
		return append(stream.AppendFrame(nil, raw), body...)
	}
	f.Add(answer(wire.BlockHeader{Found: true, Bytes: uint32(len(data))}, data), uint32(0), 100)
	f.Add(answer(wire.BlockHeader{Found: true, Bytes: uint32(len(data))}, data), uint32(0), 3)
	f.Add(answer(wire.BlockHeader{Index: 2}, nil), uint32(2), 100)
	f.Add(answer(wire.BlockHeader{Found: true, Bytes: wire.MaxBlockBytes}, data), uint32(0), 100)
	f.Add([]byte{0xff, 0xff, 0xff}, uint32(0), 100)
	f.Fuzz(func(t *testing.T, answer []byte, index uint32, limit int) {
		q := &request{cid: wire.SumCID(data), limit: limit, index: index}
		got, err := receive(&script{Reader: bytes.NewReader(answer)}, bufio.NewReader(bytes.NewReader(answer)), q)
		if err == nil && (!bytes.Equal(got, data) || len(got) > limit) {
			t.Fatalf("passed %q", got)
		}
	})
}

// FuzzServe sends a server any bytes: it sends blocks that it has, in whole answers, and nothing else.
func FuzzServe(f *testing.F) {
	data := []byte("a block")
	request := func(cids ...wire.CID) []byte {
		raw, err := wire.EncodeBlockRequest(wire.BlockRequest{CIDs: cids})
		if err != nil {
			f.Fatal(err)
		}
		return stream.AppendFrame(nil, raw)
	}
	have, lack := wire.SumCID(data), wire.SumCID([]byte("another block"))
	f.Add(request(have, lack, have))
	f.Add(append(request(have), request(lack)...))
	f.Add(append(request(have), 0xff, 0xff, 0xff, 0xff))
	f.Add([]byte{0})
	f.Fuzz(func(t *testing.T, sent []byte) {
		store := NewMemoryStore(1000)
		if err := store.Put(have, data); err != nil {
			t.Fatal(err)
		}
		var served, servedBytes atomic.Uint64
		st := &script{Reader: bytes.NewReader(sent)}
		complete := (&server{store: store, served: &served, bytes: &servedBytes}).handle(st) == nil
		answers := bufio.NewReader(&st.written)
		for {
			raw, err := stream.ReadFrame(answers, wire.MaxBlockHeaderBytes)
			if err != nil {
				break
			}
			header, err := wire.DecodeBlockHeader(raw)
			if err != nil {
				t.Fatalf("the server sent a header that is not valid: %v", err)
			}
			if n, err := answers.Discard(int(header.Bytes)); err != nil && complete {
				t.Fatalf("the server sent %d of %d bytes", n, header.Bytes)
			}
		}
		if servedBytes.Load() != served.Load()*uint64(len(data)) {
			t.Fatalf("%d blocks with %d bytes", served.Load(), servedBytes.Load())
		}
	})
}
