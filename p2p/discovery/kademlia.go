package discovery

import (
	"context"
	"fmt"
	"time"

	dht "github.com/libp2p/go-libp2p-kad-dht"
	"github.com/libp2p/go-libp2p/core/discovery"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/discovery/routing"

	"github.com/lightswarm/lightswarm/wire"
)

// Kademlia is the Source that finds members through a distributed table of this network alone: its protocol carries
// the network id, so that it shares nothing with any other table. Nodes serve it unless they know that nobody can dial them.
// The table needs a first connection, from any other source.
type Kademlia struct {
	// Host is what the table runs on.
	Host host.Host
	// Network names the table and is the rendezvous.
	Network wire.CID
}

// Name implements Source.
func (*Kademlia) Name() string { return "Kademlia" }

// Run implements Source.
func (k *Kademlia) Run(ctx context.Context, found func(peer.AddrInfo)) error {
	const (
		first    = 5 * time.Second  // Lets the first connections fill the table.
		interval = 2 * time.Minute  // Between two searches.
		query    = 30 * time.Second // For one search or advertisement.
	)
	table, err := dht.New(k.Host,
		dht.ProtocolPrefix(protocol.ID("/lightswarm/"+k.Network.String())),
		dht.Mode(dht.ModeAutoServer), // A network on a LAN has nobody who could find out that it is reachable.
		dht.DisableValues())
	if err != nil {
		return fmt.Errorf("start the Kademlia table: %w", err)
	}
	// What Close reports concerns a table that nobody uses any longer.
	defer func() { _ = table.Close() }()
	if err := table.Bootstrap(ctx); err != nil {
		return fmt.Errorf("fill the Kademlia table: %w", err)
	}

	rendezvous := routing.NewRoutingDiscovery(table)
	var advertiseAt time.Time
	for pause := first; wait(ctx, pause); pause = interval {
		round, cancel := context.WithTimeout(ctx, query)
		// Failures are normal while nobody else is in the table; the next round tries again.
		if now := time.Now(); !now.Before(advertiseAt) {
			if ttl, err := rendezvous.Advertise(round, k.Network.String()); err == nil {
				advertiseAt = now.Add(ttl / 2)
			}
		}
		if infos, err := rendezvous.FindPeers(round, k.Network.String(), discovery.Limit(64)); err == nil {
			for info := range infos {
				if info.ID != k.Host.ID() && len(info.Addrs) > 0 {
					found(info)
				}
			}
		}
		cancel()
	}
	return nil
}
