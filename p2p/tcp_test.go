package p2p_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lightswarm/lightswarm/p2p"
	"github.com/lightswarm/lightswarm/p2p/block"
	"github.com/lightswarm/lightswarm/p2p/simnet"
	"github.com/lightswarm/lightswarm/wire"
)

// tcpConfig is a node on loopback; node 0 is the learner.
func tcpConfig(t *testing.T, i int) p2p.Config {
	t.Helper()
	source := newSource()
	return p2p.Config{
		Key: simnet.Key(9, i), Network: wire.SumCID([]byte("loopback")),
		Learners: []wire.PeerID{wire.NewKey(simnet.Key(9, 0)).Peer()}, MaxLag: 2, Collect: i == 0,
		Listen: []string{"/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/udp/0/quic-v1"},
		Blocks: block.NewMemoryStore(16 << 20), Head: source,
		OnRelease: source.keepRelease, OnAnnouncement: source.keepAnnouncement,
		AgentVersion: "lightswarm/test",
	}
}

// TestOverRealSockets has two nodes meet over TCP on loopback, pull and gossip records both ways and fetch a block, and
// leaves no goroutine behind.
func TestOverRealSockets(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) }) // After the nodes' own.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	learnerCfg, memberCfg := tcpConfig(t, 0), tcpConfig(t, 1)
	learnerKey, memberKey := wire.NewKey(learnerCfg.Key), wire.NewKey(memberCfg.Key)
	announced := make(chan wire.SignedAnnouncement, 4)
	released := make(chan wire.SignedRelease, 4)
	learnerCfg.OnAnnouncement = func(a wire.SignedAnnouncement) { announced <- a }
	keep := memberCfg.Head.(*source)
	memberCfg.OnRelease = func(r wire.SignedRelease) { keep.keepRelease(r); released <- r }
	first := signRelease(t, learnerKey, learnerCfg.Network, 0)
	learnerCfg.Head.(*source).keepRelease(first)

	learner := startTCP(ctx, t, learnerCfg)
	memberCfg.Bootstrap = learner.Addrs()
	member := startTCP(ctx, t, memberCfg)

	if got := receive(ctx, t, released); got.ID != first.ID {
		t.Errorf("the member was given release %s, want %s", got.ID, first.ID)
	}
	a := signAnnouncement(t, memberKey, memberCfg.Network, 0, 0)
	keep.keepAnnouncement(a)
	if err := member.PublishAnnouncement(ctx, a.Raw); err != nil {
		t.Error(err)
	}
	if got := receive(ctx, t, announced); got.ID != a.ID {
		t.Errorf("the learner was given %s, want %s", got.ID, a.ID)
	}
	second := signRelease(t, learnerKey, learnerCfg.Network, 1)
	if err := learner.PublishRelease(ctx, second.Raw); err != nil {
		t.Error(err)
	}
	if got := receive(ctx, t, released); got.ID != second.ID {
		t.Errorf("the member was given release %s, want %s", got.ID, second.ID)
	}

	data := bytes.Repeat([]byte("block"), 100_000)
	if err := memberCfg.Blocks.Put(wire.SumCID(data), data); err != nil {
		t.Fatal(err)
	}
	got, err := learner.Fetch(ctx, wire.SumCID(data), []wire.PeerID{memberKey.Peer()}, 0)
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("fetch: %v", err)
	}
	peers := learner.Peers()
	if len(peers) != 1 || peers[0].Peer != memberKey.Peer() || !peers[0].Member || !peers[0].Inbound {
		t.Errorf("the learner's peers: %+v", peers)
	}
}

// startTCP starts a node that ends with the test.
func startTCP(ctx context.Context, t *testing.T, cfg p2p.Config) *p2p.Network {
	t.Helper()
	n, err := p2p.New(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return n
}

func receive[T any](ctx context.Context, t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-ctx.Done():
		t.Fatal("nothing arrived within a minute")
		panic("unreachable")
	}
}
