package block

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/lightswarm/lightswarm/p2p/stream"
	"github.com/lightswarm/lightswarm/wire"
)

// ErrClosed is returned once an Exchange was closed.
var ErrClosed = errors.New("the block exchange is closed")

// Options say how an Exchange fetches. The zero value of a field takes the default.
type Options struct {
	// Members lists connected peers that may be asked besides the caller's hints. Called often and concurrently. Nil
	// means none.
	Members func() []peer.ID
	// Misbehaved is told of a peer that sent wrong bytes or broke the protocol. Called concurrently; it must not
	// block. Nil means that nobody cares.
	Misbehaved func(peer.ID, error)
	// Log receives failures of the store, which do not fail a fetch. Nil discards.
	Log *slog.Logger
	// Window is how many blocks are asked of one peer at the same time; the default is 64.
	Window int
	// Stall is how long a peer may send nothing while an answer is due; the default is 15 s.
	Stall time.Duration
	// Attempt is how long a fetch waits for one peer at most; the default is what the largest block may
	// take after a Stall, about 90 s.
	Attempt time.Duration
	// Patience is how long a fetch waits for peers that send next to nothing before it asks another one besides; the
	// default is 3 s.
	Patience time.Duration
	// Idle is how long an unused stream is kept; the default is 60 s.
	Idle time.Duration
	// MaxPeers is how many peers one fetch asks, hints included, before it gives up; the default is 16.
	MaxPeers int
}

// Exchange serves a store's blocks to peers and fetches blocks from them into it. It is safe for concurrent use.
type Exchange struct {
	host    host.Host
	store   Store
	opts    Options
	server  *stream.Server
	ctx     context.Context // Ends with Close.
	cancel  context.CancelFunc
	running sync.WaitGroup // Sessions and flights; Add only under mu while not closed.

	counters counters
	slow     slowPeers

	mu       sync.Mutex
	closed   bool                  // guarded by mu
	sessions map[peer.ID]*session  // guarded by mu
	flights  map[flightKey]*flight // guarded by mu
}

type counters struct {
	served, servedBytes, fetched, fetchedBytes, local, coalesced, retried, misbehaved, failed, storeFailed atomic.Uint64
}

// Stats counts what an Exchange did since it was made.
type Stats struct {
	Served, ServedBytes   uint64 // Blocks sent to peers and their bytes.
	Fetched, FetchedBytes uint64 // Blocks received from peers, verified, and their bytes.
	Local                 uint64 // Fetches answered from the store.
	Coalesced             uint64 // Fetches that joined one already under way.
	Retried               uint64 // Times that a fetch asked another peer, because one failed or was silent.
	Misbehaved            uint64 // Peers caught with wrong bytes or a broken protocol.
	Failed                uint64 // Fetches that no peer could answer.
	StoreFailed           uint64 // Fetched blocks that the store did not take.
	RefusedStreams        uint64 // Inbound streams beyond the limits.
}

// New returns an Exchange that serves from now on, until Close.
func New(h host.Host, store Store, opts Options) *Exchange {
	setDefault(&opts.Window, 64)
	setDefault(&opts.Stall, 15*time.Second)
	setDefault(&opts.Attempt, opts.Stall+transferTime(wire.MaxBlockBytes))
	setDefault(&opts.Patience, 3*time.Second)
	setDefault(&opts.Idle, time.Minute)
	setDefault(&opts.MaxPeers, 16)
	if opts.Members == nil {
		opts.Members = func() []peer.ID { return nil }
	}
	if opts.Misbehaved == nil {
		opts.Misbehaved = func(peer.ID, error) {}
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancel(context.Background())
	x := &Exchange{
		host: h, store: store, opts: opts, ctx: ctx, cancel: cancel,
		sessions: make(map[peer.ID]*session), flights: make(map[flightKey]*flight),
		slow: slowPeers{since: make(map[peer.ID]time.Time)},
	}
	x.server = serve(h, store, &x.counters.served, &x.counters.servedBytes)
	return x
}

// Fetch returns the block of at most limit bytes; limit 0 means wire.MaxBlockBytes. It looks in the store first, then
// asks the hints in their order, then other members, until ctx ends; the block is put into the store. Hints that are
// not connected are dialled when their addresses are known. The error wraps ErrNotFound when nobody who was asked has
// the block, and wire.ErrTooLarge when it is larger than limit.
func (x *Exchange) Fetch(ctx context.Context, cid wire.CID, hints []wire.PeerID, limit int) ([]byte, error) {
	if limit <= 0 || limit > wire.MaxBlockBytes {
		limit = wire.MaxBlockBytes
	}
	data, err := x.store.Get(cid)
	if err == nil {
		x.counters.local.Add(1)
		if len(data) > limit {
			return nil, fmt.Errorf("block %s: %w: %d bytes, the limit is %d", cid, wire.ErrTooLarge, len(data), limit)
		}
		return data, nil
	}
	if !errors.Is(err, ErrNotFound) {
		return nil, fmt.Errorf("block %s: look in the store: %w", cid, err)
	}
	f, err := x.join(flightKey{cid, limit}, hints)
	if err != nil {
		return nil, err
	}
	select {
	case <-f.done:
		return f.data, f.err
	case <-ctx.Done():
		x.abandon(f)
		return nil, fmt.Errorf("fetch block %s: %w", cid, ctx.Err())
	}
}

// ask asks one peer for one block over the session with it.
func (x *Exchange) ask(ctx context.Context, p peer.ID, cid wire.CID, limit int) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, x.opts.Attempt)
	defer cancel()
	for {
		s, err := x.session(p)
		if err != nil {
			return nil, err
		}
		data, err := s.get(ctx, cid, limit)
		if errors.Is(err, errIdle) {
			continue // The session ended just as it was taken; the next one is new.
		}
		return data, err
	}
}

// keep stores a block that a peer sent and counts it.
func (x *Exchange) keep(cid wire.CID, data []byte) {
	x.counters.fetched.Add(1)
	x.counters.fetchedBytes.Add(uint64(len(data)))
	if err := x.store.Put(cid, data); err != nil {
		x.counters.storeFailed.Add(1)
		x.opts.Log.Error("a fetched block could not be stored", "cid", cid, "error", err)
	}
}

// session returns the live session with a peer, or starts one.
func (x *Exchange) session(p peer.ID) (*session, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return nil, ErrClosed
	}
	if s := x.sessions[p]; s != nil {
		return s, nil
	}
	s := newSession(p, x.opts.Window, x.keep)
	x.sessions[p] = s
	x.running.Go(func() { x.run(s) })
	return s, nil
}

// run opens a session's stream and serves it until it ends.
func (x *Exchange) run(s *session) {
	ctx, cancel := context.WithTimeout(x.ctx, x.opts.Stall)
	st, err := x.host.NewStream(ctx, s.peer, Protocol)
	cancel()
	if err == nil {
		err = s.run(x.ctx, st, x.opts.Stall, x.opts.Idle)
	}
	// First out of the map, then ended, so that whoever is told that it ended finds it gone.
	x.mu.Lock()
	delete(x.sessions, s.peer)
	x.mu.Unlock()
	s.end(err)
	if errors.Is(err, errProtocol) {
		x.counters.misbehaved.Add(1)
		x.opts.Misbehaved(s.peer, err)
	}
}

// load is how many requests wait for a peer.
func (x *Exchange) load(p peer.ID) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	if s := x.sessions[p]; s != nil {
		return s.load()
	}
	return 0
}

// received is how many bytes came from a peer over the session with it.
func (x *Exchange) received(p peer.ID) uint64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	if s := x.sessions[p]; s != nil {
		return s.received.Load()
	}
	return 0
}

// Stats returns the counters.
func (x *Exchange) Stats() Stats {
	c := &x.counters
	return Stats{
		Served: c.served.Load(), ServedBytes: c.servedBytes.Load(),
		Fetched: c.fetched.Load(), FetchedBytes: c.fetchedBytes.Load(),
		Local: c.local.Load(), Coalesced: c.coalesced.Load(), Retried: c.retried.Load(),
		Misbehaved: c.misbehaved.Load(), Failed: c.failed.Load(), StoreFailed: c.storeFailed.Load(),
		RefusedStreams: x.server.Refused(),
	}
}

// Close stops serving, fails the fetches under way and waits for everything.
func (x *Exchange) Close() {
	x.server.Close()
	x.mu.Lock()
	x.closed = true
	x.mu.Unlock()
	x.cancel()
	x.running.Wait()
}

// connected reports whether a peer is connected.
func (x *Exchange) connected(p peer.ID) bool {
	return x.host.Network().Connectedness(p) == network.Connected
}

// setDefault sets a zero value.
func setDefault[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}
