package p2p_test

import (
	"context"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/lightswarm/lightswarm/p2p"
	"github.com/lightswarm/lightswarm/p2p/packages"
	"github.com/lightswarm/lightswarm/virtualtime"
	"github.com/lightswarm/lightswarm/wire"
)

// statements is a source of what a node keeps.
type statements []wire.SignedEnvironmentPackage

func (s statements) Packages(manifest wire.CID, most int) (list [][]byte, _ error) {
	for _, p := range s {
		if len(list) < most && (!manifest.Defined() || p.Manifest == manifest) {
			list = append(list, p.Raw)
		}
	}
	return list, nil
}

// advertised is when a node's second round of advertisements is over, for whom the first, after 5 seconds, came too early. The
// table's upkeep costs a test of it more than anything else, so that none waits for longer.
const advertised = 150 * time.Second

// A package is found at members that are connected, and through the Kademlia table at one that is not.
func TestPackagesAreFound(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		w := newWorld(t, 41)
		defer w.close()
		statement, err := wire.SignEnvironmentPackage(wire.NewKey(w.private(9)), wire.EnvironmentPackage{
			Name: "letters", Version: "1.0.0", Manifest: wire.SumCID([]byte("letters")), Created: time.UnixMilli(1),
		})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 4 {
			w.add(func(c *p2p.Config) {
				c.DHT = true
				if i == 3 {
					c.Packages = statements{statement}
				}
			})
		}
		asker, holder := w.nodes[2], w.nodes[3]
		find := func(manifest wire.CID, want int) {
			t.Helper()
			offers := asker.FindPackages(t.Context(), manifest, false)
			if len(offers) != want {
				t.Errorf("%d offers, want %d", len(offers), want)
			}
			for _, o := range offers {
				if o.ID != statement.ID || len(o.Holders) != 1 || o.Holders[0] != holder.key.Peer() {
					t.Errorf("%+v", o)
				}
			}
		}
		time.Sleep(advertised)
		w.connect(asker, holder)
		time.Sleep(time.Minute)
		find(wire.CID{}, 1)
		find(statement.Manifest, 1)
		find(wire.SumCID([]byte("nobody's")), 0)

		if err := asker.Host().Network().ClosePeer(holder.Host().ID()); err != nil {
			t.Fatal(err)
		}
		find(wire.CID{}, 0)
		find(statement.Manifest, 1)
	})
}

// letters is an author's statement about an environment that does not exist.
func letters(t *testing.T, w *world) wire.SignedEnvironmentPackage {
	t.Helper()
	s, err := wire.SignEnvironmentPackage(wire.NewKey(w.private(90)), wire.EnvironmentPackage{
		Name: "letters", Version: "1.0.0", Manifest: wire.SumCID([]byte("letters")), Created: time.UnixMilli(1),
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// silence makes a node take questions about packages and answer none.
func silence(n *node) {
	n.Host().SetStreamHandler(packages.Protocol, func(s network.Stream) {
		for b := make([]byte, 100); ; {
			if _, err := s.Read(b); err != nil {
				return
			}
		}
	})
}

// A member that does not answer, and peers that the table names and that are gone, do not hold up what others offer. Close
// ends a question under way.
func TestSilentMembersHoldUpNoSearch(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		w := newWorld(t, 42)
		defer w.close()
		statement := letters(t, w)
		for i := range 7 {
			w.add(func(c *p2p.Config) {
				c.DHT = true
				if i >= 3 {
					c.Packages = statements{statement}
				}
			})
		}
		asker, holder := w.nodes[2], w.nodes[3]
		time.Sleep(advertised)
		w.connect(asker, holder)
		silence(w.nodes[1])
		w.waitFor("the asker has members", time.Minute, func() bool { return asker.Stats().Members >= 3 })
		find := func(everywhere bool, holders int, limit time.Duration) {
			t.Helper()
			start := time.Now()
			offers := asker.FindPackages(t.Context(), statement.Manifest, everywhere)
			if took := time.Since(start); len(offers) != 1 || len(offers[0].Holders) < holders || took > limit {
				t.Errorf("after %s: %+v", took, offers)
			}
		}
		find(false, 1, 5*time.Second)

		// Dead providers: all but one leave, and that one is not connected.
		for _, n := range w.nodes[4:] {
			n.stop()
		}
		if err := asker.Host().Network().ClosePeer(holder.Host().ID()); err != nil {
			t.Fatal(err)
		}
		find(false, 1, 18*time.Second) // 10 s for the silent member, and then some for the search.

		// Another one claims to keep it, and does not: everywhere finds who does. If the holder is still a member, it has
		// answered before the table is searched, and the search ends when all that the table names were dialled.
		liar := w.nodes[0]
		server := packages.Serve(liar.Host(), w.network, statements{statement})
		defer server.Close()
		find(true, 2, 28*time.Second) // 3 s for the silent member, 25 s at most for the search.

		silence(liar)
		answered := make(chan time.Time, 1)
		go func() {
			asker.FindPackages(context.Background(), wire.CID{}, false)
			answered <- time.Now()
		}()
		time.Sleep(time.Second)
		asker.stop()
		closed := time.Now()
		if at := <-answered; at.After(closed) {
			t.Errorf("the question ended %s after Close", at.Sub(closed))
		}
		if offers := asker.FindPackages(t.Context(), wire.CID{}, false); len(offers) != 0 {
			t.Errorf("a closed network offers %+v", offers)
		}
	})
}
