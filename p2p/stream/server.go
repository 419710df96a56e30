package stream

import (
	"slices"
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

	mu     sync.Mutex
	closed bool                         // guarded by mu
	open   int                          // Streams of all peers; guarded by mu.
	byPeer map[peer.ID][]network.Stream // Those of each peer that has any, oldest first; guarded by mu.
	ended  sync.WaitGroup               // Add only under mu while not closed.
}

// Limits bound the streams that a server handles at the same time; it resets those beyond. Peers share the total
// fairly: when it is used up, a peer's new stream takes the place of the oldest one of the peer that has the most, if
// that has at least two more. So it takes as many peers as there are streams to keep another one out.
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
		host: h, id: id, limits: limits, handle: handle, byPeer: make(map[peer.ID][]network.Stream),
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
	for _, streams := range s.byPeer {
		for _, st := range streams {
			// Resetting fails when the stream has just ended, which is as good.
			_ = st.Reset()
		}
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

// enter counts a stream in, unless a limit forbids it.
func (s *Server) enter(st network.Stream, p peer.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	if len(s.byPeer[p]) >= s.limits.PerPeer || s.open >= s.limits.Total && !s.displace(len(s.byPeer[p])) {
		s.refused.Add(1)
		return false
	}
	s.open++
	s.byPeer[p] = append(s.byPeer[p], st)
	s.ended.Add(1)
	return true
}

// displace makes room for a stream of a peer that has so many, if another has at least two more. The caller holds mu.
func (s *Server) displace(own int) bool {
	most, largest := peer.ID(""), own+1
	for p, streams := range s.byPeer {
		if len(streams) > largest {
			most, largest = p, len(streams)
		}
	}
	if most == "" {
		return false
	}
	oldest := s.byPeer[most][0]
	s.remove(oldest, most)
	s.refused.Add(1)
	// Its handler ends soon; resetting fails when the stream has just ended, which is as good.
	_ = oldest.Reset()
	return true
}

// remove counts a stream out, unless it was displaced. The caller holds mu.
func (s *Server) remove(st network.Stream, p peer.ID) {
	i := slices.Index(s.byPeer[p], st)
	if i < 0 {
		return
	}
	s.open--
	if s.byPeer[p] = slices.Delete(s.byPeer[p], i, i+1); len(s.byPeer[p]) == 0 {
		delete(s.byPeer, p)
	}
}

// leave counts a stream out once its handler has ended.
func (s *Server) leave(st network.Stream, p peer.ID) {
	s.mu.Lock()
	s.remove(st, p)
	s.mu.Unlock()
	s.ended.Done()
}
