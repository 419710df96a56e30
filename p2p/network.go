package p2p

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"

	"github.com/lightswarm/lightswarm/p2p/block"
	"github.com/lightswarm/lightswarm/p2p/discovery"
	"github.com/lightswarm/lightswarm/p2p/gossip"
	"github.com/lightswarm/lightswarm/p2p/head"
	"github.com/lightswarm/lightswarm/p2p/packages"
	"github.com/lightswarm/lightswarm/p2p/stream"
	"github.com/lightswarm/lightswarm/wire"
)

// ErrStarted is returned by a second Run.
var ErrStarted = errors.New("the network runs already, or was closed")

// Network is a node's part in one network. Its methods are safe for concurrent use.
type Network struct {
	cfg  Config
	host host.Host
	log  *slog.Logger

	members *members
	intake  *intake
	dialer  *discovery.Dialer
	peers   *discovery.Exchange
	sources []discovery.Source
	table   *discovery.Kademlia // nil without Config.DHT
	heads   *stream.Server
	kept    *stream.Server // Answers which packages are kept; nil without Config.Packages.
	blocks  *block.Exchange
	gossip  *gossip.Gossip
	puller  *puller
	events  event.Subscription

	ctx    context.Context // Ends with Close.
	cancel context.CancelFunc

	mu      sync.Mutex
	started bool           // guarded by mu
	closed  bool           // guarded by mu
	running sync.WaitGroup // watch, the Run and each FindPackages under way; Add only in New, or under mu while not closed.

	closing  sync.Once
	closeErr error // Set by closing.
}

// New makes a node reachable: it listens, serves blocks and heads, and takes part in gossip with whoever connects. It
// finds and dials nobody before Run. The context bounds New, not the Network. Close the Network even if Run is never
// called.
func New(ctx context.Context, cfg Config) (*Network, error) {
	cfg.Tuning = cfg.Tuning.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("p2p: %w", err)
	}
	bootstraps, err := discovery.ParseAddrs(cfg.Bootstrap)
	if err != nil {
		return nil, fmt.Errorf("p2p: bootstrap %w", err)
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	for cfg.Seed == 0 {
		cfg.Seed = rand.Uint64()
	}
	n := &Network{cfg: cfg, log: cfg.Log, members: newMembers(cfg.Score)}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	err = n.assemble(bootstraps)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("p2p: %w", errors.Join(err, n.Close()))
	}
	return n, nil
}

// assemble builds the parts: handlers first, then listening.
func (n *Network) assemble(bootstraps []peer.AddrInfo) error {
	cfg := &n.cfg
	var err error
	if n.host = cfg.Host; n.host == nil {
		if n.host, err = newHost(cfg, n.relaySource); err != nil {
			return err
		}
	}
	self := wire.NewPeerID(cfg.Key.Public().(ed25519.PublicKey))
	if wire.PeerID(n.host.ID()) != self {
		return fmt.Errorf("the host is %s and the identity key is of %s", n.host.ID(), self)
	}
	if n.events, err = n.host.EventBus().Subscribe([]any{
		new(event.EvtPeerIdentificationCompleted), new(event.EvtPeerConnectednessChanged),
	}, eventbus.BufSize(256)); err != nil {
		return fmt.Errorf("watch connections: %w", err)
	}

	memory := gossip.NewMemory(gossip.MemoryOptions{
		Collect: cfg.Collect, Cursor: cfg.Cursor,
		AnnouncementRate: cfg.Tuning.AnnouncementRate, AnnouncementBurst: cfg.Tuning.AnnouncementBurst,
	})
	rules := &gossip.Rules{Network: cfg.Network, Self: self, Learners: make(map[wire.PeerID]bool), MaxLag: cfg.MaxLag}
	for _, p := range cfg.Learners {
		rules.Learners[p] = true
	}
	v := view{source: cfg.Head, memory: memory}
	n.intake = &intake{
		view: v, memory: memory, seen: n.members.heard,
		onRelease: cfg.OnRelease, onAnnouncement: cfg.OnAnnouncement, onPresence: cfg.OnPresence,
		onRefused: cfg.OnRefused,
	}
	n.heads = head.Serve(n.host, cfg.Network, cfg.Head)
	if cfg.Packages != nil {
		n.kept = packages.Serve(n.host, cfg.Network, cfg.Packages)
	}
	n.blocks = block.New(n.host, cfg.Blocks, block.Options{
		Members: n.members.trusted, Misbehaved: n.misbehaved, Log: n.log,
	})
	n.gossip, err = gossip.Join(gossip.Config{
		Host: n.host, Rules: rules, View: v, Memory: memory,
		Score: n.members.applicationScore, PublishWait: cfg.Tuning.PublishWait,
		OnRelease:      n.intake.release,
		OnAnnouncement: func(a wire.SignedAnnouncement) { n.intake.announcement(a) },
		OnPresence:     n.intake.presence,
		OnRefused:      n.intake.refused,
	})
	if err != nil {
		return err
	}

	keep := keptPeers(cfg.Learners, bootstraps)
	for _, p := range keep {
		n.host.ConnManager().Protect(p, "lightswarm")
	}
	n.dialer = discovery.NewDialer(n.host, keep, n.members.count, cfg.Tuning.MinConnections, n.random(1), n.log)
	n.peers = discovery.NewExchange(n.host, cfg.Network, n.members.record, n.members.count, cfg.Tuning.MinConnections, n.random(2))
	n.sources = n.discoverySources(bootstraps)
	n.puller = &puller{
		host: n.host, rules: rules, view: v, memory: memory, intake: n.intake, members: n.members,
		keep: keep, collect: cfg.Collect, tuning: cfg.Tuning, rng: n.random(3), log: n.log,
		refuse: n.dialer.Refuse, misbehaved: n.misbehaved, nextSequence: cfg.NextSequence, onTwin: cfg.OnTwin,
		arrived: make(chan peer.ID, arrivalQueue), active: make(map[peer.ID]bool),
	}
	n.running.Go(n.watch)
	return listen(n.host, cfg.Listen)
}

// discoverySources lists the ways to find peers that the configuration asks for.
func (n *Network) discoverySources(bootstraps []peer.AddrInfo) []discovery.Source {
	sources := []discovery.Source{discovery.Bootstrap(bootstraps), n.peers}
	if n.cfg.PeerCache != nil {
		sources = append(sources, &discovery.Cached{Host: n.host, Cache: n.cfg.PeerCache, Member: n.members.has})
	}
	if n.cfg.MDNS {
		sources = append(sources, &discovery.MDNS{Host: n.host, Network: n.cfg.Network})
	}
	if n.cfg.DHT {
		n.table = discovery.NewKademlia(n.host, n.cfg.Network, n.provided)
		sources = append(sources, n.table)
	}
	return sources
}

// random returns a generator for one part of the node.
func (n *Network) random(part uint64) *rand.Rand { return rand.New(rand.NewPCG(n.cfg.Seed, part)) }

// keptPeers are those that a node never gives up on: learners and bootstraps.
func keptPeers(learners []wire.PeerID, bootstraps []peer.AddrInfo) []peer.ID {
	var keep []peer.ID
	for _, p := range learners {
		keep = append(keep, peer.ID(p))
	}
	for _, info := range bootstraps {
		keep = append(keep, info.ID)
	}
	return keep
}

// Run finds members, keeps connections to them and pulls what gossip lost, until ctx ends or Close. It returns nil
// after all of that has ended. It can run once.
func (n *Network) Run(ctx context.Context) error {
	n.mu.Lock()
	if n.started || n.closed {
		n.mu.Unlock()
		return ErrStarted
	}
	n.started = true
	n.running.Add(1)
	n.mu.Unlock()
	defer n.running.Done()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(n.ctx, cancel)
	defer stop()
	var parts sync.WaitGroup
	parts.Go(func() { n.dialer.Run(ctx) })
	parts.Go(func() { discovery.Run(ctx, n.sources, n.dialer.Found, n.log) })
	parts.Go(func() { n.puller.run(ctx) })
	parts.Wait()
	return nil
}

// watch follows who connects and who leaves, until Close.
func (n *Network) watch() {
	for {
		select {
		case e := <-n.events.Out():
			switch e := e.(type) {
			case event.EvtPeerIdentificationCompleted:
				n.identified(e)
			case event.EvtPeerConnectednessChanged:
				if e.Connectedness == network.NotConnected {
					n.members.remove(e.Peer)
				}
			}
		case <-n.ctx.Done():
			return
		}
	}
}

// identified keeps a peer's addresses for others and asks it what is new, if it may be a member.
func (n *Network) identified(e event.EvtPeerIdentificationCompleted) {
	if !slices.Contains(e.Protocols, head.Protocol) {
		return
	}
	if e.SignedPeerRecord != nil && n.host.Network().Connectedness(e.Peer) != network.NotConnected {
		if encoded, err := e.SignedPeerRecord.Marshal(); err == nil { // It came off the wire, so it encodes.
			n.members.keepRecord(e.Peer, encoded)
		}
	}
	n.puller.arrive(e.Peer)
}

// misbehaved counts a proof of misbehaviour against a peer, which lowers its score.
func (n *Network) misbehaved(p peer.ID, reason error) {
	n.members.misbehaved(p)
	n.log.Warn("a peer misbehaved", "peer", p, "reason", reason)
}

// Fetch returns the block of at most limit bytes (0 means wire.MaxBlockBytes): from the local store, or from the hinted
// peers in their order, or from other members, until ctx ends. See block.Exchange.Fetch for its errors.
func (n *Network) Fetch(ctx context.Context, cid wire.CID, hints []wire.PeerID, limit int) ([]byte, error) {
	return n.blocks.Fetch(ctx, cid, hints, limit)
}

// PublishRelease gossips a release that this node signed. Like the other publishing methods it waits up to
// Tuning.PublishWait for a listener, and an error that wraps gossip.ErrNobody means that the record is only to be
// pulled from here, which peers do when they connect. Store it where Head finds it before publishing.
func (n *Network) PublishRelease(ctx context.Context, signed []byte) error {
	return n.gossip.Publish(ctx, gossip.Release, signed)
}

// PublishAnnouncement gossips an announcement that this node signed.
func (n *Network) PublishAnnouncement(ctx context.Context, signed []byte) error {
	return n.gossip.Publish(ctx, gossip.Announcement, signed)
}

// PublishPresence gossips a sign of life that this node signed.
func (n *Network) PublishPresence(ctx context.Context, signed []byte) error {
	return n.gossip.Publish(ctx, gossip.Presence, signed)
}

// Host is the libp2p host, for diagnosis.
func (n *Network) Host() host.Host { return n.host }

// Close ends Run, everything that New started, and the host. It returns after all of it has ended; closing again
// returns the same.
func (n *Network) Close() error {
	n.closing.Do(func() { n.closeErr = n.close() })
	return n.closeErr
}

func (n *Network) close() error {
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	n.cancel()
	n.running.Wait()

	// After an error in New some parts are missing.
	if n.gossip != nil {
		n.gossip.Close()
	}
	if n.peers != nil {
		n.peers.Close()
	}
	if n.blocks != nil {
		n.blocks.Close()
	}
	if n.heads != nil {
		n.heads.Close()
	}
	if n.kept != nil {
		n.kept.Close()
	}
	var errs []error
	if n.events != nil {
		errs = append(errs, n.events.Close())
	}
	if n.host != nil {
		errs = append(errs, n.host.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close the network: %w", err)
	}
	return nil
}
