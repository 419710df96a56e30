package p2p_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/lightswarm/lightswarm/p2p"
	"github.com/lightswarm/lightswarm/p2p/block"
	"github.com/lightswarm/lightswarm/p2p/gossip"
	"github.com/lightswarm/lightswarm/p2p/simnet"
	"github.com/lightswarm/lightswarm/wire"
)

// world is a simulated network of nodes, inside a synctest bubble. Node 0 is the learner; it and node 1 are everybody's
// bootstraps.
type world struct {
	t       *testing.T
	seed    uint64
	net     *simnet.Net
	network wire.CID
	nodes   []*node

	resources map[int]network.ResourceManager // Of the nodes that have limits.
}

// node is one member with everything that it keeps in memory.
type node struct {
	*p2p.Network
	index   int
	key     wire.Key
	world   *world
	network wire.CID
	source  *source
	blocks  *block.MemoryStore

	cancel context.CancelFunc
	ended  sync.WaitGroup
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, seed: seed, net: simnet.New(10 * time.Millisecond), network: wire.SumCID(fmt.Appendf(nil, "network %d", seed))}
	w.net.Start()
	return w
}

// close stops every node, then the network.
func (w *world) close() {
	for _, n := range w.nodes {
		n.stop()
	}
	w.net.Close()
}

func (w *world) private(i int) ed25519.PrivateKey { return simnet.Key(w.seed, i) }

func (w *world) bootstrapAddr(i int) string {
	return fmt.Sprintf("/ip4/%s/udp/8000/quic-v1/p2p/%s", simnet.Addr(i), wire.NewKey(w.private(i)).Peer())
}

// add starts the next node. configure may change its configuration.
func (w *world) add(configure ...func(*p2p.Config)) *node {
	w.t.Helper()
	i := len(w.nodes)
	h, err := w.net.Host(w.private(i), netip.AddrPortFrom(simnet.Addr(i), 8000), 100, w.resources[i])
	if err != nil {
		w.t.Fatal(err)
	}
	n := &node{
		index: i, key: wire.NewKey(w.private(i)), world: w,
		source: newSource(), blocks: block.NewMemoryStore(64 << 20),
	}
	cfg := p2p.Config{
		Key: w.private(i), Network: w.network, Learners: []wire.PeerID{wire.NewKey(w.private(0)).Peer()}, MaxLag: 2,
		Blocks: n.blocks, Head: n.source, Collect: i == 0,
		OnRelease:      n.source.keepRelease,
		OnAnnouncement: n.source.keepAnnouncement,
		OnPresence:     n.source.keepPresence,
		Seed:           w.seed + uint64(i) + 1, Host: h,
		Tuning: p2p.Tuning{MinConnections: 4},
	}
	for b := range min(i, 2) {
		cfg.Bootstrap = append(cfg.Bootstrap, w.bootstrapAddr(b))
	}
	for _, c := range configure {
		c(&cfg)
	}
	if n.Network, err = p2p.New(w.t.Context(), cfg); err != nil {
		w.t.Fatal(err)
	}
	n.network = cfg.Network
	ctx, cancel := context.WithCancel(context.Background())
	n.cancel = cancel
	n.ended.Go(func() {
		if err := n.Run(ctx); err != nil {
			w.t.Errorf("node %d: %v", i, err)
		}
	})
	n.ended.Go(func() { n.presences(ctx) })
	w.nodes = append(w.nodes, n)
	return n
}

// stop ends the node; stopping again does nothing.
func (n *node) stop() {
	n.cancel()
	n.ended.Wait()
	if err := n.Close(); err != nil {
		n.world.t.Errorf("close node %d: %v", n.index, err)
	}
}

// connect makes one node dial another.
func (w *world) connect(from, to *node) {
	w.t.Helper()
	info := peer.AddrInfo{ID: to.Host().ID(), Addrs: to.Host().Addrs()}
	if err := from.Host().Connect(w.t.Context(), info); err != nil {
		w.t.Fatal(err)
	}
}

// presences publishes a sign of life every 30 seconds, the first after a second or so.
func (n *node) presences(ctx context.Context) {
	for pause := time.Second + time.Duration(n.index)*50*time.Millisecond; ; pause = 30 * time.Second {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		p, err := wire.SignPresence(n.key, wire.Presence{
			Network: n.network, Roles: wire.RoleRollout, HeadVersion: n.source.Head(),
			NextSequence: n.source.count(n.key.Peer()), Created: time.Now(), AgentVersion: "test",
		})
		if err != nil {
			n.world.t.Errorf("sign presence: %v", err)
			return
		}
		if err := n.PublishPresence(ctx, p.Raw); err != nil && !errors.Is(err, gossip.ErrNobody) && ctx.Err() == nil {
			n.world.t.Errorf("node %d: %v", n.index, err)
		}
	}
}

// release signs the next version, keeps it and gossips it.
func (n *node) release() wire.SignedRelease {
	n.world.t.Helper()
	r := signRelease(n.world.t, n.key, n.network, n.source.nextVersion())
	n.source.keepRelease(r)
	n.publish(n.PublishRelease, r.Raw)
	return r
}

// announce signs the node's next announcement for the version that it has, keeps it and gossips it.
func (n *node) announce() wire.SignedAnnouncement {
	n.world.t.Helper()
	return n.announceFor(n.source.Head())
}

func (n *node) announceFor(version uint64) wire.SignedAnnouncement {
	n.world.t.Helper()
	a := signAnnouncement(n.world.t, n.key, n.network, n.source.count(n.key.Peer()), version)
	n.source.keepAnnouncement(a)
	n.publish(n.PublishAnnouncement, a.Raw)
	return a
}

// publish tolerates that nobody listens, because pulls must make up for it.
func (n *node) publish(publish func(context.Context, []byte) error, raw []byte) {
	n.world.t.Helper()
	if err := publish(n.world.t.Context(), raw); err != nil && !errors.Is(err, gossip.ErrNobody) {
		n.world.t.Errorf("node %d: %v", n.index, err)
	}
}

// signedAt is the time in the n-th record of a peer: the same in every run, so that the records are too.
func signedAt(n uint64) time.Time { return time.UnixMilli(946_684_800_000 + int64(n)*1000) }

func signRelease(t testing.TB, key wire.Key, network wire.CID, version uint64) wire.SignedRelease {
	t.Helper()
	r := wire.Release{
		Network: network, Version: version, Created: signedAt(version), Evaluate: true,
		Policy: wire.PolicyRef{
			Digest: [32]byte{1, byte(version)}, StateDigest: [32]byte{2, byte(version)}, Anchor: wire.SumCID([]byte{byte(version)}),
		},
	}
	if version > 0 {
		r.Parent, r.ParentStateDigest = wire.SumCID([]byte{3}), [32]byte{2, byte(version - 1)}
	}
	s, err := wire.SignRelease(key, r)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func signAnnouncement(t testing.TB, key wire.Key, network wire.CID, sequence, version uint64) wire.SignedAnnouncement {
	t.Helper()
	s, err := wire.SignAnnouncement(key, wire.Announcement{
		Network: network, Sequence: sequence, Purpose: wire.PurposeTrain,
		Bundle: wire.SumCID(fmt.Appendf(nil, "bundle %s %d", key.Peer(), sequence)), BundleBytes: 100,
		PolicyVersion: version, PolicyDigest: [32]byte{1, byte(version)}, Environment: wire.SumCID([]byte("environment")),
		Counter: sequence, Rollouts: 4, CompletionTokens: 64, Created: signedAt(sequence),
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// waitFor waits in virtual time until a condition holds, and fails the test when it does not within limit.
func (w *world) waitFor(what string, limit time.Duration, condition func() bool) {
	w.t.Helper()
	for end := time.Now().Add(limit); !condition(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("after %s still not: %s", limit, what)
		}
	}
}

// source is a node's memory of records: what it signed and what it relays.
type source struct {
	mu            sync.Mutex
	releases      []wire.SignedRelease // Ascending.
	announcements map[wire.PeerID][]wire.SignedAnnouncement
	presences     map[wire.PeerID]wire.SignedPresence
	handed        int // Announcements handed over, for finding duplicates.
}

func newSource() *source {
	return &source{
		announcements: make(map[wire.PeerID][]wire.SignedAnnouncement), presences: make(map[wire.PeerID]wire.SignedPresence),
	}
}

func (s *source) keepRelease(r wire.SignedRelease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.releases = append(s.releases, r)
}

func (s *source) keepAnnouncement(a wire.SignedAnnouncement) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handed++
	list := append(s.announcements[a.Signer], a)
	slices.SortFunc(list, func(a, b wire.SignedAnnouncement) int { return int(a.Sequence) - int(b.Sequence) })
	s.announcements[a.Signer] = list
}

func (s *source) keepPresence(p wire.SignedPresence) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.presences[p.Signer] = p
}

func (s *source) Releases(from uint64, most int) ([][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out [][]byte
	for _, r := range s.releases {
		if r.Version >= from && len(out) < most {
			out = append(out, r.Raw)
		}
	}
	return out, nil
}

func (s *source) Announcements(peer wire.PeerID, from uint64, most int) ([][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out [][]byte
	for _, a := range s.announcements[peer] {
		if a.Sequence >= from && len(out) < most {
			out = append(out, a.Raw)
		}
	}
	return out, nil
}

func (s *source) Head() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.releases) == 0 {
		return 0
	}
	return s.releases[len(s.releases)-1].Version
}

func (s *source) nextVersion() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.releases) == 0 {
		return 0
	}
	return s.releases[len(s.releases)-1].Version + 1
}

// count is how many announcements of a peer are here.
func (s *source) count(peer wire.PeerID) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return uint64(len(s.announcements[peer]))
}

// has reports whether an announcement is here.
func (s *source) has(a wire.SignedAnnouncement) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.announcements[a.Signer], func(b wire.SignedAnnouncement) bool { return a.ID == b.ID })
}
