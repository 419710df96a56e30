package embedded

import (
	"cmp"
	"slices"
)

// node is a place in a tree of token sequences, where those with the same first tokens share a path (a radix tree: Morrison,
// PATRICIA, 1968). To find, add or take out a sequence takes time with its length and the branches that leave its path, but
// not with how many sequences there are; there are at most twice as many nodes.
type node struct {
	parent *node
	label  []int32 // the tokens from parent to here, which nobody changes; the root, which has none, has no label
	next   []*node // by the first tokens of their labels, which differ
	end    *idle   // the sequence that ends here; a node without one has two branches or more, but for the root
}

// shared is how many first tokens a and b have in common.
func shared(a, b []int32) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// branch is where in n.next a label that begins with token is, or belongs.
func (n *node) branch(token int32) (at int, found bool) {
	return slices.BinarySearchFunc(n.next, token, func(c *node, t int32) int { return cmp.Compare(c.label[0], t) })
}

// find returns a sequence that shares the most first tokens with wanted, and how many: one that ends with them, if there is
// one. It returns nil if none shares any. A nil root is an empty tree.
func (n *node) find(wanted []int32) (*idle, int) {
	now := 0
	for n != nil && now < len(wanted) {
		at, found := n.branch(wanted[now])
		if !found {
			break
		}
		n = n.next[at]
		same := shared(n.label, wanted[now:])
		now += same
		if same < len(n.label) {
			break
		}
	}
	if now == 0 {
		return nil, 0
	}
	for n.end == nil {
		n = n.next[0]
	}
	return n.end, now
}

// reach returns the node that tokens, at least one, lead to from the root n. It makes it where there is none; the caller
// then gives it an end.
func (n *node) reach(tokens []int32) *node {
	for len(tokens) > 0 {
		at, found := n.branch(tokens[0])
		if !found {
			leaf := &node{parent: n, label: tokens}
			n.next = slices.Insert(n.next, at, leaf)
			return leaf
		}
		c := n.next[at]
		same := shared(c.label, tokens)
		if same < len(c.label) {
			middle := &node{parent: n, label: c.label[:same], next: []*node{c}}
			c.parent, c.label = middle, c.label[same:]
			n.next[at] = middle
			c = middle
		}
		n, tokens = c, tokens[same:]
	}
	return n
}

// leave takes the end off n, and out of the tree what is there for it alone.
func (n *node) leave() {
	n.end = nil
	if len(n.next) == 0 {
		at, _ := n.parent.branch(n.label[0])
		n.parent.next = slices.Delete(n.parent.next, at, at+1)
		n = n.parent
	}
	if n.parent != nil && n.end == nil && len(n.next) == 1 {
		c := n.next[0]
		c.parent, c.label = n.parent, slices.Concat(n.label, c.label)
		at, _ := n.parent.branch(c.label[0])
		n.parent.next[at] = c
	}
}
