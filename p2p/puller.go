package p2p

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/lightswarm/lightswarm/p2p/gossip"
	"github.com/lightswarm/lightswarm/p2p/head"
	"github.com/lightswarm/lightswarm/wire"
)

// pullTimeout is how long one pull may take. What it brought until then is kept, and the next one goes on from there.
const pullTimeout = 2 * time.Minute

const (
	arrivalQueue   = 1024 // Peers that connected and were not asked yet; those beyond wait for the next round.
	arrivalsAtOnce = 32   // Pulls at the same time from peers that arrived,
	roundsAtOnce   = 16   // and from others. Silent strangers can fill these; learners and bootstraps need none.
	roundMembers   = 2    // Members asked in a round besides learners and bootstraps,
	roundCollector = 8    // and by a collector.
	gapsAtOnce     = 256  // Gaps looked at in one go.
	gapOthers      = 2    // Members asked for a gap besides its author.
	knownAuthors   = 256  // Authors about whom a collector asks everybody, in case that it missed their last words.
)

// puller asks peers for what gossip may have lost: each peer when it connects, some every SyncInterval, and, for a
// collector, whoever may fill a known gap. Its run owns the goroutines that ask.
type puller struct {
	host    host.Host
	rules   *gossip.Rules
	view    view
	memory  *gossip.Memory
	intake  *intake
	members *members
	keep    []peer.ID // Learners and bootstraps.
	collect bool
	tuning  Tuning
	rng     *rand.Rand // Used by rounds alone.
	log     *slog.Logger

	refuse     func(peer.ID)        // Drops a peer of another network.
	misbehaved func(peer.ID, error) // Counts against a peer that sent a record that nobody should send.

	nextSequence func() uint64                 // Of the node's own announcements; nil if nobody cares.
	onTwin       func(wire.SignedAnnouncement) // Told of those that it did not make.

	counters pullCounters
	arrived  chan peer.ID

	mu     sync.Mutex
	active map[peer.ID]bool // Peers being asked; guarded by mu.
}

// arrive asks for a pull from a peer that has just connected. It does not block.
func (p *puller) arrive(from peer.ID) {
	select {
	case p.arrived <- from:
	default:
		p.counters.skipped.Add(1)
	}
}

// run pulls until ctx ends and waits for the pulls under way.
func (p *puller) run(ctx context.Context) {
	var lanes sync.WaitGroup
	defer lanes.Wait()
	lanes.Go(func() { p.arrivals(ctx, newLane(ctx, arrivalsAtOnce)) })
	lanes.Go(func() { p.rounds(ctx, newLane(ctx, roundsAtOnce)) })
}

// arrivals pulls from peers as they connect.
func (p *puller) arrivals(ctx context.Context, lane *lane) {
	defer lane.wait()
	for {
		select {
		case from := <-p.arrived:
			p.start(ctx, lane, from, p.authors())
		case <-ctx.Done():
			return
		}
	}
}

// rounds pulls from some peers now and then, and from those that may fill a gap.
func (p *puller) rounds(ctx context.Context, lane *lane) {
	defer lane.wait()
	round := time.NewTimer(p.pause())
	defer round.Stop()
	gaps := time.NewTicker(p.tuning.GapInterval)
	defer gaps.Stop()
	for {
		select {
		case <-round.C:
			for _, from := range p.roundPeers() {
				p.start(ctx, lane, from, p.authors())
			}
			round.Reset(p.pause())
		case <-gaps.C:
			if p.collect {
				for from, cursors := range p.assign(p.memory.Gaps(time.Now(), gapsAtOnce)) {
					p.start(ctx, lane, from, cursors)
				}
			}
		case <-ctx.Done():
			return
		}
	}
}

// start pulls from a peer in the background, once the lane has room.
func (p *puller) start(ctx context.Context, lane *lane, from peer.ID, cursors []wire.Cursor) {
	lane.do(slices.Contains(p.keep, from), func() { p.pull(ctx, from, cursors) })
}

// lane runs a bounded number of things at the same time. It is used by one goroutine.
type lane struct {
	ctx     context.Context
	slots   chan struct{}
	running sync.WaitGroup
}

func newLane(ctx context.Context, atOnce int) *lane {
	return &lane{ctx: ctx, slots: make(chan struct{}, atOnce)}
}

// do waits for a free slot, unless the matter is urgent, and runs f in the background. It does nothing once ctx ended.
func (l *lane) do(urgent bool, f func()) {
	if urgent {
		l.running.Go(f)
		return
	}
	select {
	case l.slots <- struct{}{}:
		l.running.Go(func() {
			defer func() { <-l.slots }()
			f()
		})
	case <-l.ctx.Done():
	}
}

// wait returns when all that was started has ended.
func (l *lane) wait() { l.running.Wait() }

// authors are the cursors that a collector asks everybody about.
func (p *puller) authors() []wire.Cursor {
	if !p.collect {
		return nil
	}
	return p.memory.Cursors(knownAuthors)
}

// pause is the time to the next round.
func (p *puller) pause() time.Duration {
	i := p.tuning.SyncInterval
	return i*3/4 + time.Duration(p.rng.Int64N(int64(i/2)))
}

// roundPeers chooses whom to ask in a round: connected learners and bootstraps, and a few other members.
func (p *puller) roundPeers() []peer.ID {
	others := roundMembers
	if p.collect {
		others = roundCollector
	}
	var chosen []peer.ID
	picked := make(map[peer.ID]bool)
	pick := func(id peer.ID) {
		if !picked[id] && p.connected(id) {
			picked[id] = true
			chosen = append(chosen, id)
		}
	}
	for _, id := range p.keep {
		pick(id)
	}
	for _, id := range p.sample(p.members.trusted(), others) {
		pick(id)
	}
	return chosen
}

// assign spreads gaps over the peers that may fill them: the author when it is connected, and a few other members when
// it is not or did not help before.
func (p *puller) assign(gaps []gossip.Gap) map[peer.ID][]wire.Cursor {
	plan := make(map[peer.ID][]wire.Cursor)
	members := p.members.trusted()
	for _, gap := range gaps {
		author := peer.ID(gap.Peer)
		var from []peer.ID
		if p.connected(author) {
			from = append(from, author)
		}
		if len(from) == 0 || gap.Asked > 0 {
			from = append(from, p.sample(members, gapOthers)...)
		}
		if len(from) == 0 {
			continue
		}
		p.memory.Asked(gap.Peer, time.Now())
		for _, id := range from {
			if len(plan[id]) < wire.MaxHeadCursors-1 {
				plan[id] = append(plan[id], wire.Cursor{Peer: gap.Peer, FromSequence: gap.From})
			}
		}
	}
	return plan
}

// sample returns up to n of a list by chance, which it reorders.
func (p *puller) sample(list []peer.ID, n int) []peer.ID {
	p.rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list[:min(n, len(list))]
}

func (p *puller) connected(id peer.ID) bool {
	return id != p.host.ID() && p.host.Network().Connectedness(id) == network.Connected
}

// pull asks one peer for everything new and for given cursors, and acts on how it went. A second pull from a peer that
// is being asked is dropped: the one under way brings the same, and gaps are tried again.
func (p *puller) pull(ctx context.Context, from peer.ID, cursors []wire.Cursor) {
	if !p.connected(from) {
		return
	}
	p.mu.Lock()
	if p.active[from] {
		p.mu.Unlock()
		return
	}
	p.active[from] = true
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.active, from)
		p.mu.Unlock()
	}()

	pulling, cancel := context.WithTimeout(ctx, pullTimeout)
	defer cancel()
	err := p.exchange(pulling, from, cursors)
	switch {
	case err == nil:
		p.counters.pulls.Add(1)
	case ctx.Err() != nil:
	case errors.Is(err, head.ErrOtherNetwork):
		p.counters.otherNetwork.Add(1)
		p.log.Info("a peer of another network was turned away", "peer", from)
		p.refuse(from)
	case errors.Is(err, errBadRecord) || errors.Is(err, wire.ErrMalformed):
		p.counters.failed.Add(1)
		p.misbehaved(from, err)
	default:
		// A peer that left or does not speak the protocol: others are asked in the next round.
		p.counters.failed.Add(1)
	}
}
