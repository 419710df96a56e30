package p2p

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/lightswarm/lightswarm/wire"
)

const (
	// misbehaviourPenalty is taken off the score of a peer that was caught, for misbehaviourFor.
	misbehaviourPenalty = 150
	misbehaviourFor     = time.Hour
	maxMisbehaved       = 4096 // Peers remembered as caught.
)

// members knows which connected peers belong to the network, and who was caught misbehaving. It is safe for
// concurrent use.
type members struct {
	mu      sync.Mutex
	byPeer  map[peer.ID]*member       // Connected members; guarded by mu.
	records map[peer.ID][]byte        // Signed peer records of connected peers; guarded by mu.
	caught  map[peer.ID]caughtPeer    // guarded by mu
	score   func(wire.PeerID) float64 // The node's; constant.
	now     func() time.Time          // constant
}

// member is what is known of a connected member.
type member struct {
	since    time.Time
	head     uint64
	presence wire.Presence // Zero until a sign of life was heard.
}

type caughtPeer struct {
	times int
	last  time.Time
}

func newMembers(score func(wire.PeerID) float64) *members {
	return &members{
		byPeer: make(map[peer.ID]*member), records: make(map[peer.ID][]byte), caught: make(map[peer.ID]caughtPeer),
		score: score, now: time.Now,
	}
}

// add notes that a connected peer belongs to the network and knows a version.
func (m *members) add(p peer.ID, head uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byPeer[p] == nil {
		m.byPeer[p] = &member{since: m.now()}
	}
	m.byPeer[p].head = max(m.byPeer[p].head, head)
}

// remove notes that a peer is not connected any more.
func (m *members) remove(p peer.ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byPeer, p)
	delete(m.records, p)
}

// keepRecord keeps the signed peer record of a connected peer, for others that look for members.
func (m *members) keepRecord(p peer.ID, encoded []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.records[p] = encoded
}

// record returns the signed peer record of a connected member, nil when there is none.
func (m *members) record(p peer.ID) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byPeer[p] == nil {
		return nil
	}
	return m.records[p]
}

// heard keeps the newest sign of life of a connected member.
func (m *members) heard(p wire.SignedPresence) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if mem := m.byPeer[peer.ID(p.Signer)]; mem != nil {
		mem.presence = p.Presence
		mem.head = max(mem.head, p.HeadVersion)
	}
}

// has reports whether a peer is a connected member.
func (m *members) has(p peer.ID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.byPeer[p] != nil
}

// get returns a copy of what is known of a member.
func (m *members) get(p peer.ID) (member, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if mem := m.byPeer[p]; mem != nil {
		return *mem, true
	}
	return member{}, false
}

// list returns the connected members in the order of their ids.
func (m *members) list() []peer.ID {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.byPeer))
}

// count is how many members are connected.
func (m *members) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.byPeer)
}

// trusted returns the connected members that were not caught lately.
func (m *members) trusted() []peer.ID {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	var list []peer.ID
	for p := range m.byPeer {
		if c, ok := m.caught[p]; !ok || now.Sub(c.last) > misbehaviourFor {
			list = append(list, p)
		}
	}
	slices.Sort(list)
	return list
}

// misbehaved notes that a peer was caught. When too many are remembered, those whose time is over are forgotten.
func (m *members) misbehaved(p peer.ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	if len(m.caught) >= maxMisbehaved {
		maps.DeleteFunc(m.caught, func(_ peer.ID, c caughtPeer) bool { return now.Sub(c.last) > misbehaviourFor })
	}
	if c, ok := m.caught[p]; ok || len(m.caught) < maxMisbehaved {
		m.caught[p] = caughtPeer{times: c.times + 1, last: now}
	}
}

// applicationScore is the application's part of a gossip score: the node's view, within ±100, less what the peer was
// caught with here.
func (m *members) applicationScore(p peer.ID) float64 {
	score := 0.0
	if m.score != nil {
		score = min(100, max(-100, m.score(wire.PeerID(p))))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if c, ok := m.caught[p]; ok && m.now().Sub(c.last) <= misbehaviourFor {
		score -= float64(c.times) * misbehaviourPenalty
	}
	return score
}
