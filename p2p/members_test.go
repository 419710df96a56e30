package p2p

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/lightswarm/lightswarm/p2p/simnet"
	"github.com/lightswarm/lightswarm/virtualtime"
)

// A peer whose answer is read after it has left is not counted as connected for ever: nobody would take it out again.
func TestMembersAreConnected(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		net := simnet.New(time.Millisecond)
		net.Start()
		defer net.Close()
		var infos [2]peer.AddrInfo
		p := &puller{members: newMembers(nil)}
		for i := range infos {
			h, err := net.Host(simnet.Key(1, i), netip.AddrPortFrom(simnet.Addr(i), 8000), 100, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close()
			p.host, infos[i] = h, peer.AddrInfo{ID: h.ID(), Addrs: h.Addrs()}
		}
		if err := p.host.Connect(t.Context(), infos[0]); err != nil {
			t.Fatal(err)
		}
		p.joined(infos[0].ID, 3)
		if n := p.members.count(); n != 1 {
			t.Errorf("%d members, want the one that is connected", n)
		}
		if err := p.host.Network().ClosePeer(infos[0].ID); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		p.joined(infos[0].ID, 3)
		if n := p.members.count(); n != 0 {
			t.Errorf("%d members after the only one left", n)
		}
	})
}
