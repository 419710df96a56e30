package block

import (
	"maps"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

const (
	// progressRate is what a peer sends at least, in bytes per second, while others need not be asked besides.
	progressRate = 4 << 10
	// slowFor is how long a peer that was silent or failed is asked after others.
	slowFor = 5 * time.Minute
	// maxSlow bounds the peers that are remembered.
	maxSlow = 1024
)

// slowPeers remembers which peers were silent or failed lately, so that one that holds up a fetch does not hold up the next
// ones too. It is safe for concurrent use.
type slowPeers struct {
	mu    sync.Mutex
	since map[peer.ID]time.Time // guarded by mu
}

// mark notes that a peer was slow just now.
func (s *slowPeers) mark(p peer.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if len(s.since) >= maxSlow {
		maps.DeleteFunc(s.since, func(_ peer.ID, at time.Time) bool { return now.Sub(at) > slowFor })
	}
	if _, there := s.since[p]; there || len(s.since) < maxSlow {
		s.since[p] = now
	}
}

// clear notes that a peer answered.
func (s *slowPeers) clear(p peer.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.since, p)
}

// compare orders peers: those that were not slow lately first, of the others first whose turn was longest ago.
func (s *slowPeers) compare(a, b peer.ID) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at(a).Compare(s.at(b))
}

// at is when a peer was slow, the zero time if that was not lately. The caller holds mu.
func (s *slowPeers) at(p peer.ID) time.Time {
	at := s.since[p]
	if time.Since(at) > slowFor {
		return time.Time{}
	}
	return at
}
