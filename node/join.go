package node

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/lightswarm/lightswarm/node/store"
	"github.com/lightswarm/lightswarm/p2p/block"
	"github.com/lightswarm/lightswarm/p2p/discovery"
	"github.com/lightswarm/lightswarm/wire"
)

const (
	// joinAttempt is how long one member has to answer a newcomer.
	joinAttempt = 20 * time.Second
	// joinRetry is the pause before the members that are known are asked again; it doubles up to joinRetryMax.
	joinRetry    = 3 * time.Second
	joinRetryMax = 30 * time.Second
	// joinAtOnce is how many members are asked at once.
	joinAtOnce = 8
	// joinCandidates bounds the members that wait to be asked.
	joinCandidates = 64
)

// joiner gets what a node must have before it can take part in a network: the charter, whose CID is the network's id, and
// the environments that the charter names. It needs no trust in whom it asks, because CIDs name the exact bytes.
type joiner struct {
	host    host.Host
	network wire.CID
	sources []discovery.Source
	log     *slog.Logger
}

// newJoinHost returns a host that only dials.
func newJoinHost(key ed25519.PrivateKey) (host.Host, error) {
	private, err := crypto.UnmarshalEd25519PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("identity key: %w", err)
	}
	h, err := libp2p.New(libp2p.Identity(private), libp2p.NoListenAddrs, libp2p.DisableRelay(), libp2p.DisableMetrics())
	if err != nil {
		return nil, fmt.Errorf("start libp2p: %w", err)
	}
	return h, nil
}

// charter asks for the charter until ctx ends.
func (j *joiner) charter(ctx context.Context) (wire.SignedCharter, error) {
	exchange := block.New(j.host, block.NewMemoryStore(wire.MaxCharterBytes), block.Options{Log: j.log})
	defer exchange.Close()
	return ask(ctx, j, "its charter", func(ctx context.Context, member wire.PeerID) (wire.SignedCharter, error) {
		ctx, cancel := context.WithTimeout(ctx, joinAttempt)
		defer cancel()
		raw, err := exchange.Fetch(ctx, j.network, []wire.PeerID{member}, wire.MaxCharterBytes)
		if err != nil {
			return wire.SignedCharter{}, err
		}
		return openCharter(j.network, raw)
	})
}

// attempt is a member to ask, and how loudly a failure is told.
type attempt struct {
	info peer.AddrInfo
	tell slog.Level
}

// outcome is what came of an attempt.
type outcome[T any] struct {
	attempt
	value T
	err   error
}

// ask dials members as they are found, several at once and again and again, until get has what is wanted from one of them
// or ctx ends: one that does not answer holds up no other. get runs concurrently. A *keepError ends it too.
func ask[T any](ctx context.Context, j *joiner, what string, get func(ctx context.Context, member wire.PeerID) (T, error)) (T, error) {
	var none T
	searching, stop := context.WithCancel(ctx)
	found := make(chan peer.AddrInfo, joinCandidates)
	outcomes := make(chan outcome[T], joinAtOnce)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() {
		discovery.Run(searching, j.sources, func(info peer.AddrInfo) {
			select {
			case found <- info:
			default: // There are plenty to ask.
			}
		}, j.log)
	})

	known := map[peer.ID]peer.AddrInfo{}
	pending := map[peer.ID]bool{} // Queued or being asked.
	var queue []attempt
	asking := 0
	var last error
	pause := joinRetry
	retry := time.NewTimer(pause)
	defer retry.Stop()
	for {
		for ; asking < joinAtOnce && len(queue) > 0; asking++ {
			next := queue[0]
			queue = queue[1:]
			running.Go(func() {
				value, err := none, j.connect(searching, next.info)
				if err == nil {
					value, err = get(searching, wire.PeerID(next.info.ID))
				}
				outcomes <- outcome[T]{next, value, err}
			})
		}
		select {
		case info := <-found:
			if _, there := known[info.ID]; !there && len(known) < joinCandidates {
				a := attempt{info, slog.LevelDebug}
				if last == nil {
					a.tell = slog.LevelWarn
				}
				known[info.ID], pending[info.ID] = info, true
				queue = append(queue, a)
			}
		case o := <-outcomes:
			asking--
			delete(pending, o.info.ID)
			if kept := (*keepError)(nil); o.err == nil || errors.As(o.err, &kept) {
				return o.value, o.err
			}
			if ctx.Err() == nil {
				j.log.Log(ctx, o.tell, "a member did not send "+what+"; asking again and again. Does it run, and is its address right?", "peer", o.info.ID, "error", o.err)
				last = o.err
			}
		case <-retry.C:
			tell := slog.LevelDebug
			// Once the pauses are long, each round says that this still waits, and why.
			if pause == joinRetryMax {
				tell = slog.LevelWarn
			}
			pause = min(2*pause, joinRetryMax)
			retry.Reset(pause)
			for _, info := range known {
				if !pending[info.ID] {
					pending[info.ID] = true
					queue = append(queue, attempt{info, tell})
				}
			}
			if len(known) == 0 {
				j.log.Log(ctx, tell, "no member of the network was found yet; looking on. Name one that runs with --bootstrap")
			}
		case <-ctx.Done():
			return none, j.failure(ctx, what, last)
		}
	}
}

func (j *joiner) connect(ctx context.Context, info peer.AddrInfo) error {
	ctx, cancel := context.WithTimeout(ctx, joinAttempt)
	defer cancel()
	return discovery.Connect(ctx, j.host, info)
}

// keepError says that what a member sent could not be kept: another member helps no more.
type keepError struct{ error }

func (e *keepError) Unwrap() error { return e.error }

// blocks gets blocks into the store, in which they are pinned already. Those that arrived are there even if it fails.
func (j *joiner) blocks(ctx context.Context, s *store.Store, what string, refs ...wire.BlockRef) error {
	exchange := block.New(j.host, s, block.Options{Log: j.log})
	defer exchange.Close()
	_, err := ask(ctx, j, what, func(ctx context.Context, member wire.PeerID) (struct{}, error) {
		for _, ref := range refs {
			if err := j.block(ctx, exchange, s, ref, member); err != nil {
				return struct{}{}, err
			}
		}
		return struct{}{}, nil
	})
	return err
}

func (j *joiner) block(ctx context.Context, exchange *block.Exchange, s *store.Store, ref wire.BlockRef, member wire.PeerID) error {
	ctx, cancel := context.WithTimeout(ctx, blockPatience)
	defer cancel()
	data, err := exchange.Fetch(ctx, ref.CID, []wire.PeerID{member}, int(ref.Bytes))
	if err != nil {
		return err
	}
	if err := s.Put(ref.CID, data); err != nil { // The exchange only logs that.
		return &keepError{err}
	}
	return nil
}

// failure says why something did not come and what to do.
func (j *joiner) failure(ctx context.Context, what string, last error) error {
	if last == nil {
		return fmt.Errorf("join network %s: no member was found; give the address of one with --bootstrap: %w", j.network, context.Cause(ctx))
	}
	return fmt.Errorf("join network %s: no member sent %s; check the id and that a member given with --bootstrap runs: %w (last: %w)", j.network, what, context.Cause(ctx), last)
}

// openCharter opens a charter and checks that it is the network's.
func openCharter(network wire.CID, raw []byte) (wire.SignedCharter, error) {
	charter, err := wire.OpenCharter(raw)
	if err != nil {
		return wire.SignedCharter{}, fmt.Errorf("network %s: %w", network, err)
	}
	if charter.ID != network {
		return wire.SignedCharter{}, fmt.Errorf("network %s: the charter found is of network %s", network, charter.ID)
	}
	return charter, nil
}
