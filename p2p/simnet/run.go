package simnet

import (
	"net/netip"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/lightswarm/lightswarm/virtualtime"
)

// Run runs a test in virtual time with some hosts, whose keys are those of a seed. The first is connected to each of the
// others, 10 ms away.
func Run(t *testing.T, seed uint64, hosts int, test func(t *testing.T, hosts []host.Host)) {
	virtualtime.Test(t, func(t *testing.T) {
		net := New(10 * time.Millisecond)
		net.Start()
		defer net.Close()
		list := make([]host.Host, hosts)
		for i := range list {
			h, err := net.Host(Key(seed, i), netip.AddrPortFrom(Addr(i), 8000), 50, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := h.Close(); err != nil {
					t.Error(err)
				}
			}()
			list[i] = h
		}
		for _, h := range list[1:] {
			if err := list[0].Connect(t.Context(), peer.AddrInfo{ID: h.ID(), Addrs: h.Addrs()}); err != nil {
				t.Fatal(err)
			}
		}
		test(t, list)
	})
}
