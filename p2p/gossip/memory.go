package gossip

import (
	"container/list"
	"sync"
	"time"

	"github.com/lightswarm/lightswarm/wire"
)

const (
	// memoryPeers is how many peers are remembered; beyond, the one heard of least recently is forgotten.
	memoryPeers = 8192
	// memoryWindow is how far beyond its last sequence without gaps a peer's announcements are told apart.
	memoryWindow = 1024
	// Presence of one peer is passed on once in five seconds, with a few in advance.
	presenceRate  = 0.2
	presenceBurst = 5
	// A gap is asked for again after gapRetryFirst, then after twice as long each time, up to gapRetryMax.
	gapRetryFirst = 5 * time.Second
	gapRetryMax   = 5 * time.Minute
)

// Memory remembers, within bounds, what each peer was heard to say: which of its announcements are known here, which
// must exist, and its last sign of life. It is safe for concurrent use; time is passed in.
type Memory struct {
	opts MemoryOptions

	mu     sync.Mutex
	peers  map[wire.PeerID]*list.Element // guarded by mu
	recent *list.List                    // of *heard, the most recently heard first; guarded by mu
}

// MemoryOptions say how a Memory works.
type MemoryOptions struct {
	// Collect keeps gaps open until they are filled or found to be unfillable. Otherwise old gaps are forgotten as a
	// peer's announcements go on.
	Collect bool
	// Cursor returns the first sequence of a peer that is not known yet; it is asked when a peer is first heard of.
	// Nil means 0.
	Cursor func(wire.PeerID) uint64
	// AnnouncementRate, per second, and AnnouncementBurst bound the announcements of one peer that are passed on.
	AnnouncementRate  float64
	AnnouncementBurst int
}

// Gap is a range of one peer's announcements of which some are not known here.
type Gap struct {
	// Peer signed them.
	Peer wire.PeerID
	// From is the first missing sequence.
	From uint64
	// End is above the last sequence known to exist.
	End uint64
	// Asked is how often in a row asking for it brought nothing.
	Asked int
}

// NewMemory returns an empty memory.
func NewMemory(opts MemoryOptions) *Memory {
	if opts.Cursor == nil {
		opts.Cursor = func(wire.PeerID) uint64 { return 0 }
	}
	return &Memory{opts: opts, peers: make(map[wire.PeerID]*list.Element), recent: list.New()}
}

// of returns what is remembered of a peer, which counts as heard. The caller holds mu.
func (m *Memory) of(peer wire.PeerID) *heard {
	if e := m.peers[peer]; e != nil {
		m.recent.MoveToFront(e)
		return e.Value.(*heard)
	}
	if m.recent.Len() >= memoryPeers {
		oldest := m.recent.Remove(m.recent.Back()).(*heard)
		delete(m.peers, oldest.peer)
	}
	from := m.opts.Cursor(peer)
	h := &heard{peer: peer, next: from, end: from, known: make(map[uint64]struct{})}
	m.peers[peer] = m.recent.PushFront(h)
	return h
}

// Announced is View.Announced.
func (m *Memory) Announced(peer wire.PeerID, sequence uint64) Reason {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.peers[peer]
	if e == nil {
		return Accepted
	}
	h := e.Value.(*heard)
	switch _, known := h.known[sequence]; {
	case known || sequence < h.next:
		return Duplicate
	case m.opts.Collect && sequence-h.next >= memoryWindow:
		return TooFarAhead
	}
	return Accepted
}

// LastPresence is View.LastPresence.
func (m *Memory) LastPresence(peer wire.PeerID) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.peers[peer]; e != nil {
		return e.Value.(*heard).presence
	}
	return time.Time{}
}

// Allow reports whether another record of a peer may be passed on at now, and counts it.
func (m *Memory) Allow(kind Kind, peer wire.PeerID, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.of(peer)
	switch kind {
	case Announcement:
		return h.announcements.take(now, m.opts.AnnouncementRate, m.opts.AnnouncementBurst)
	case Presence:
		return h.presences.take(now, presenceRate, presenceBurst)
	}
	return true
}

// Take marks an announcement as known and returns true, or false when it was known already or is too far ahead.
func (m *Memory) Take(peer wire.PeerID, sequence uint64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.of(peer)
	h.exists(sequence)
	if sequence < h.next {
		return false
	}
	if sequence-h.next >= memoryWindow {
		if m.opts.Collect {
			return false
		}
		h.skip(sequence - memoryWindow/2)
	}
	if _, known := h.known[sequence]; known {
		return false
	}
	h.known[sequence] = struct{}{}
	h.advance()
	h.asked, h.askAt = 0, time.Time{}
	return true
}

// Exists notes that a peer announced a sequence, which is not known here.
func (m *Memory) Exists(peer wire.PeerID, sequence uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of(peer).exists(sequence)
}

// Heard notes a sign of life: its time and the sequence of the peer's next announcement.
func (m *Memory) Heard(peer wire.PeerID, created time.Time, next uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.of(peer)
	h.presence = created
	h.end = max(h.end, next)
}

// Skip gives up a peer's announcements below a sequence: they are not to be had any more. It returns how many of them
// were not known.
func (m *Memory) Skip(peer wire.PeerID, to uint64) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.of(peer).skip(to)
}

// Cursor is the first sequence of a peer that is not known here.
func (m *Memory) Cursor(peer wire.PeerID) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.of(peer).next
}

// Cursors returns where the announcements of up to most peers are known up to, those heard of most recently first.
func (m *Memory) Cursors(most int) []wire.Cursor {
	m.mu.Lock()
	defer m.mu.Unlock()
	var cursors []wire.Cursor
	for e := m.recent.Front(); e != nil && len(cursors) < most; e = e.Next() {
		h := e.Value.(*heard)
		cursors = append(cursors, wire.Cursor{Peer: h.peer, FromSequence: h.next})
	}
	return cursors
}

// Gaps returns up to most gaps that may be asked for at now, those of the peers heard of most recently first.
func (m *Memory) Gaps(now time.Time, most int) []Gap {
	m.mu.Lock()
	defer m.mu.Unlock()
	var gaps []Gap
	for e := m.recent.Front(); e != nil && len(gaps) < most; e = e.Next() {
		if h := e.Value.(*heard); h.end > h.next && !now.Before(h.askAt) {
			gaps = append(gaps, Gap{Peer: h.peer, From: h.next, End: h.end, Asked: h.asked})
		}
	}
	return gaps
}

// Asked notes at now that a peer's gap is being asked for, so that Gaps leaves it out for a while. An announcement
// that arrives ends the wait.
func (m *Memory) Asked(peer wire.PeerID, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.of(peer)
	h.askAt = now.Add(min(gapRetryFirst<<min(h.asked, 16), gapRetryMax))
	h.asked++
}
