package node

import (
	"fmt"
	"testing"

	"github.com/lightswarm/lightswarm/wire"
)

func TestRoster(t *testing.T) {
	r := newRoster[int](3)
	add := func(peers ...wire.PeerID) {
		for i, p := range peers {
			*r.add(p, 0) += i
		}
	}
	check := func(when string, want ...wire.PeerID) {
		t.Helper()
		for _, p := range want {
			if r.get(p) == nil {
				t.Errorf("%s: %q is forgotten", when, p)
			}
		}
		if len(r.entries) != len(want) || r.proven.Len()+r.unproven.Len() != len(want) {
			t.Errorf("%s: %d peers are remembered, want %q", when, len(r.entries), want)
		}
	}
	add("a", "b", "c")
	check("full", "a", "b", "c")
	r.touch("a", false)
	add("d")
	check("the one that did nothing for longest makes room", "a", "c", "d")
	r.touch("c", true)
	r.touch("a", true)
	for i := range 10 {
		add(wire.PeerID(fmt.Sprint(i)))
	}
	check("peers with accepted work stay", "a", "c", "9")
	r.touch("9", true)
	r.touch("c", false)
	add("newcomer")
	check("when all have accepted work", "c", "9", "newcomer")
}
