package discovery_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/lightswarm/lightswarm/p2p/discovery"
	"github.com/lightswarm/lightswarm/virtualtime"
	"github.com/lightswarm/lightswarm/wire"
)

// TestKademliaFindsMembers has five hosts that know only the first find one another through the table, and not those
// of another network.
func TestKademliaFindsMembers(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		l := newLAN(t, 6)
		defer l.close()
		var mu sync.Mutex
		found := make([]map[peer.ID]bool, len(l.hosts))
		for i, h := range l.hosts {
			if i > 0 {
				l.connect(i, 0)
			}
			found[i] = make(map[peer.ID]bool)
			network := networkID
			if i == 5 {
				network = wire.SumCID([]byte("another network"))
			}
			source := discovery.NewKademlia(h, network, nil)
			l.start(func(ctx context.Context) {
				if err := source.Run(ctx, func(info peer.AddrInfo) {
					mu.Lock()
					defer mu.Unlock()
					found[i][info.ID] = true
				}); err != nil {
					t.Errorf("host %d: %v", i, err)
				}
			})
		}
		time.Sleep(5 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		for i := range 5 {
			if len(found[i]) != 4 || found[i][l.hosts[5].ID()] {
				t.Errorf("host %d found %d peers, want the 4 other members", i, len(found[i]))
			}
		}
		if len(found[5]) != 0 {
			t.Errorf("the host of another network found %d peers", len(found[5]))
		}
	})
}

// TestKademliaFindsProviders has a host that knows only the first one find who has something: soon after somebody got it,
// and not after the names that nobody has.
func TestKademliaFindsProviders(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		l := newLAN(t, 5)
		defer l.close()
		var mu sync.Mutex
		var has []string
		var tables []*discovery.Kademlia
		for i, h := range l.hosts {
			if i > 0 {
				l.connect(i, 0)
			}
			var provides func() []string
			if i == 3 {
				provides = func() []string {
					mu.Lock()
					defer mu.Unlock()
					return has
				}
			}
			table := discovery.NewKademlia(h, networkID, provides)
			if got := slices.Collect(table.Providers(t.Context(), "thing")); got != nil {
				t.Errorf("host %d has no table yet and found %v", i, got)
			}
			tables = append(tables, table)
			l.start(func(ctx context.Context) {
				if err := table.Run(ctx, func(peer.AddrInfo) {}); err != nil {
					t.Errorf("host %d: %v", i, err)
				}
			})
		}
		time.Sleep(5 * time.Minute)
		if got := slices.Collect(tables[4].Providers(t.Context(), "thing")); len(got) != 0 {
			t.Errorf("%d peers provide what nobody has", len(got))
		}
		mu.Lock()
		has = []string{"thing"}
		mu.Unlock()
		tables[3].Changed()
		time.Sleep(10 * time.Second)
		if got := slices.Collect(tables[4].Providers(t.Context(), "thing")); len(got) != 1 || got[0].ID != l.hosts[3].ID() {
			t.Errorf("found %v, want host 3", got)
		}
		if got := slices.Collect(tables[3].Providers(t.Context(), "thing")); len(got) != 0 {
			t.Errorf("host 3 found itself: %v", got)
		}
	})
}
