package discovery

import (
	"context"
	"fmt"
	"iter"
	"sync"
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
//
// It also finds the members that have something which few have, such as an environment package: Provides says what this
// node has, Providers who has it.
type Kademlia struct {
	host     host.Host
	network  wire.CID
	provides func() []string
	changed  chan struct{} // Capacity 1: what the node provides may have changed.

	mu    sync.Mutex
	table *routing.RoutingDiscovery // nil while Run does not run; guarded by mu
}

// NewKademlia returns the source of a network's members. provides lists what this node has, by names that members agree
// on; it is called now and then, and may be nil.
func NewKademlia(h host.Host, network wire.CID, provides func() []string) *Kademlia {
	if provides == nil {
		provides = func() []string { return nil }
	}
	return &Kademlia{host: h, network: network, provides: provides, changed: make(chan struct{}, 1)}
}

const (
	kademliaFirst     = 5 * time.Second  // Lets the first connections fill the table.
	kademliaInterval  = 2 * time.Minute  // Between two searches.
	kademliaQuery     = 30 * time.Second // For one search or advertisement.
	kademliaAdvertise = time.Minute      // For the advertisements of one round, behind which the search for members waits.
	kademliaFound     = 64               // Peers of one search,
	kademliaProviders = 128              // and of one for something that few have.
)

// Name implements Source.
func (*Kademlia) Name() string { return "Kademlia" }

// Run implements Source.
func (k *Kademlia) Run(ctx context.Context, found func(peer.AddrInfo)) error {
	table, err := dht.New(k.host,
		dht.ProtocolPrefix(protocol.ID("/lightswarm/"+k.network.String())),
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
	k.use(rendezvous)
	defer k.use(nil)
	again := make(map[string]time.Time) // When each name is to be advertised again.
	for pause := kademliaFirst; k.wait(ctx, pause); pause = kademliaInterval {
		k.advertise(ctx, rendezvous, again)
		for info := range k.search(ctx, rendezvous, k.network.String(), kademliaFound) {
			found(info)
		}
	}
	return nil
}

// use makes a table the one that Providers searches.
func (k *Kademlia) use(table *routing.RoutingDiscovery) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.table = table
}

// wait returns true after d or once what the node provides has changed, and false as soon as ctx ends.
func (k *Kademlia) wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-k.changed:
		return true
	case <-ctx.Done():
		return false
	}
}

// advertise says that this node is a member and what it provides, where that is due. What there is no time for has its
// turn in the next round.
func (k *Kademlia) advertise(ctx context.Context, table *routing.RoutingDiscovery, again map[string]time.Time) {
	ctx, cancel := context.WithTimeout(ctx, kademliaAdvertise)
	defer cancel()
	names := append([]string{k.network.String()}, k.provides()...)
	due := make(map[string]time.Time, len(names))
	for _, name := range names {
		if due[name] = again[name]; time.Now().Before(due[name]) || ctx.Err() != nil {
			continue
		}
		round, cancel := context.WithTimeout(ctx, kademliaQuery)
		// Failures are normal while nobody else is in the table; the next round tries again.
		if ttl, err := table.Advertise(round, name); err == nil {
			due[name] = time.Now().Add(ttl / 2)
		}
		cancel()
	}
	clear(again) // What is not provided any more is forgotten, here and, in time, in the table.
	for name, at := range due {
		again[name] = at
	}
}

// search yields the peers that advertised a name, without this one, as they are found; no more than limit.
func (k *Kademlia) search(ctx context.Context, table *routing.RoutingDiscovery, name string, limit int) iter.Seq[peer.AddrInfo] {
	return func(yield func(peer.AddrInfo) bool) {
		round, cancel := context.WithTimeout(ctx, kademliaQuery)
		defer cancel()
		infos, err := table.FindPeers(round, name, discovery.Limit(limit))
		if err != nil {
			return // As above.
		}
		for info := range infos {
			if info.ID != k.host.ID() && len(info.Addrs) > 0 && !yield(info) {
				return
			}
		}
	}
}

// Changed says that provides returns something else than before, so that others hear of it soon.
func (k *Kademlia) Changed() {
	select {
	case k.changed <- struct{}{}:
	default:
	}
}

// Providers yields up to 128 peers that said that they have what the name stands for, as they are found, until ctx ends;
// none while Run does not run. Nobody checked what they said, nor that they exist.
func (k *Kademlia) Providers(ctx context.Context, name string) iter.Seq[peer.AddrInfo] {
	k.mu.Lock()
	table := k.table
	k.mu.Unlock()
	if table == nil {
		return func(func(peer.AddrInfo) bool) {}
	}
	return k.search(ctx, table, name, kademliaProviders)
}
