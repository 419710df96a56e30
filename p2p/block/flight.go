package block

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/lightswarm/lightswarm/wire"
)

// flightKey says what is fetched. Fetches with another limit are separate, so that none fails by a limit that is not
// its own.
type flightKey struct {
	cid   wire.CID
	limit int
}

// flight is one fetch under way, on behalf of every caller that asked for it meanwhile.
type flight struct {
	key    flightKey
	cancel context.CancelFunc
	done   chan struct{} // Closed when data and err are set.
	data   []byte
	err    error

	hints   []peer.ID // Grows as callers join; guarded by Exchange.mu.
	waiting int       // Callers; guarded by Exchange.mu.
}

// join adds a caller to the flight for key, starting it when there is none.
func (x *Exchange) join(key flightKey, hints []wire.PeerID) (*flight, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return nil, ErrClosed
	}
	f := x.flights[key]
	if f == nil {
		ctx, cancel := context.WithCancel(x.ctx)
		f = &flight{key: key, cancel: cancel, done: make(chan struct{})}
		x.flights[key] = f
		defer x.running.Go(func() { x.fly(ctx, f) }) // Once the hints are there.
	} else {
		x.counters.coalesced.Add(1)
	}
	f.waiting++
	for _, h := range hints {
		if p := peer.ID(h); p != x.host.ID() && !slices.Contains(f.hints, p) && len(f.hints) < x.opts.MaxPeers {
			f.hints = append(f.hints, p)
		}
	}
	return f, nil
}

// abandon takes a caller out of a flight, which ends when nobody is left.
func (x *Exchange) abandon(f *flight) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if f.waiting--; f.waiting == 0 {
		f.cancel()
		x.land(f)
	}
}

// land takes a flight off the map, so that whoever comes next starts another. The caller holds mu.
func (x *Exchange) land(f *flight) {
	if x.flights[f.key] == f {
		delete(x.flights, f.key)
	}
}

// fly fetches and tells the callers.
func (x *Exchange) fly(ctx context.Context, f *flight) {
	defer f.cancel()
	f.data, f.err = x.fetch(ctx, f)
	if f.err != nil {
		x.counters.failed.Add(1)
	}
	x.mu.Lock()
	x.land(f)
	x.mu.Unlock()
	close(f.done)
}

// reply is what came of asking one peer.
type reply struct {
	peer peer.ID
	data []byte
	err  error
}

// search is the asking of one fetch. It is for one goroutine, and owns those that ask.
type search struct {
	x       *Exchange
	f       *flight
	tried   map[peer.ID]bool
	asked   map[peer.ID]uint64 // Peers that have not answered yet, with what their sessions had received when looked at last.
	replies chan reply         // Has room for all.
	running sync.WaitGroup
}

// fetch asks one peer after the other until one answers with the block. While all that were asked are silent it asks one
// more besides.
func (x *Exchange) fetch(ctx context.Context, f *flight) ([]byte, error) {
	cid := f.key.cid
	s := &search{
		x: x, f: f, tried: make(map[peer.ID]bool), asked: make(map[peer.ID]uint64), replies: make(chan reply, x.opts.MaxPeers),
	}
	ctx, cancel := context.WithCancel(ctx)
	defer s.running.Wait()
	defer cancel()
	look := time.NewTicker(x.opts.Patience)
	defer look.Stop()
	absent := 0
	var last error
	for s.next(ctx); len(s.asked) > 0; {
		select {
		case r := <-s.replies:
			delete(s.asked, r.peer)
			switch {
			case r.err == nil:
				x.keep(cid, r.data)
				x.slow.clear(r.peer)
				return r.data, nil
			case ctx.Err() != nil:
				return nil, fmt.Errorf("fetch block %s: %w", cid, ctx.Err())
			case errors.Is(r.err, ErrNotFound):
				absent++
				x.slow.clear(r.peer)
			default:
				x.slow.mark(r.peer)
				last = fmt.Errorf("%s: %w", r.peer, r.err)
			}
			if s.next(ctx) {
				look.Reset(x.opts.Patience)
			}
		case <-look.C:
			if s.silent() {
				s.next(ctx)
			}
		}
	}
	if last != nil {
		return nil, fmt.Errorf("fetch block %s: of %d peers %d do not have it, the others failed, the last with %w",
			cid, len(s.tried), absent, last)
	}
	return nil, fmt.Errorf("fetch block %s: %w at any of %d peers", cid, ErrNotFound, absent)
}

// next asks one more peer. It is false if there is none that may be asked.
func (s *search) next(ctx context.Context) bool {
	if len(s.tried) >= s.x.opts.MaxPeers {
		return false
	}
	p, ok := s.x.candidate(s.f, s.tried)
	if !ok {
		return false
	}
	if len(s.tried) > 0 {
		s.x.counters.retried.Add(1)
	}
	s.tried[p] = true
	s.asked[p] = s.x.received(p)
	s.running.Go(func() {
		data, err := s.x.ask(ctx, p, s.f.key.cid, s.f.key.limit)
		s.replies <- reply{p, data, err}
	})
	return true
}

// silent says whether all peers that are asked sent next to nothing since it was called last, and notes that they are
// slow.
func (s *search) silent() bool {
	enough := uint64(s.x.opts.Patience.Seconds() * progressRate)
	silent := true
	for p, before := range s.asked {
		now := s.x.received(p)
		s.asked[p] = now
		if now >= before+enough {
			silent = false
		} else {
			s.x.slow.mark(p)
		}
	}
	return silent
}

// candidate chooses whom to ask next: hints that are connected in their order, other hints, hints that were slow lately,
// then the members with the fewest requests waiting, ties by chance, those last that were slow.
func (x *Exchange) candidate(f *flight, tried map[peer.ID]bool) (peer.ID, bool) {
	x.mu.Lock()
	hints := slices.DeleteFunc(slices.Clone(f.hints), func(p peer.ID) bool { return tried[p] })
	x.mu.Unlock()
	if len(hints) > 0 {
		return slices.MinFunc(hints, func(a, b peer.ID) int {
			return cmp.Or(x.slow.compare(a, b), cmp.Compare(rank(x.connected(a)), rank(x.connected(b))))
		}), true
	}
	members := slices.DeleteFunc(slices.Clone(x.opts.Members()), func(p peer.ID) bool { return tried[p] || p == x.host.ID() })
	if len(members) == 0 {
		return "", false
	}
	rand.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	return slices.MinFunc(members, func(a, b peer.ID) int {
		return cmp.Or(x.slow.compare(a, b), cmp.Compare(x.load(a), x.load(b)))
	}), true
}

// rank orders what is wanted before what is not.
func rank(wanted bool) int {
	if wanted {
		return 0
	}
	return 1
}
