package p2p

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"math"
	"net/netip"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/host/autorelay"
	rcmgr "github.com/libp2p/go-libp2p/p2p/host/resource-manager"
	"github.com/libp2p/go-libp2p/p2p/net/connmgr"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	libp2ptls "github.com/libp2p/go-libp2p/p2p/security/tls"
	quic "github.com/libp2p/go-libp2p/p2p/transport/quic"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	"github.com/libp2p/go-libp2p/x/rate"
	ma "github.com/multiformats/go-multiaddr"
)

// newHost returns a host that does not listen yet, so that protocols can be registered before anybody connects. TCP
// with TLS comes first: it moves more bytes per processor than Noise or QUIC, which are there for those who need them.
func newHost(cfg *Config, relays autorelay.PeerSource) (host.Host, error) {
	key, err := hostKey(cfg.Key)
	if err != nil {
		return nil, err
	}
	resources, err := NewResourceManager(cfg.Tuning.PeersPerAddress)
	if err != nil {
		return nil, err
	}
	connections, err := connmgr.NewConnManager(cfg.Tuning.ConnectionsLow, cfg.Tuning.ConnectionsHigh,
		connmgr.WithGracePeriod(time.Minute))
	if err != nil {
		return nil, fmt.Errorf("connection manager: %w", err)
	}
	options := []libp2p.Option{
		libp2p.Identity(key),
		libp2p.UserAgent(cfg.AgentVersion),
		libp2p.NoListenAddrs,
		libp2p.Transport(tcp.NewTCPTransport),
		libp2p.Transport(quic.NewTransport),
		libp2p.Security(libp2ptls.ID, libp2ptls.New),
		libp2p.Security(noise.ID, noise.New),
		libp2p.ResourceManager(resources),
		libp2p.ConnectionManager(connections),
		libp2p.EnableAutoNATv2(),
		// The detectors stop dialling UDP or IPv6 after a hundred failures, such as those of a night without a network,
		// and then try one dial in a hundred.
		libp2p.UDPBlackHoleSuccessCounter(nil),
		libp2p.IPv6BlackHoleSuccessCounter(nil),
		libp2p.DisableMetrics(), // The default registry would mix the hosts of one process.
	}
	if cfg.NATPortMap {
		options = append(options, libp2p.NATPortMap())
	}
	if cfg.Relay {
		options = append(options,
			libp2p.EnableRelay(),
			libp2p.EnableRelayService(), // Which starts once others reach this node, within libp2p's tight limits.
			libp2p.EnableHolePunching(),
			libp2p.EnableAutoRelayWithPeerSource(relays,
				autorelay.WithBootDelay(30*time.Second), autorelay.WithBackoff(5*time.Minute)))
	}
	h, err := libp2p.New(options...)
	if err != nil {
		return nil, fmt.Errorf("start libp2p: %w", err)
	}
	return h, nil
}

// hostKey converts an identity to libp2p's form.
func hostKey(private ed25519.PrivateKey) (crypto.PrivKey, error) {
	key, err := crypto.UnmarshalEd25519PrivateKey(private)
	if err != nil {
		return nil, fmt.Errorf("identity key: %w", err)
	}
	return key, nil
}

// listen opens every address, or fails.
func listen(h host.Host, addrs []string) error {
	for _, s := range addrs {
		a, err := ma.NewMultiaddr(s)
		if err != nil {
			return fmt.Errorf("listen address %q: %w", s, err)
		}
		if err := h.Network().Listen(a); err != nil {
			return fmt.Errorf("listen on %s: %w", s, err)
		}
	}
	return nil
}

// NewResourceManager returns libp2p's resource manager with limits for a node that many peers connect to, up to
// peersPerAddress of them from one IP address. libp2p's own limit of 8 connections per address turns away the ninth
// volunteer of a house, a lab or a carrier's NAT.
func NewResourceManager(peersPerAddress int) (network.ResourceManager, error) {
	limits := rcmgr.DefaultLimits
	libp2p.SetDefaultServiceLimits(&limits)
	concrete := rcmgr.PartialLimitConfig{
		System: rcmgr.ResourceLimits{
			Conns: 4096, ConnsInbound: 2048, ConnsOutbound: 2048,
			Streams: 1 << 16, StreamsInbound: 1 << 15, StreamsOutbound: 1 << 15,
		},
		Transient: rcmgr.ResourceLimits{ // Connections and streams still being set up.
			Conns: 1024, ConnsInbound: 512, ConnsOutbound: 512,
			Streams: 2048, StreamsInbound: 1024, StreamsOutbound: 1024,
		},
		PeerDefault: rcmgr.ResourceLimits{Streams: 512, StreamsInbound: 256, StreamsOutbound: 256},
		// All peers together speak few protocols, so that these need nearly the system's limits.
		ProtocolDefault: rcmgr.ResourceLimits{Streams: 1 << 14, StreamsInbound: 1 << 13, StreamsOutbound: 1 << 13},
		ServiceDefault:  rcmgr.ResourceLimits{Streams: 1 << 14, StreamsInbound: 1 << 13, StreamsOutbound: 1 << 13},
	}.Build(limits.AutoScale())

	// A peer may hold two connections for a moment, when both sides dial.
	perAddress := 2 * peersPerAddress
	subnets4 := []rcmgr.ConnLimitPerSubnet{{PrefixLength: 32, ConnCount: perAddress}}
	subnets6 := []rcmgr.ConnLimitPerSubnet{
		{PrefixLength: 56, ConnCount: perAddress}, {PrefixLength: 48, ConnCount: 8 * perAddress},
	}
	// New connections: all peers of an address at once, then a few every second.
	again := rate.Limit{RPS: 8, Burst: perAddress}
	manager, err := rcmgr.NewResourceManager(rcmgr.NewFixedLimiter(concrete),
		rcmgr.WithMetricsDisabled(),
		rcmgr.WithLimitPerSubnet(subnets4, subnets6),
		rcmgr.WithNetworkPrefixLimit(
			[]rcmgr.NetworkPrefixLimit{{Network: loopback4, ConnCount: math.MaxInt}},
			[]rcmgr.NetworkPrefixLimit{{Network: loopback6, ConnCount: math.MaxInt}}),
		rcmgr.WithConnRateLimiters(&rate.Limiter{
			NetworkPrefixLimits: []rate.PrefixLimit{{Prefix: loopback4}, {Prefix: loopback6}}, // Zero means no limit.
			SubnetRateLimiter: rate.SubnetLimiter{
				IPv4SubnetLimits: []rate.SubnetLimit{{PrefixLength: 32, Limit: again}},
				IPv6SubnetLimits: []rate.SubnetLimit{{PrefixLength: 56, Limit: again}},
				GracePeriod:      time.Minute,
			},
		}))
	if err != nil {
		return nil, fmt.Errorf("resource manager: %w", err)
	}
	return manager, nil
}

var (
	loopback4 = netip.MustParsePrefix("127.0.0.0/8")
	loopback6 = netip.MustParsePrefix("::1/128")
)

// relaySource offers connected members as relays.
func (n *Network) relaySource(_ context.Context, most int) <-chan peer.AddrInfo {
	infos := make(chan peer.AddrInfo, most)
	defer close(infos)
	for _, p := range n.members.list() {
		if len(infos) == most {
			break
		}
		infos <- n.host.Peerstore().PeerInfo(p)
	}
	return infos
}
