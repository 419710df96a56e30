package stream

import (
	"sync"
	"sync/atomic"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
)

// Server handles the inbound streams of one protocol. It owns one goroutine for each stream, at most Limits of them.
type Server struct {
	host   host.Host
	id     protocol.ID
	limits Limits
	handle func(network.Stream) error

	refused atomic.Uint64

	mu      sync.Mutex
	closed  bool                        // guarded by mu
	open    map[network.Stream]struct{} // guarded by mu
	perPeer map[peer.ID]int             // guarded by mu
	ended   sync.WaitGroup              // Add only under mu while not closed.
}

// Limits bound the streams that a server handles at the same time; it resets those beyond.
type Limits struct {
	// Total is for all peers together.
	Total int
	// PerPeer is for each peer.
	PerPeer int
}

// Serve registers handle for a protocol until Close. handle runs on a goroutine of its own for each stream, must set
// deadlines for what it reads and writes, and returns when the stream is done; the server then closes the stream, or
// resets it after an error. A reset is all that a peer learns, so handle reports nothing else.
func Serve(h host.Host, id protocol.ID, limits Limits, handle func(network.Stream) error) *Server {
	s := &Server{
		host: h, id: id, limits: limits, handle: handle,
		open: make(map[network.Stream]struct{}), perPeer: make(map[peer.ID]int),
	}
	h.SetStreamHandler(id, s.accept)
	return s
}

// Refused is how many streams were reset because of the limits.
func (s *Server) Refused() uint64 { return s.refused.Load() }

// Close stops accepting, resets the streams being handled and waits for their handlers.
func (s *Server) Close() {
	s.host.RemoveStreamHandler(s.id)
	s.mu.Lock()
	s.closed = true
	for st := range s.open {
		// Resetting fails when the stream has just ended, which is as good.
		_ = st.Reset()
	}
	s.mu.Unlock()
	s.ended.Wait()
}

// accept is called by libp2p on the stream's own goroutine.
func (s *Server) accept(st network.Stream) {
	p := st.Conn().RemotePeer()
	if !s.enter(st, p) {
		_ = st.Reset()
		return
	}
	defer s.leave(st, p)
	if err := s.handle(st); err != nil {
		_ = st.Reset()
		return
	}
	// An error means that the peer is gone, which concerns nobody any more.
	_ = st.Close()
}

// enter counts a stream in, unless the limits or Close forbid it.
func (s *Server) enter(st network.Stream, p peer.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	if len(s.open) >= s.limits.Total || s.perPeer[p] >= s.limits.PerPeer {
		s.refused.Add(1)
		return false
	}
	s.open[st] = struct{}{}
	s.perPeer[p]++
	s.ended.Add(1)
	return true
}

// leave counts a stream out.
func (s *Server) leave(st network.Stream, p peer.ID) {
	s.mu.Lock()
	delete(s.open, st)
	if s.perPeer[p]--; s.perPeer[p] == 0 {
		delete(s.perPeer, p)
	}
	s.mu.Unlock()
	s.ended.Done()
}
