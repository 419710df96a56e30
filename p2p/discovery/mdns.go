package discovery

import (
	"context"
	"fmt"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/discovery/mdns"

	"github.com/lightswarm/lightswarm/wire"
)

// MDNS is the Source that finds members on the local network by multicast DNS.
type MDNS struct {
	// Host is what is announced.
	Host host.Host
	// Network keeps the members of several networks on one LAN apart.
	Network wire.CID
}

// Name implements Source.
func (*MDNS) Name() string { return "mDNS" }

// Run implements Source.
func (m *MDNS) Run(ctx context.Context, found func(peer.AddrInfo)) error {
	service := mdns.NewMdnsService(m.Host, m.service(), notifee(found))
	if err := service.Start(); err != nil {
		return fmt.Errorf("start mDNS: %w", err)
	}
	<-ctx.Done()
	// What Close reports concerns sockets that nobody uses any longer.
	_ = service.Close()
	return nil
}

// service is the DNS-SD service name. A label has at most 63 bytes, so that only the end of the network id fits; a
// clash costs a connection that the head protocol then tells apart.
func (m *MDNS) service() string {
	id := m.Network.String()
	return "_lightswarm-" + id[len(id)-16:] + "._udp"
}

// notifee adapts a function to mdns.Notifee.
type notifee func(peer.AddrInfo)

// HandlePeerFound implements mdns.Notifee.
func (f notifee) HandlePeerFound(info peer.AddrInfo) { f(info) }
