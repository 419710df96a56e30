package p2p_test

import (
	"testing"
	"time"

	"github.com/lightswarm/lightswarm/p2p"
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
			offers := asker.FindPackages(t.Context(), manifest)
			if len(offers) != want {
				t.Errorf("%d offers, want %d", len(offers), want)
			}
			for _, o := range offers {
				if o.ID != statement.ID || len(o.Holders) != 1 || o.Holders[0] != holder.key.Peer() {
					t.Errorf("%+v", o)
				}
			}
		}
		time.Sleep(5 * time.Minute)
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
