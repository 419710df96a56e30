package embedded

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The tree finds what a walk over all sequences finds, whatever was added and taken out before, and stays small.
func TestTreeFindsTheLongestPrefix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tokens := rapid.SliceOfN(rapid.Int32Range(0, 2), 1, 6)
		root, held := &node{}, []*idle(nil)
		for range rapid.IntRange(1, 40).Draw(t, "operations") {
			if len(held) > 0 && rapid.IntRange(0, 2).Draw(t, "take out") == 0 {
				at := rapid.IntRange(0, len(held)-1).Draw(t, "which")
				held[at].node.leave()
				held = slices.Delete(held, at, at+1)
			} else {
				s := &idle{}
				s.tokens = tokens.Draw(t, "sequence")
				s.node = root.reach(s.tokens)
				if s.node.end == nil {
					s.node.end = s
					held = append(held, s)
				}
			}
			if n := count(t, root); n > 2*len(held)+1 {
				t.Fatalf("%d nodes for %d sequences", n, len(held))
			}
			wanted := tokens.Draw(t, "wanted")
			best, ends := 0, false
			for _, s := range held {
				n := shared(s.tokens, wanted)
				ends = n > best && n == len(s.tokens) || n == best && (ends || n > 0 && n == len(s.tokens))
				best = max(best, n)
			}
			found, n := root.find(wanted)
			switch {
			case n != best:
				t.Fatalf("%d tokens of %v were found, a walk finds %d", n, wanted, best)
			case (found == nil) != (n == 0):
				t.Fatalf("found %v for %d tokens", found, n)
			case found != nil && (shared(found.tokens, wanted) != n || !slices.Contains(held, found)):
				t.Fatalf("%v was found for %v", found.tokens, wanted)
			case ends && len(found.tokens) != n:
				t.Fatalf("%v was found for %v, though a sequence ends with what they share", found.tokens, wanted)
			}
		}
	})
}

// count returns the number of nodes, and checks their form.
func count(t *rapid.T, n *node) int {
	if n.parent != nil && n.end == nil && len(n.next) < 2 {
		t.Fatalf("a node with label %v leads nowhere", n.label)
	}
	all := 1
	for i, c := range n.next {
		if c.parent != n || i > 0 && n.next[i-1].label[0] >= c.label[0] {
			t.Fatalf("the branches behind label %v are in disorder", n.label)
		}
		all += count(t, c)
	}
	return all
}

// Of sequences with the same tokens, which a policy that does not change brings again and again, one is kept.
func TestSameTokensAreKeptOnce(t *testing.T) {
	b := newBench(t, Options{Slots: 4, Threads: 1})
	for range 4 {
		b.call(t.Context(), prompt(10, 0), 2)
	}
	b.run()
	if n, bytes := b.prefixes.idle.Len(), b.prefixes.bytes; n != 1 || bytes != b.prefixes.idle.Front().Value.(*idle).cache.Bytes() {
		t.Errorf("%d sequences with %d bytes are kept", n, bytes)
	}
}
