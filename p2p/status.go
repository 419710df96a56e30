package p2p

import (
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/lightswarm/lightswarm/p2p/block"
	"github.com/lightswarm/lightswarm/p2p/gossip"
	"github.com/lightswarm/lightswarm/wire"
)

// PeerStatus is what is known of one connected peer.
type PeerStatus struct {
	Peer wire.PeerID
	// Addr is the multiaddr of the oldest connection; Inbound says that the peer dialled it, Limited that it runs
	// through a relay and carries control traffic only.
	Addr             string
	Inbound, Limited bool
	// Since is when that connection was made.
	Since time.Time
	// Member says that the peer has shown to be of this network; the fields below are zero before.
	Member bool
	// Learner says that the charter lets the peer sign releases.
	Learner bool
	// HeadVersion is the newest version that the peer said it knows.
	HeadVersion uint64
	// Presence is the newest sign of life heard of it; Created is zero when there was none.
	Presence wire.Presence
	// Latency is a moving average of round trips, zero when it was not measured.
	Latency time.Duration
	// Score is the gossip score; see the thresholds in package gossip.
	Score float64
}

// Stats counts what a Network did since New. Every counter only grows.
type Stats struct {
	// Gossip counts records that came by gossip.
	Gossip gossip.Stats
	// Pull counts records that came by pulls, and the pulls.
	Pull PullStats
	// Blocks counts blocks.
	Blocks block.Stats
	// Peers is how many peers are connected now, Members how many of them are known to be of this network.
	Peers, Members int
}

// PullStats counts pulls over the head protocol.
type PullStats struct {
	// Verdicts counts pulled records by kind and reason.
	Verdicts map[string]map[gossip.Reason]uint64
	// Pulls counts pulls that went through, Failed those that did not.
	Pulls, Failed uint64
	// Skipped counts peers that were not asked when they connected, because too many did at once; rounds ask some later.
	Skipped uint64
	// OtherNetwork counts peers turned away because they belong to another network.
	OtherNetwork uint64
	// Lost counts announcements that not even their author has any more.
	Lost uint64
	// RefusedStreams counts inbound streams beyond the limits.
	RefusedStreams uint64
}

// Peers returns the status of every connected peer, in no particular order.
func (n *Network) Peers() []PeerStatus {
	var all []PeerStatus
	for _, p := range n.host.Network().Peers() {
		if s, ok := n.peerStatus(p); ok {
			all = append(all, s)
		}
	}
	return all
}

// peerStatus describes a peer, unless it has just left.
func (n *Network) peerStatus(p peer.ID) (PeerStatus, bool) {
	conns := n.host.Network().ConnsToPeer(p)
	if len(conns) == 0 {
		return PeerStatus{}, false
	}
	oldest := conns[0]
	for _, c := range conns[1:] {
		if c.Stat().Opened.Before(oldest.Stat().Opened) {
			oldest = c
		}
	}
	s := PeerStatus{
		Peer:    wire.PeerID(p),
		Addr:    oldest.RemoteMultiaddr().String(),
		Inbound: oldest.Stat().Direction == network.DirInbound,
		Limited: oldest.Stat().Limited,
		Since:   oldest.Stat().Opened,
		Latency: n.host.Peerstore().LatencyEWMA(p),
		Score:   n.gossip.Score(p),
	}
	if m, ok := n.members.get(p); ok {
		s.Member, s.HeadVersion, s.Presence = true, m.head, m.presence
		s.Learner = n.puller.rules.Learners[s.Peer]
	}
	return s, true
}

// Addrs returns the multiaddrs, with /p2p/<peer id>, at which this node may be dialled.
func (n *Network) Addrs() []string {
	addrs, err := peer.AddrInfoToP2pAddrs(&peer.AddrInfo{ID: n.host.ID(), Addrs: n.host.Addrs()})
	if err != nil {
		return nil // The host's own id is always valid.
	}
	out := make([]string, len(addrs))
	for i, a := range addrs {
		out[i] = a.String()
	}
	return out
}

// Stats returns the counters.
func (n *Network) Stats() Stats {
	c := &n.puller.counters
	return Stats{
		Gossip: n.gossip.Stats(),
		Pull: PullStats{
			Verdicts: c.verdicts.Map(), Pulls: c.pulls.Load(), Failed: c.failed.Load(), Skipped: c.skipped.Load(),
			OtherNetwork: c.otherNetwork.Load(), Lost: c.lost.Load(), RefusedStreams: n.heads.Refused(),
		},
		Blocks:  n.blocks.Stats(),
		Peers:   len(n.host.Network().Peers()),
		Members: n.members.count(),
	}
}
