package discovery

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
)

const (
	dialTimeout       = 15 * time.Second
	maxDials          = 8    // At the same time.
	maxCandidates     = 1024 // Remembered; one more takes the place of the least useful one.
	maxFailures       = 8    // In a row, after which a peer that is not kept is forgotten.
	keptBackoffMax    = time.Minute
	backoffMax        = 10 * time.Minute
	redialAfter       = 10 * time.Second // Since the last dial of a peer that answered it.
	refusedFor        = time.Hour
	maxAddrsPerPeer   = 16
	foundAddrLifetime = time.Hour
)

// Dialer keeps connections to members. Peers that it is told to keep are dialled whenever they are not connected,
// for ever; others while fewer members are connected than wanted.
type Dialer struct {
	host    host.Host
	keep    map[peer.ID]bool
	members func() int
	want    int
	rng     *rand.Rand // Used by Run alone.
	log     *slog.Logger

	mu         sync.Mutex
	candidates map[peer.ID]*candidate // guarded by mu
}

// candidate is one peer that may be dialled.
type candidate struct {
	failures int
	due      time.Time // Not to be dialled before.
	dialling bool
	reached  bool // A dial succeeded, and it was not refused since.
}

// NewDialer returns a Dialer for a host that keeps the given peers connected, and dials others while fewer than want
// members are. Only those count that members counts, so that strangers who connect cannot fill a node up.
func NewDialer(h host.Host, keep []peer.ID, members func() int, want int, rng *rand.Rand, log *slog.Logger) *Dialer {
	d := &Dialer{host: h, keep: make(map[peer.ID]bool), members: members, want: want, rng: rng, log: log, candidates: make(map[peer.ID]*candidate)}
	for _, p := range keep {
		if p != h.ID() {
			d.keep[p] = true
		}
	}
	return d
}

// Found tells the dialer about a peer's addresses. It does not block and may be called at any time.
func (d *Dialer) Found(info peer.AddrInfo) {
	if info.ID == d.host.ID() || len(info.Addrs) == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.candidates[info.ID] == nil {
		if len(d.candidates) >= maxCandidates && !d.keep[info.ID] && !d.makeRoom() {
			return
		}
		d.candidates[info.ID] = &candidate{}
	}
	ttl := foundAddrLifetime
	if d.keep[info.ID] {
		ttl = peerstore.PermanentAddrTTL
	}
	d.host.Peerstore().AddAddrs(info.ID, info.Addrs[:min(len(info.Addrs), maxAddrsPerPeer)], ttl)
}

// makeRoom forgets one candidate, so that whoever makes up identities cannot keep newcomers out: one that was never
// reached before one that was, and among these the one that failed most often, or any. d.mu is held.
func (d *Dialer) makeRoom() bool {
	var worst peer.ID
	for p, c := range d.candidates {
		if d.keep[p] || c.dialling || d.host.Network().Connectedness(p) == network.Connected {
			continue
		}
		w := d.candidates[worst]
		if w == nil || w.reached && !c.reached || w.reached == c.reached && w.failures < c.failures {
			worst = p
		}
	}
	if worst == "" {
		return false
	}
	delete(d.candidates, worst)
	return true
}

// Refuse closes the connections to a peer that turned out not to belong here and does not dial it for a while.
func (d *Dialer) Refuse(p peer.ID) {
	d.mu.Lock()
	if c := d.candidates[p]; c != nil {
		c.due, c.reached = time.Now().Add(refusedFor), false
	}
	d.mu.Unlock()
	// Closing fails when the peer has left already.
	_ = d.host.Network().ClosePeer(p)
}

// Run dials until ctx ends and then waits for the dials under way.
func (d *Dialer) Run(ctx context.Context) {
	var dials sync.WaitGroup
	defer dials.Wait()
	for {
		for _, p := range d.due(time.Now()) {
			dials.Go(func() { d.dial(ctx, p) })
		}
		if !wait(ctx, time.Second) {
			return
		}
	}
}

// due chooses whom to dial now and marks them.
func (d *Dialer) due(now time.Time) []peer.ID {
	d.mu.Lock()
	defer d.mu.Unlock()
	var kept, others []peer.ID
	dialling := 0
	for p, c := range d.candidates {
		switch {
		case c.dialling:
			dialling++
		case now.Before(c.due) || d.host.Network().Connectedness(p) == network.Connected:
		case d.keep[p]:
			kept = append(kept, p)
		default:
			others = append(others, p)
		}
	}
	d.rng.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
	missing := max(0, d.want-d.members()-dialling)
	chosen := append(kept, others[:min(len(others), missing)]...)
	chosen = chosen[:min(len(chosen), max(0, maxDials-dialling))]
	for _, p := range chosen {
		d.candidates[p].dialling = true
	}
	return chosen
}

// dial connects to one peer and records how it went.
func (d *Dialer) dial(ctx context.Context, p peer.ID) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	err := Connect(ctx, d.host, peer.AddrInfo{ID: p})

	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.candidates[p]
	c.dialling = false
	if err == nil {
		c.failures, c.reached = 0, true
		// A peer that is full may close the connection at once.
		c.due = time.Now().Add(redialAfter)
		return
	}
	c.failures++
	if !d.keep[p] && c.failures >= maxFailures {
		delete(d.candidates, p)
		return
	}
	c.due = time.Now().Add(backoff(c.failures, d.keep[p]))
	if d.keep[p] && ctx.Err() != context.Canceled && c.failures == 1 {
		d.log.Info("a learner or bootstrap peer cannot be reached; trying again", "peer", p, "error", err)
	}
}

// Connect dials a peer unless it is connected. The swarm would not dial an address that failed before, for up to five
// minutes: here the caller decides when to try again.
func Connect(ctx context.Context, h host.Host, info peer.AddrInfo) error {
	if s, ok := h.Network().(interface{ Backoff() *swarm.DialBackoff }); ok {
		s.Backoff().Clear(info.ID)
	}
	return h.Connect(ctx, info)
}

// backoff is how long to leave a peer alone after a number of failures in a row: doubling, up to a minute for peers
// that are kept and ten minutes for others, give or take a quarter.
func backoff(failures int, kept bool) time.Duration {
	first, most := 4*time.Second, backoffMax
	if kept {
		first, most = time.Second, keptBackoffMax
	}
	d := min(first<<min(failures-1, 16), most)
	return d - d/4 + rand.N(d/2)
}
