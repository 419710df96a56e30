package block

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

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

// fetch asks one peer after the other until one answers with the block.
func (x *Exchange) fetch(ctx context.Context, f *flight) ([]byte, error) {
	cid := f.key.cid
	tried := make(map[peer.ID]bool)
	absent := 0
	var last error
	for len(tried) < x.opts.MaxPeers {
		p, ok := x.candidate(f, tried)
		if !ok {
			break
		}
		if len(tried) > 0 {
			x.counters.retried.Add(1)
		}
		tried[p] = true
		data, err := x.ask(ctx, p, cid, f.key.limit)
		switch {
		case err == nil:
			x.keep(cid, data)
			return data, nil
		case ctx.Err() != nil:
			return nil, fmt.Errorf("fetch block %s: %w", cid, ctx.Err())
		case errors.Is(err, ErrNotFound):
			absent++
		default:
			last = fmt.Errorf("%s: %w", p, err)
		}
	}
	if last != nil {
		return nil, fmt.Errorf("fetch block %s: of %d peers %d do not have it, the others failed, the last with %w",
			cid, len(tried), absent, last)
	}
	return nil, fmt.Errorf("fetch block %s: %w at any of %d peers", cid, ErrNotFound, absent)
}

// candidate chooses whom to ask next: hints that are connected in their order, other hints, then the members with the
// fewest requests waiting, ties by chance.
func (x *Exchange) candidate(f *flight, tried map[peer.ID]bool) (peer.ID, bool) {
	x.mu.Lock()
	hints := slices.DeleteFunc(slices.Clone(f.hints), func(p peer.ID) bool { return tried[p] })
	x.mu.Unlock()
	if i := slices.IndexFunc(hints, x.connected); i >= 0 {
		return hints[i], true
	}
	if len(hints) > 0 {
		return hints[0], true
	}
	members := slices.DeleteFunc(slices.Clone(x.opts.Members()), func(p peer.ID) bool { return tried[p] || p == x.host.ID() })
	if len(members) == 0 {
		return "", false
	}
	rand.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	return slices.MinFunc(members, func(a, b peer.ID) int { return cmp.Compare(x.load(a), x.load(b)) }), true
}
