package p2p_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"flag"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	pubsubpb "github.com/libp2p/go-libp2p-pubsub/pb"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/lightswarm/lightswarm/p2p/gossip"
	"github.com/lightswarm/lightswarm/p2p/simnet"
	"github.com/lightswarm/lightswarm/virtualtime"
	"github.com/lightswarm/lightswarm/wire"
)

var (
	hostilePeers = flag.Int("hostile.peers", 12, "peers in TestHostileGossip; one in six is hostile, six at least")
	hostileSeed  = flag.Uint64("hostile.seed", 1, "seed of TestHostileGossip")
)

// TestHostileGossip runs one network twice, in virtual time: once with its hostile peers silent, once with them
// flooding every topic with records that are malformed, too large, unsigned, wrongly signed, of another network, of
// peers that may not sign them, replayed, and stale. Half of the peers are cut off for a while in both runs.
//
// Every announcement must reach the learner, also those made behind the partition; every release must reach everybody;
// and the two runs must end in the same state, to the byte. Only the refusal counters may differ.
func TestHostileGossip(t *testing.T) {
	var quiet, flooded hostileResult
	t.Run("runs", func(t *testing.T) { // Returns when both have ended.
		t.Run("quiet", func(t *testing.T) { t.Parallel(); quiet = hostileRun(t, false) })
		t.Run("flooded", func(t *testing.T) { t.Parallel(); flooded = hostileRun(t, true) })
	})
	if t.Failed() {
		return
	}

	for _, reason := range []gossip.Reason{
		gossip.Malformed, gossip.Oversized, gossip.BadSignature, gossip.OtherNetwork, gossip.NotALearner,
		gossip.Duplicate, gossip.Stale, gossip.UnknownVersion,
	} {
		if flooded.verdicts[reason] == 0 {
			t.Errorf("the flood had nothing refused as %s", reason)
		}
	}
	for reason, n := range quiet.verdicts {
		if reason.Rejects() && n > 0 {
			t.Errorf("without a flood %d records were rejected as %s", n, reason)
		}
	}
	if quiet.digest != flooded.digest {
		t.Errorf("the flood changed the state: digest %x became %x", quiet.digest, flooded.digest)
	}

	t.Logf("figure peers %d hostile %d seed %d", *hostilePeers, hostileCount(), *hostileSeed)
	for _, r := range []struct {
		name string
		hostileResult
	}{{"quiet", quiet}, {"flooded", flooded}} {
		t.Logf("figure %s announcements %d learner_has %d behind_partition %d records_sent_by_hostile %d lost_packets %d",
			r.name, r.announced, r.arrived, r.behind, r.floods, r.dropped)
		t.Logf("figure %s healed_after %s virtual_time %s", r.name, r.healed.Round(time.Second), r.virtual.Round(time.Second))
		for _, reason := range slices.Sorted(maps.Keys(r.verdicts)) {
			t.Logf("figure %s verdict %s %d", r.name, reason, r.verdicts[reason])
		}
	}
	t.Logf("figure digest %x", flooded.digest)
}

// hostileResult is the end of one run.
type hostileResult struct {
	digest             [32]byte // Over what the learner has and which releases everybody has.
	announced, arrived int
	behind             int // Announced behind the partition.
	floods             int // Records that hostile peers published.
	dropped            uint64
	healed             time.Duration // From the heal to the arrival of the last announcement.
	virtual            time.Duration
	verdicts           map[gossip.Reason]uint64 // Over all honest nodes, gossip and pulls.
}

func hostileCount() int { return max(6, *hostilePeers/6) }

func hostileRun(t *testing.T, flood bool) (result hostileResult) {
	virtualtime.Test(t, func(t *testing.T) {
		h := &hostileWorld{world: newWorld(t, *hostileSeed)}
		defer h.close()
		result = h.run(flood)
	})
	return result
}

// hostileWorld is a world with hostile peers in it. The last machines are theirs.
type hostileWorld struct {
	*world
	hostile   []*hostilePeer
	announced []wire.SignedAnnouncement
}

func (h *hostileWorld) close() {
	for _, p := range h.hostile {
		p.stop()
	}
	h.world.close()
}

func (h *hostileWorld) run(flood bool) (result hostileResult) {
	const chain, everySequence = 6, 3 // Versions released before the start; announcements of each peer in the first act.
	start := time.Now()
	honest := *hostilePeers - hostileCount()
	for range honest {
		h.add()
	}
	learner := h.nodes[0]
	for version := range uint64(chain) {
		learner.source.keepRelease(signRelease(h.t, learner.key, h.network, version))
	}
	for i := range hostileCount() {
		h.hostile = append(h.hostile, newHostilePeer(h.world, honest+i))
	}
	h.waitFor("everybody has peers and the newest release", 2*time.Minute, func() bool {
		return all(h.nodes, func(n *node) bool { return n.Stats().Members >= 3 && n.source.Head() == chain-1 })
	})
	if flood {
		for i, p := range h.hostile {
			p.flood(i, learner)
		}
	}

	// First act: everybody announces.
	for range everySequence {
		h.announce(h.nodes, chain-1)
		time.Sleep(time.Second)
	}
	h.waitFor("the learner has what everybody announced", time.Minute, h.learnerHasAll)

	// Second act: half of the peers are cut off, on both sides life goes on, and the cut heals.
	cutOff := h.nodes[(honest+1)/2:]
	side := make([]netip.Addr, 0, len(cutOff))
	for _, n := range cutOff {
		side = append(side, simnet.Addr(n.index))
	}
	for i, p := range h.hostile {
		if i%2 == 0 {
			side = append(side, p.addr)
		}
	}
	h.net.Partition(side)
	time.Sleep(5 * time.Second)
	learner.release()
	for range 3 {
		h.announce(cutOff, chain-1)
		result.behind += len(cutOff)
		time.Sleep(14 * time.Second) // In all, connections across the cut are given up.
	}
	if h.learnerHasAll() {
		h.t.Fatal("the partition did not separate anybody")
	}
	h.net.Heal()
	healed := time.Now()
	h.waitFor("the learner has what was announced behind the partition", 15*time.Minute, h.learnerHasAll)
	result.healed = time.Since(healed)
	h.waitFor("everybody has the release from behind the partition", 15*time.Minute, func() bool {
		return all(h.nodes, func(n *node) bool { return n.source.Head() == chain })
	})

	// Third act: everybody is together again, and what was said long ago is being replayed.
	for _, p := range h.hostile {
		p.replay(h.announced)
	}
	for range 2 {
		h.announce(h.nodes, chain)
		time.Sleep(5 * time.Second)
	}
	h.waitFor("the learner has what was announced last", time.Minute, h.learnerHasAll)
	for _, p := range h.hostile {
		p.quiet()
		result.floods += p.sent
	}

	result.digest, result.arrived = h.state()
	result.announced = len(h.announced)
	if result.arrived != result.announced {
		h.t.Errorf("the learner has %d announcements, %d were made", result.arrived, result.announced)
	}
	result.verdicts = make(map[gossip.Reason]uint64)
	for _, n := range h.nodes {
		s := n.Stats()
		for _, verdicts := range []map[string]map[gossip.Reason]uint64{s.Gossip.Verdicts, s.Pull.Verdicts} {
			for _, counts := range verdicts {
				for reason, count := range counts {
					result.verdicts[reason] += count
				}
			}
		}
	}
	result.dropped, result.virtual = h.net.Dropped(), time.Since(start)
	return result
}

// announce makes each node announce a bundle for a version.
func (h *hostileWorld) announce(nodes []*node, version uint64) {
	var publishing sync.WaitGroup
	made := make([]wire.SignedAnnouncement, len(nodes))
	for i, n := range nodes {
		publishing.Go(func() { made[i] = n.announceFor(version) })
	}
	publishing.Wait()
	h.announced = append(h.announced, made...)
}

func (h *hostileWorld) learnerHasAll() bool { return hasAll(h.nodes[0], h.announced) }

// state is a digest of all that the learner was given, and of the newest release of every honest node, and how many
// announcements the learner has.
func (h *hostileWorld) state() (digest [32]byte, announcements int) {
	sum := sha256.New()
	learner := h.nodes[0].source
	for _, author := range slices.Sorted(maps.Keys(learner.announcements)) {
		for _, a := range learner.announcements[author] {
			sum.Write(a.ID.Bytes())
			announcements++
		}
	}
	for _, n := range h.nodes {
		sum.Write(n.source.releases[len(n.source.releases)-1].ID.Bytes())
	}
	return [32]byte(sum.Sum(nil)), announcements
}

// hostilePeer speaks GossipSub without any rules. Those with an even index send what must be rejected, the others
// what must be ignored, which costs them no score.
type hostilePeer struct {
	world  *world
	addr   netip.Addr
	key    wire.Key
	host   host.Host
	topics map[gossip.Kind]*pubsub.Topic
	ctx    context.Context
	cancel context.CancelFunc

	flooding sync.WaitGroup
	sent     int // Records published; read after quiet.

	mu      sync.Mutex
	replays [][]byte // guarded by mu
}

func newHostilePeer(w *world, machine int) *hostilePeer {
	p := &hostilePeer{world: w, addr: simnet.Addr(machine), key: wire.NewKey(w.private(machine)), topics: make(map[gossip.Kind]*pubsub.Topic)}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	var err error
	if p.host, err = w.net.Host(w.private(machine), netip.AddrPortFrom(p.addr, 8000), 100, nil); err != nil {
		w.t.Fatal(err)
	}
	ps, err := pubsub.NewGossipSub(p.ctx, p.host,
		pubsub.WithMessageSignaturePolicy(pubsub.StrictNoSign), pubsub.WithNoAuthor(), pubsub.WithFloodPublish(true),
		pubsub.WithMessageIdFn(func(m *pubsubpb.Message) string { return m.GetTopic() + string(m.GetData()) }))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, kind := range []gossip.Kind{gossip.Release, gossip.Announcement, gossip.Presence} {
		if p.topics[kind], err = ps.Join(gossip.Topic(w.network, kind)); err != nil {
			w.t.Fatal(err)
		}
		sub, err := p.topics[kind].Subscribe()
		if err != nil {
			w.t.Fatal(err)
		}
		p.flooding.Go(func() { // A member of the mesh that passes honest records on, too.
			for {
				if _, err := sub.Next(p.ctx); err != nil {
					return
				}
			}
		})
	}
	for i := range 6 {
		to := w.nodes[(machine*7+i*5)%len(w.nodes)]
		if i == 0 {
			to = w.nodes[0]
		}
		if err := p.host.Connect(p.ctx, peer.AddrInfo{ID: to.Host().ID(), Addrs: to.Host().Addrs()}); err != nil {
			w.t.Fatal(err)
		}
	}
	return p
}

// flood publishes one record after the other until quiet.
func (p *hostilePeer) flood(index int, learner *node) {
	makers := p.rejected(learner)
	if index%2 == 1 {
		makers = p.ignored()
	}
	rng := rand.New(rand.NewPCG(p.world.seed, uint64(index)))
	p.flooding.Go(func() {
		for n := uint64(0); ; n++ {
			select {
			case <-time.After(600 * time.Millisecond):
			case <-p.ctx.Done():
				return
			}
			kind, raw := makers[(int(n)+index/2*3)%len(makers)](rng, n)
			if raw == nil {
				continue
			}
			if err := p.topics[kind].Publish(p.ctx, raw); err == nil {
				p.sent++
			}
		}
	})
}

type maker func(rng *rand.Rand, n uint64) (gossip.Kind, []byte)

func randomKind(rng *rand.Rand) gossip.Kind { return gossip.Kind(rng.IntN(3)) }

// rejected makes what honest peers never pass on.
func (p *hostilePeer) rejected(learner *node) []maker {
	t, network := p.world.t, p.world.network
	own := func(n uint64) []byte { return signAnnouncement(t, p.key, network, n, 5).Raw }
	return []maker{
		func(rng *rand.Rand, _ uint64) (gossip.Kind, []byte) { // Malformed.
			junk := make([]byte, 1+rng.IntN(500))
			for i := range junk {
				junk[i] = byte(rng.Uint32())
			}
			return randomKind(rng), junk
		},
		func(rng *rand.Rand, n uint64) (gossip.Kind, []byte) { // Too large for a record, not for a message.
			return randomKind(rng), append(own(n), make([]byte, wire.MaxGossipBytes)...)
		},
		func(rng *rand.Rand, n uint64) (gossip.Kind, []byte) { // Too large for a message: the stream ends.
			return randomKind(rng), append(own(n), make([]byte, 4*wire.MaxGossipBytes)...)
		},
		func(_ *rand.Rand, n uint64) (gossip.Kind, []byte) { // Unsigned.
			raw := own(n)
			return gossip.Announcement, raw[:len(raw)-66]
		},
		func(rng *rand.Rand, n uint64) (gossip.Kind, []byte) { // Wrongly signed.
			raw := own(n)
			raw[len(raw)-1-rng.IntN(60)] ^= 1 << rng.IntN(8)
			return gossip.Announcement, raw
		},
		func(_ *rand.Rand, n uint64) (gossip.Kind, []byte) { // In another's name.
			return gossip.Announcement, bytes.Replace(own(n), []byte(p.key.Peer()), []byte(learner.key.Peer()), 1)
		},
		func(_ *rand.Rand, n uint64) (gossip.Kind, []byte) { // For another network.
			return gossip.Announcement, signAnnouncement(t, p.key, wire.SumCID([]byte("another network")), n, 5).Raw
		},
		func(_ *rand.Rand, n uint64) (gossip.Kind, []byte) { // A release by somebody who is no learner.
			return gossip.Release, signRelease(t, p.key, network, 100+n).Raw
		},
		func(_ *rand.Rand, n uint64) (gossip.Kind, []byte) { // Of another kind than the topic.
			return gossip.Presence, own(n)
		},
	}
}

// ignored makes what is valid and of no use.
func (p *hostilePeer) ignored() []maker {
	t, network := p.world.t, p.world.network
	presence := func(n uint64, created time.Time) []byte {
		s, err := wire.SignPresence(p.key, wire.Presence{Network: network, NextSequence: n, Created: created})
		if err != nil {
			t.Fatal(err)
		}
		return s.Raw
	}
	return []maker{
		func(_ *rand.Rand, n uint64) (gossip.Kind, []byte) { // Overtaken by five versions.
			return gossip.Announcement, signAnnouncement(t, p.key, network, n, 0).Raw
		},
		func(_ *rand.Rand, n uint64) (gossip.Kind, []byte) { // For a version that does not exist.
			return gossip.Announcement, signAnnouncement(t, p.key, network, n, 1000+n).Raw
		},
		func(_ *rand.Rand, n uint64) (gossip.Kind, []byte) { // A sign of life of yesterday.
			return gossip.Presence, presence(n, time.Now().Add(-24*time.Hour))
		},
		func(_ *rand.Rand, n uint64) (gossip.Kind, []byte) { // A sign of life that promises too much.
			return gossip.Presence, presence(1<<60+n, time.Now())
		},
		func(rng *rand.Rand, _ uint64) (gossip.Kind, []byte) { // Said before by somebody else.
			p.mu.Lock()
			defer p.mu.Unlock()
			if len(p.replays) == 0 {
				return 0, nil
			}
			return gossip.Announcement, p.replays[rng.IntN(len(p.replays))]
		},
	}
}

// replay gives a hostile peer records to replay.
func (p *hostilePeer) replay(announced []wire.SignedAnnouncement) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range announced {
		p.replays = append(p.replays, a.Raw)
	}
}

// quiet ends the flood.
func (p *hostilePeer) quiet() {
	p.cancel()
	p.flooding.Wait()
}

func (p *hostilePeer) stop() {
	p.quiet()
	if err := p.host.Close(); err != nil {
		p.world.t.Error(err)
	}
}
