package block_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/lightswarm/lightswarm/p2p/block"
	"github.com/lightswarm/lightswarm/p2p/simnet"
	"github.com/lightswarm/lightswarm/p2p/stream"
	"github.com/lightswarm/lightswarm/virtualtime"
	"github.com/lightswarm/lightswarm/wire"
)

// bench is a few connected hosts in virtual time. Host 0 fetches; its exchange is made by fetcher.
type bench struct {
	t     *testing.T
	net   *simnet.Net
	hosts []host.Host
}

func newBench(t *testing.T, hosts int) *bench {
	b := &bench{t: t, net: simnet.New(20 * time.Millisecond)}
	b.net.Start()
	for i := range hosts {
		h, err := b.net.Host(simnet.Key(7, i), netip.AddrPortFrom(simnet.Addr(i), 8000), 50, nil)
		if err != nil {
			t.Fatal(err)
		}
		b.hosts = append(b.hosts, h)
	}
	for _, h := range b.hosts[1:] {
		if err := b.hosts[0].Connect(t.Context(), peer.AddrInfo{ID: h.ID(), Addrs: h.Addrs()}); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func (b *bench) close() {
	for _, h := range b.hosts {
		if err := h.Close(); err != nil {
			b.t.Error(err)
		}
	}
	b.net.Close()
}

// fetcher makes host 0's exchange, which knows every other host as a member.
func (b *bench) fetcher(opts block.Options) (*block.Exchange, *block.MemoryStore) {
	opts.Members = func() []peer.ID {
		var members []peer.ID
		for _, h := range b.hosts[1:] {
			members = append(members, h.ID())
		}
		return members
	}
	store := block.NewMemoryStore(64 << 20)
	return block.New(b.hosts[0], store, opts), store
}

// seed makes a host serve blocks.
func (b *bench) seed(host int, blocks ...[]byte) *block.Exchange {
	store := block.NewMemoryStore(64 << 20)
	for _, data := range blocks {
		if err := store.Put(wire.SumCID(data), data); err != nil {
			b.t.Fatal(err)
		}
	}
	return block.New(b.hosts[host], store, block.Options{})
}

func (b *bench) hint(host int) wire.PeerID { return wire.PeerID(b.hosts[host].ID()) }

// blockOf returns a block of n bytes that differs from others of its size.
func blockOf(n, seed int) []byte {
	return bytes.Repeat(fmt.Appendf(nil, "%08d", seed), n/8+1)[:n]
}

func TestFetchStoresWhatItVerified(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		b := newBench(t, 2)
		defer b.close()
		for _, size := range []int{0, 1, 2000, 300_000, wire.MaxBlockBytes} {
			data := blockOf(size, size)
			defer b.seed(1, data).Close()
			x, store := b.fetcher(block.Options{})
			got, err := x.Fetch(t.Context(), wire.SumCID(data), []wire.PeerID{b.hint(1)}, 0)
			if err != nil || !bytes.Equal(got, data) {
				t.Fatalf("%d bytes: %v", size, err)
			}
			if kept, err := store.Get(wire.SumCID(data)); err != nil || !bytes.Equal(kept, data) {
				t.Errorf("%d bytes: the store has %d bytes, %v", size, len(kept), err)
			}
			if _, err := x.Fetch(t.Context(), wire.SumCID(data), nil, 0); err != nil || x.Stats().Local != 1 {
				t.Errorf("%d bytes again: %v, %d from the store", size, err, x.Stats().Local)
			}
			x.Close()
		}
	})
}

// hostile serves the block protocol badly.
func hostile(b *bench, host int, answer func(q wire.BlockRequest, s network.Stream)) {
	b.hosts[host].SetStreamHandler(block.Protocol, func(s network.Stream) {
		defer func() { _ = s.Reset() }()
		raw, err := stream.ReadFrame(bufio.NewReader(s), wire.MaxBlockRequestBytes)
		if err != nil {
			return
		}
		q, err := wire.DecodeBlockRequest(raw)
		if err != nil {
			b.t.Error(err)
			return
		}
		answer(q, s)
	})
}

// hold waits until the other side gives up.
func hold(s network.Stream) {
	_, _ = io.Copy(io.Discard, s)
}

func writeHeader(s network.Stream, h wire.BlockHeader) {
	raw, err := wire.EncodeBlockHeader(h)
	if err == nil {
		err = stream.WriteFrame(s, raw)
	}
	if err != nil {
		_ = s.Reset()
	}
}

// TestFetchFallsBack has the first hint fail in every way that a peer can, and the second one serve.
func TestFetchFallsBack(t *testing.T) {
	data := blockOf(5000, 1)
	cid := wire.SumCID(data)
	for _, c := range []struct {
		name       string
		answer     func(wire.BlockRequest, network.Stream)
		misbehaved bool
	}{
		{"does not have it", func(_ wire.BlockRequest, s network.Stream) {
			writeHeader(s, wire.BlockHeader{})
			hold(s)
		}, false},
		{"is silent", func(_ wire.BlockRequest, s network.Stream) { hold(s) }, false},
		{"leaves", func(wire.BlockRequest, network.Stream) {}, false},
		{"stops in the middle", func(_ wire.BlockRequest, s network.Stream) {
			writeHeader(s, wire.BlockHeader{Found: true, Bytes: 5000})
			_, _ = s.Write(data[:100])
			hold(s)
		}, false},
		{"sends other bytes", func(_ wire.BlockRequest, s network.Stream) {
			writeHeader(s, wire.BlockHeader{Found: true, Bytes: 5000})
			_, _ = s.Write(blockOf(5000, 2))
			hold(s)
		}, true},
		{"answers what was not asked", func(_ wire.BlockRequest, s network.Stream) {
			writeHeader(s, wire.BlockHeader{Index: 3})
			hold(s)
		}, true},
		{"sends no header", func(_ wire.BlockRequest, s network.Stream) {
			_, _ = s.Write(bytes.Repeat([]byte{0xff}, 100))
			hold(s)
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			virtualtime.Test(t, func(t *testing.T) {
				b := newBench(t, 3)
				defer b.close()
				hostile(b, 1, c.answer)
				defer b.seed(2, data).Close()
				var caught atomic.Int32
				x, _ := b.fetcher(block.Options{Misbehaved: func(p peer.ID, err error) {
					if p != b.hosts[1].ID() || err == nil {
						t.Errorf("%s was reported for %v", p, err)
					}
					caught.Add(1)
				}})
				defer x.Close()
				got, err := x.Fetch(t.Context(), cid, []wire.PeerID{b.hint(1)}, 0)
				if err != nil || !bytes.Equal(got, data) {
					t.Fatalf("fetch: %v", err)
				}
				synctest.Wait()
				if (caught.Load() == 1) != c.misbehaved {
					t.Errorf("the first peer was reported %d times, want it: %v", caught.Load(), c.misbehaved)
				}
				if s := x.Stats(); s.Retried != 1 {
					t.Errorf("moved on %d times, want once", s.Retried)
				}
			})
		})
	}
}

// Members that claim to have blocks and never send them, or send them too slowly to be of use, hold up no package of many
// blocks: they are waited for once, together with others, and not for each block.
func TestSilentHoldersHoldUpLittle(t *testing.T) {
	for name, answer := range map[string]func(wire.BlockRequest, network.Stream){
		"silent": func(_ wire.BlockRequest, s network.Stream) { hold(s) },
		"dribbling": func(_ wire.BlockRequest, s network.Stream) {
			writeHeader(s, wire.BlockHeader{Found: true, Bytes: wire.MaxBlockBytes})
			for {
				time.Sleep(time.Second)
				if _, err := s.Write(make([]byte, 100)); err != nil {
					return
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtualtime.Test(t, func(t *testing.T) {
				b := newBench(t, 6)
				defer b.close()
				defer time.Sleep(2 * time.Second) // Lets the last dribble find its stream closed.
				var hints []wire.PeerID
				for i := 1; i < 5; i++ {
					hostile(b, i, answer)
					hints = append(hints, b.hint(i))
				}
				hints = append(hints, b.hint(5))
				var blocks [][]byte
				for i := range 20 {
					blocks = append(blocks, blockOf(5000, i))
				}
				defer b.seed(5, blocks...).Close()
				x, _ := b.fetcher(block.Options{})
				defer x.Close()
				start := time.Now()
				for _, data := range blocks {
					if got, err := x.Fetch(t.Context(), wire.SumCID(data), hints, 0); err != nil || !bytes.Equal(got, data) {
						t.Fatal(err)
					}
				}
				// Four times 3 s for the first block, and round trips.
				if took := time.Since(start); took > 20*time.Second {
					t.Errorf("20 blocks took %s of virtual time", took)
				}
			})
		})
	}
}

// Callers that give up sooner than a silent peer is given up get the block all the same when they ask again and again.
func TestImpatientCallersGetPastSilentHolders(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		b := newBench(t, 8)
		defer b.close()
		var hints []wire.PeerID
		for i := 1; i < 7; i++ {
			hostile(b, i, func(_ wire.BlockRequest, s network.Stream) { hold(s) })
			hints = append(hints, b.hint(i))
		}
		data := blockOf(5000, 1)
		defer b.seed(7, data).Close()
		x, _ := b.fetcher(block.Options{})
		defer x.Close()
		for range 4 {
			ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
			_, err := x.Fetch(ctx, wire.SumCID(data), append(hints, b.hint(7)), 0)
			cancel()
			if err == nil {
				return
			}
		}
		t.Error("the block did not come")
	})
}

func TestFetchSaysWhy(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		b := newBench(t, 3)
		defer b.close()
		data := blockOf(3000, 1)
		defer b.seed(1).Close()
		defer b.seed(2, data).Close()
		x, store := b.fetcher(block.Options{})
		defer x.Close()
		if _, err := x.Fetch(t.Context(), wire.SumCID([]byte("nobody has it")), nil, 0); !errors.Is(err, block.ErrNotFound) {
			t.Errorf("a block that nobody has: %v, want ErrNotFound", err)
		}
		if _, err := x.Fetch(t.Context(), wire.SumCID(data), nil, 2999); !errors.Is(err, wire.ErrTooLarge) {
			t.Errorf("a block above the limit: %v, want ErrTooLarge", err)
		}
		if ok, err := store.Has(wire.SumCID(data)); ok || err != nil {
			t.Error("a block above the limit was stored")
		}
		if _, err := x.Fetch(t.Context(), wire.SumCID(data), nil, 3000); err != nil {
			t.Errorf("the same stream after it: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := x.Fetch(ctx, wire.SumCID([]byte("cancelled")), nil, 0); !errors.Is(err, context.Canceled) {
			t.Errorf("a cancelled fetch: %v", err)
		}
	})
}

func TestConcurrentFetchesOfOneBlockAreOne(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		b := newBench(t, 2)
		defer b.close()
		data := blockOf(100_000, 1)
		server := b.seed(1, data)
		defer server.Close()
		x, _ := b.fetcher(block.Options{})
		defer x.Close()
		impatient, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		var callers sync.WaitGroup
		for i := range 20 {
			callers.Go(func() {
				ctx := t.Context()
				if i%2 == 0 {
					ctx = impatient // Leaves without harm to the others.
				}
				if _, err := x.Fetch(ctx, wire.SumCID(data), nil, 0); (err != nil) != (i%2 == 0) {
					t.Errorf("caller %d: %v", i, err)
				}
			})
		}
		callers.Wait()
		if s := server.Stats(); s.Served != 1 {
			t.Errorf("the block was sent %d times", s.Served)
		}
		if s := x.Stats(); s.Fetched != 1 || s.Coalesced != 19 {
			t.Errorf("%+v", s)
		}
	})
}

func TestManyBlocksShareOneStream(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		b := newBench(t, 2)
		defer b.close()
		var blocks [][]byte
		for i := range 1000 {
			blocks = append(blocks, blockOf(1500, i))
		}
		server := b.seed(1, blocks...)
		defer server.Close()
		x, _ := b.fetcher(block.Options{})
		defer x.Close()
		start := time.Now()
		var callers sync.WaitGroup
		for _, data := range blocks {
			callers.Go(func() {
				if got, err := x.Fetch(t.Context(), wire.SumCID(data), nil, 0); err != nil || !bytes.Equal(got, data) {
					t.Error(err)
				}
			})
		}
		callers.Wait()
		// 1.5 MB at 50 Mbit/s take 0.25 s and a round trip 0.08 s; without pipelining it would be 80 s.
		if took := time.Since(start); took > 3*time.Second {
			t.Errorf("1000 blocks took %s of virtual time", took)
		}
		if n := len(b.hosts[0].Network().ConnsToPeer(b.hosts[1].ID())[0].GetStreams()); n > 6 {
			t.Errorf("%d streams are open", n)
		}
	})
}

// The largest block arrives in one attempt from a peer as slow as a transfer may be.
func TestSlowestPeerIsWaitedFor(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		b := newBench(t, 2)
		defer b.close()
		data := blockOf(wire.MaxBlockBytes, 1)
		hostile(b, 1, func(_ wire.BlockRequest, s network.Stream) {
			time.Sleep(10 * time.Second)
			writeHeader(s, wire.BlockHeader{Found: true, Bytes: uint32(len(data))})
			for part := range slices.Chunk(data, 16<<10) {
				time.Sleep(time.Second)
				if _, err := s.Write(part); err != nil {
					return
				}
			}
			hold(s)
		})
		x, _ := b.fetcher(block.Options{})
		defer x.Close()
		got, err := x.Fetch(t.Context(), wire.SumCID(data), []wire.PeerID{b.hint(1)}, 0)
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("fetch: %v", err)
		}
	})
}

// A peer behind a slow uplink has more to send than arrives before the fetches give up. What arrives too late is kept, so
// that the next attempt finds it; otherwise the peer would send the same again and again.
func TestLateBlocksAreKept(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		b := newBench(t, 1)
		defer b.close()
		slow, err := b.net.Host(simnet.Key(7, 1), netip.AddrPortFrom(simnet.Addr(1), 8000), 0.064, nil)
		if err != nil {
			t.Fatal(err)
		}
		b.hosts = append(b.hosts, slow)
		if err := b.hosts[0].Connect(t.Context(), peer.AddrInfo{ID: slow.ID(), Addrs: slow.Addrs()}); err != nil {
			t.Fatal(err)
		}
		var blocks [][]byte
		for i := range 16 {
			blocks = append(blocks, blockOf(20_000, i))
		}
		server := b.seed(1, blocks...)
		defer server.Close()
		x, _ := b.fetcher(block.Options{})
		defer x.Close()
		var callers sync.WaitGroup
		var missing atomic.Int32
		for _, data := range blocks {
			callers.Go(func() { // As a learner fetches bundles.
				for attempt := range 3 {
					ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
					_, err := x.Fetch(ctx, wire.SumCID(data), []wire.PeerID{b.hint(1)}, 0)
					cancel()
					if err == nil {
						return
					}
					time.Sleep(time.Second << attempt)
				}
				missing.Add(1)
			})
		}
		callers.Wait()
		if missing.Load() > 0 {
			t.Errorf("%d of %d blocks did not arrive: %+v, %+v", missing.Load(), len(blocks), x.Stats(), server.Stats())
		}
	})
}

func TestCloseFailsFetchesUnderWay(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		b := newBench(t, 2)
		defer b.close()
		hostile(b, 1, func(_ wire.BlockRequest, s network.Stream) { hold(s) })
		x, _ := b.fetcher(block.Options{})
		failed := make(chan error)
		go func() {
			_, err := x.Fetch(context.Background(), wire.SumCID([]byte("slow")), nil, 0)
			failed <- err
		}()
		synctest.Wait()
		go x.Close()
		if err := <-failed; err == nil {
			t.Error("the fetch succeeded")
		}
		synctest.Wait()
		if _, err := x.Fetch(context.Background(), wire.SumCID([]byte("late")), nil, 0); !errors.Is(err, block.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}
