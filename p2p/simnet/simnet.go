// Package simnet runs libp2p hosts on a simulated network, for tests.
//
// Inside testing/synctest the hosts live in virtual time: minutes pass in seconds, timeouts and latencies are exact,
// and nothing depends on how busy the machine is. Hosts speak QUIC over simulated links with a rate and a delay.
// Partition cuts the network in two and Heal joins it again.
package simnet

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	quic "github.com/libp2p/go-libp2p/p2p/transport/quic"
	"github.com/libp2p/go-libp2p/p2p/transport/quicreuse"
	"github.com/marcopolo/simnet"
	quicgo "github.com/quic-go/quic-go"
	"go.uber.org/fx"
)

// Net is a simulated network. Its methods are safe for concurrent use, except that Host and Start are called by one
// goroutine.
type Net struct {
	sim *simnet.Simnet

	mu  sync.RWMutex
	cut map[netip.Addr]bool // One side of the partition; guarded by mu.

	// dropped counts packets that a partition swallowed.
	dropped atomic.Uint64
}

// New returns a network in which every packet takes latency from one host to the other.
func New(latency time.Duration) *Net {
	return &Net{sim: &simnet.Simnet{
		LatencyFunc: simnet.StaticLatency(latency),
		Logger:      slog.New(slog.DiscardHandler), // It reports packets to hosts that have left.
	}}
}

// Key returns the n-th key of a seed: the same in every run.
func Key(seed uint64, n int) ed25519.PrivateKey {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], seed)
	binary.BigEndian.PutUint64(b[8:], uint64(n))
	h := sha256.Sum256(b[:])
	return ed25519.NewKeyFromSeed(h[:])
}

// Addr returns the public IPv4 address of the n-th machine.
func Addr(n int) netip.Addr {
	a, _ := netip.AddrFromSlice(simnet.IntToPublicIPv4(n).To4())
	return a
}

// Host returns a host that listens on an address and whose link carries mbit megabits per second each way. Several
// hosts may share an IP address on different ports. A nil resource manager sets no limits.
func (n *Net) Host(key ed25519.PrivateKey, at netip.AddrPort, mbit float64, resources network.ResourceManager) (host.Host, error) {
	identity, err := crypto.UnmarshalEd25519PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("simulated host's key: %w", err)
	}
	if resources == nil {
		resources = &network.NullResourceManager{}
	}
	rate := simnet.LinkSettings{BitsPerSecond: int(mbit * 1_000_000)}
	link := simnet.NodeBiDiLinkSettings{Downlink: rate, Uplink: rate}
	h, err := libp2p.New(
		libp2p.Identity(identity),
		libp2p.ListenAddrStrings(fmt.Sprintf("/ip4/%s/udp/%d/quic-v1", at.Addr(), at.Port())),
		libp2p.Transport(quic.NewTransport),
		n.quicReuse(at, link),
		libp2p.ResourceManager(resources),
		libp2p.DisableIdentifyAddressDiscovery(), // It stalls virtual time.
		libp2p.UDPBlackHoleSuccessCounter(nil),   // A long partition would end all dialling.
		libp2p.DisableRelay(),
		libp2p.DisableMetrics(),
	)
	if err != nil {
		return nil, fmt.Errorf("simulated host at %s: %w", at, err)
	}
	return h, nil
}

// quicReuse makes the QUIC transport use the simulated network instead of sockets.
func (n *Net) quicReuse(at netip.AddrPort, link simnet.NodeBiDiLinkSettings) libp2p.Option {
	constructor := func(lc fx.Lifecycle, reset quicgo.StatelessResetKey, token quicgo.TokenGeneratorKey, opts ...quicreuse.Option) (*quicreuse.ConnManager, error) {
		m, err := quicreuse.NewConnManager(reset, token, opts...)
		if err != nil {
			return nil, err
		}
		lc.Append(fx.StopHook(m.Close)) // A manager that was passed in is not closed by its host.
		return m, nil
	}
	return libp2p.QUICReuse(constructor,
		quicreuse.OverrideSourceIPSelector(func() (quicreuse.SourceIPSelector, error) {
			return sourceIP(at.Addr().AsSlice()), nil
		}),
		quicreuse.OverrideListenUDP(func(_ string, addr *net.UDPAddr) (net.PacketConn, error) {
			from := addr.AddrPort().Addr().Unmap()
			return &conn{SimConn: n.sim.NewEndpoint(addr, link), net: n, from: from}, nil
		}))
}

// sourceIP is the one address that a host sends from.
type sourceIP net.IP

// PreferredSourceIPForDestination implements quicreuse.SourceIPSelector.
func (s sourceIP) PreferredSourceIPForDestination(*net.UDPAddr) (net.IP, error) {
	return net.IP(s), nil
}

// Start lets packets flow. Hosts may be added before and after.
func (n *Net) Start() { n.sim.Start() }

// Close stops the network. Close the hosts first.
func (n *Net) Close() { n.sim.Close() }

// Partition separates the given addresses from all others until Heal: packets between the two sides are lost.
func (n *Net) Partition(side []netip.Addr) {
	cut := make(map[netip.Addr]bool, len(side))
	for _, a := range side {
		cut[a] = true
	}
	n.mu.Lock()
	n.cut = cut
	n.mu.Unlock()
}

// Heal ends the partition.
func (n *Net) Heal() { n.Partition(nil) }

// Dropped is how many packets partitions have swallowed.
func (n *Net) Dropped() uint64 { return n.dropped.Load() }

// separated reports whether the partition lies between two addresses.
func (n *Net) separated(a, b netip.Addr) bool {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.cut[a] != n.cut[b]
}

// conn is a simulated socket that loses what a partition stops.
type conn struct {
	*simnet.SimConn
	net  *Net
	from netip.Addr
}

// WriteTo implements net.PacketConn.
func (c *conn) WriteTo(b []byte, to net.Addr) (int, error) {
	if u, ok := to.(*net.UDPAddr); ok && c.net.separated(c.from, u.AddrPort().Addr().Unmap()) {
		c.net.dropped.Add(1)
		return len(b), nil
	}
	return c.SimConn.WriteTo(b, to)
}
