package block_test

import (
	"sync"
	"testing"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/lightswarm/lightswarm/p2p/block"
	"github.com/lightswarm/lightswarm/wire"
)

// BenchmarkFetch moves distinct blocks between two hosts over loopback TCP with TLS, many fetches at a time.
func BenchmarkFetch(b *testing.B) {
	for _, c := range []struct {
		name        string
		size, fleet int
	}{{"1500B", 1500, 256}, {"64KiB", 64 << 10, 64}, {"1MiB", 1 << 20, 16}} {
		b.Run(c.name, func(b *testing.B) {
			from, to := tcpHost(b), tcpHost(b)
			defer from.Close()
			defer to.Close()
			if err := to.Connect(b.Context(), peer.AddrInfo{ID: from.ID(), Addrs: from.Addrs()}); err != nil {
				b.Fatal(err)
			}
			server := block.New(from, generator(c.size), block.Options{})
			defer server.Close()
			client := block.New(to, block.NewMemoryStore(8<<20), block.Options{})
			defer client.Close()
			hints := []wire.PeerID{wire.PeerID(from.ID())}
			cids := make(chan wire.CID, c.fleet)
			b.SetBytes(int64(c.size))
			b.ReportAllocs()
			b.ResetTimer()
			var fleet sync.WaitGroup
			for range c.fleet {
				fleet.Go(func() {
					for cid := range cids {
						if _, err := client.Fetch(b.Context(), cid, hints, 0); err != nil {
							b.Error(err)
						}
					}
				})
			}
			for i := range b.N {
				cids <- wire.SumCID(blockOf(c.size, i%numBlocks(c.size)))
			}
			close(cids)
			fleet.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "blocks/s")
		})
	}
}

// numBlocks is how many blocks of a size the generator has: more than the fetching store keeps.
func numBlocks(size int) int { return (32<<20)/size + 1 }

// generator is a store with numBlocks blocks of one size.
func generator(size int) block.Store {
	store := block.NewMemoryStore(40 << 20)
	for i := range numBlocks(size) {
		data := blockOf(size, i)
		if err := store.Put(wire.SumCID(data), data); err != nil {
			panic(err)
		}
	}
	return store
}

func tcpHost(b *testing.B) host.Host {
	h, err := libp2p.New(libp2p.ListenAddrStrings("/ip4/127.0.0.1/tcp/0"), libp2p.DisableMetrics())
	if err != nil {
		b.Fatal(err)
	}
	return h
}
