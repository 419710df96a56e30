package block

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/protocol"

	"github.com/lightswarm/lightswarm/p2p/stream"
	"github.com/lightswarm/lightswarm/wire"
)

// Protocol is the block protocol's id.
const Protocol protocol.ID = "/lightswarm/block/1"

const (
	serverStreams        = 256 // For all peers; each holds at most one block in memory.
	serverStreamsPerPeer = 4
	// serverIdle is how long a stream may wait for its next request.
	serverIdle = 2 * time.Minute
	// writeSlack and minRate bound how long a peer may take to receive a block, and hold its memory.
	writeSlack = 10 * time.Second
	minRate    = 16 << 10 // Bytes per second.
	// bufferBytes is the size of the buffers between streams and messages. Small blocks share writes; large ones
	// bypass the buffers.
	bufferBytes = 64 << 10
)

// server answers block requests from a store.
type server struct {
	store  Store
	served *atomic.Uint64
	bytes  *atomic.Uint64
}

// serve starts to answer requests on a host until the returned server is closed.
func serve(h host.Host, store Store, served, bytes *atomic.Uint64) *stream.Server {
	s := &server{store: store, served: served, bytes: bytes}
	return stream.Serve(h, Protocol, stream.Limits{Total: serverStreams, PerPeer: serverStreamsPerPeer},
		func(st network.Stream) error { return s.handle(st) })
}

// conduit is what is used of a stream.
type conduit interface {
	io.ReadWriter
	SetReadDeadline(time.Time) error
	SetWriteDeadline(time.Time) error
}

// handle answers the requests of one stream in their order.
func (s *server) handle(st conduit) error {
	r := bufio.NewReaderSize(st, wire.MaxBlockRequestBytes)
	w := bufio.NewWriterSize(st, bufferBytes)
	for {
		if err := st.SetReadDeadline(time.Now().Add(serverIdle)); err != nil {
			return err
		}
		raw, err := stream.ReadFrame(r, wire.MaxBlockRequestBytes)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		request, err := wire.DecodeBlockRequest(raw)
		if err != nil {
			return err
		}
		for i, cid := range request.CIDs {
			if err := s.send(st, w, uint32(i), cid); err != nil {
				return err
			}
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
}

// send writes one block, or that it is not here.
func (s *server) send(st conduit, w *bufio.Writer, index uint32, cid wire.CID) error {
	data, err := s.store.Get(cid)
	switch {
	case errors.Is(err, ErrNotFound):
		data = nil
	case err != nil:
		return fmt.Errorf("read block %s: %w", cid, err)
	case len(data) > wire.MaxBlockBytes:
		return fmt.Errorf("block %s in the store has %d bytes, more than a block may have", cid, len(data))
	}
	header, encodeErr := wire.EncodeBlockHeader(wire.BlockHeader{Index: index, Found: err == nil, Bytes: uint32(len(data))})
	if encodeErr != nil {
		return encodeErr
	}
	if err := st.SetWriteDeadline(time.Now().Add(transferTime(len(data)))); err != nil {
		return err
	}
	if err := stream.WriteFrame(w, header); err != nil {
		return err
	}
	if _, err := w.Write(data); err != nil {
		return err
	}
	if data != nil {
		s.served.Add(1)
		s.bytes.Add(uint64(len(data)))
	}
	return nil
}

// transferTime is how long n bytes may take at the slowest rate that is worth waiting for.
func transferTime(n int) time.Duration {
	return writeSlack + time.Duration(n)*time.Second/minRate
}
