package head

import "github.com/lightswarm/lightswarm/wire"

// Source is where a node's answers come from: its own signed records and, within bounds that it sets itself, those
// of others that it relays. Its methods are safe for concurrent use and answer from memory or a local store.
type Source interface {
	// Releases returns up to max encoded signed releases of version from or above, ascending, no version twice.
	Releases(from uint64, max int) ([][]byte, error)
	// Announcements returns up to max encoded signed announcements of the peer with sequence from or above,
	// ascending. A peer that is not known has none.
	Announcements(peer wire.PeerID, from uint64, max int) ([][]byte, error)
	// Head is the newest release version that the node knows, 0 when it knows none.
	Head() uint64
}
