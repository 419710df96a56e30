package p2p

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/libp2p/go-libp2p/core/host"

	"github.com/lightswarm/lightswarm/p2p/block"
	"github.com/lightswarm/lightswarm/p2p/discovery"
	"github.com/lightswarm/lightswarm/p2p/gossip"
	"github.com/lightswarm/lightswarm/p2p/head"
	"github.com/lightswarm/lightswarm/p2p/packages"
	"github.com/lightswarm/lightswarm/wire"
)

// Config says how one node takes part in one network. Fields without "optional" are required.
type Config struct {
	// Key is the node's identity; its peer id follows from it.
	Key ed25519.PrivateKey
	// Network is the CID of the network's charter.
	Network wire.CID
	// Learners are the peers that the charter lets sign releases.
	Learners []wire.PeerID
	// MaxLag is the charter's max_lag: a training announcement for a version more than this below the node's head is
	// stale, neither relayed nor handed on.
	MaxLag uint32

	// Listen are multiaddrs to listen on, such as "/ip4/0.0.0.0/tcp/4001". Optional: none means dialling out only.
	Listen []string
	// Bootstrap are multiaddrs with /p2p/<peer id> of members to dial, and to dial again for as long as the node
	// runs. Optional: a node without any waits to be dialled or found.
	Bootstrap []string
	// MDNS finds members on the local network.
	MDNS bool
	// DHT finds members through a Kademlia table that only this network's members form.
	DHT bool
	// NATPortMap asks the router for an inbound port (UPnP, NAT-PMP).
	NATPortMap bool
	// Relay lets a node behind NAT be reached through members that relay, and makes a node that others can reach relay
	// for them: a little control traffic. Nothing depends on it.
	Relay bool
	// PeerCache keeps members' addresses across restarts. Optional.
	PeerCache discovery.Cache

	// Blocks holds what this node serves; fetched blocks are put there once verified.
	Blocks block.Store
	// Head answers what this node knows: its releases, its own announcements and those it keeps for others.
	Head head.Source
	// Packages are the environment packages that this node keeps for others, whose blocks are in Blocks. Optional.
	Packages packages.Source
	// Collect makes the node pull every announcement that gossip lost: a learner does, others need not.
	Collect bool
	// Cursor returns the first sequence of a peer's announcements that the node has not yet taken over durably, so
	// that a restarted collector continues there. It is called once per peer and run, and must not block. Optional:
	// nil means 0 for every peer.
	Cursor func(wire.PeerID) uint64

	// OnRelease, OnAnnouncement and OnPresence receive what passed every check, from gossip and from pulls alike, each
	// record once and one call at a time. They must not block: what takes long belongs in a queue of the node's own.
	// Announcements of one peer may come out of sequence. The node's own messages are not handed back. Optional.
	OnRelease      func(wire.SignedRelease)
	OnAnnouncement func(wire.SignedAnnouncement)
	OnPresence     func(wire.SignedPresence)
	// OnRefused receives releases that a learner signed and that cannot be followed: gossip.Forked, because Head has
	// another one of the same version, or gossip.NewerFormat, of which Signer alone is set. It is called like the others,
	// but may get a release more than once. Optional.
	OnRefused func(wire.SignedRelease, gossip.Reason)

	// NextSequence is the sequence of the node's next announcement. OnTwin receives an announcement that the node signed
	// and that is not below it: the node runs on an old copy of its state, or a copy of it runs elsewhere. Members are
	// asked for such with every pull. Both are optional.
	NextSequence func() uint64
	OnTwin       func(wire.SignedAnnouncement)

	// Score is a peer's standing in the node's eyes, from -100 (cheats) to 100 (verified work), and 0 for unknown; it
	// is the application's part of the gossip score. Called often and concurrently. Optional.
	Score func(wire.PeerID) float64

	// AgentVersion names the program in the identify exchange, such as "lightswarm/0.1.0". Optional.
	AgentVersion string
	// Log receives what an operator may want to know. Optional: nil discards.
	Log *slog.Logger
	// Seed makes choices such as which peer to ask next repeatable. Optional: 0 takes a random seed.
	Seed uint64
	// Host is used in place of one built from Key, Listen and the transport fields, and is closed with the Network.
	// Its identity must be Key's. For simulation. Optional.
	Host host.Host
	// Tuning are the intervals and bounds; the zero value of a field takes DefaultTuning's.
	Tuning Tuning
}

// Tuning are the intervals and bounds of a Network that an operator or a test may want different.
type Tuning struct {
	// SyncInterval is the mean time between two rounds of pulling from learners, bootstraps and a few other members.
	// Each wait is drawn from 75% to 125% of it.
	SyncInterval time.Duration
	// GapInterval is how often a collector looks for announcements that it knows it missed.
	GapInterval time.Duration
	// PublishWait is how long a publish waits for somebody to send to.
	PublishWait time.Duration
	// AnnouncementRate and AnnouncementBurst bound how many announcements per second of one peer are relayed. What
	// exceeds them is left to be pulled.
	AnnouncementRate  float64
	AnnouncementBurst int
	// PeersPerAddress is how many peers may connect from one IP address.
	PeersPerAddress int
	// ConnectionsLow and ConnectionsHigh are the connection manager's water marks: beyond high it closes connections
	// down to low, never those to learners and bootstraps.
	ConnectionsLow, ConnectionsHigh int
	// MinConnections is to how many members a node tries to stay connected by dialling peers that it found.
	MinConnections int
}

// DefaultTuning returns the values for a node on the internet.
func DefaultTuning() Tuning {
	return Tuning{
		SyncInterval:      30 * time.Second,
		GapInterval:       5 * time.Second,
		PublishWait:       5 * time.Second,
		AnnouncementRate:  50,
		AnnouncementBurst: 500,
		PeersPerAddress:   128,
		ConnectionsLow:    160,
		ConnectionsHigh:   256,
		MinConnections:    16,
	}
}

// withDefaults fills zero fields from DefaultTuning.
func (t Tuning) withDefaults() Tuning {
	d := DefaultTuning()
	fill(&t.SyncInterval, d.SyncInterval)
	fill(&t.GapInterval, d.GapInterval)
	fill(&t.PublishWait, d.PublishWait)
	fill(&t.AnnouncementRate, d.AnnouncementRate)
	fill(&t.AnnouncementBurst, d.AnnouncementBurst)
	fill(&t.PeersPerAddress, d.PeersPerAddress)
	fill(&t.ConnectionsLow, d.ConnectionsLow)
	fill(&t.ConnectionsHigh, d.ConnectionsHigh)
	fill(&t.MinConnections, d.MinConnections)
	return t
}

// fill sets a zero value to its default.
func fill[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

// validate checks what New relies on.
func (c *Config) validate() error {
	switch {
	case len(c.Key) != ed25519.PrivateKeySize:
		return fmt.Errorf("the identity key has %d bytes, an ed25519 private key has %d", len(c.Key), ed25519.PrivateKeySize)
	case !c.Network.Defined():
		return errors.New("the network id is missing")
	case len(c.Learners) == 0:
		return errors.New("the charter's learners are missing")
	case c.Blocks == nil:
		return errors.New("the block store is missing")
	case c.Head == nil:
		return errors.New("the head source is missing")
	case c.Tuning.ConnectionsLow > c.Tuning.ConnectionsHigh:
		return fmt.Errorf("the low connection mark %d is above the high one %d", c.Tuning.ConnectionsLow, c.Tuning.ConnectionsHigh)
	}
	return nil
}
