package discovery

import "github.com/libp2p/go-libp2p/core/peer"

// For tests.
var (
	OpenRecords = openRecords
	Reachable   = reachable
)

// MaxCandidates is maxCandidates.
const MaxCandidates = maxCandidates

// Knows reports whether a peer may be dialled.
func (d *Dialer) Knows(p peer.ID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.candidates[p] != nil
}
