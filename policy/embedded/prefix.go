package embedded

import (
	"container/list"

	"github.com/lightswarm/lightswarm/policy/transformer"
)

// patience is how many tokens a call must save to wait for a lane that is about to compute them, rather than start
// from what is there.
const patience = 8

// sequence is some tokens of a policy and the keys and values of the first cache.Len() of them.
type sequence struct {
	resident *resident
	tokens   []int32
	cache    *transformer.Cache
}

// idle is a sequence whose call has ended. All of its tokens are in its cache.
type idle struct {
	sequence
	place *list.Element // in prefixes.idle
	node  *node         // where its tokens lead in its policy's tree
}

// prefixes are the sequences whose calls have ended, for new calls to start from. Of those with the same tokens it keeps one.
type prefixes struct {
	idle   list.List // of *idle, least recently used first
	trees  map[*resident]*node
	bytes  int // of their caches
	budget int
}

// start returns a cache with the longest prefix of wanted that an idle or running sequence of r holds. It returns
// nil if a running one is about to hold a longer one that is worth waiting for: the caller asks again after a step.
func (p *prefixes) start(r *resident, wanted []int32, running []*lane) *transformer.Cache {
	var source *transformer.Cache
	kept, now := p.trees[r].find(wanted)
	if kept != nil {
		source = kept.cache
	}
	soon := 0
	for _, l := range running {
		if l.resident == r && l.cache != nil {
			n := shared(l.tokens, wanted)
			soon = max(soon, n)
			if n = min(n, l.cache.Len()); n > now {
				kept, source, now = nil, l.cache, n
			}
		}
	}
	switch {
	case soon >= now+patience:
		return nil
	case source == nil:
		return r.model.NewCache()
	case kept != nil && now == len(kept.tokens):
		// Whoever wants this prefix later finds it in the sequence that continues it.
		p.remove(kept)
		return source
	case kept != nil:
		p.idle.MoveToBack(kept.place)
	}
	cache := r.model.NewCache()
	cache.CopyPrefix(source, now)
	return cache
}

// keep takes a sequence whose call has ended, and drops the least recently used ones that the budget has no room for.
func (p *prefixes) keep(s sequence) {
	if s.cache == nil || s.cache.Len() == 0 || s.resident.retired {
		return
	}
	s.tokens = s.tokens[:s.cache.Len()]
	tree := p.trees[s.resident]
	if tree == nil {
		tree = &node{}
		if p.trees == nil {
			p.trees = make(map[*resident]*node)
		}
		p.trees[s.resident] = tree
	}
	kept := &idle{sequence: s, node: tree.reach(s.tokens)}
	if same := kept.node.end; same != nil {
		p.drop(same)
	}
	kept.node.end = kept
	kept.place = p.idle.PushBack(kept)
	p.bytes += s.cache.Bytes()
	for p.bytes > p.budget {
		p.remove(p.idle.Front().Value.(*idle))
	}
}

// forget drops the sequences of r.
func (p *prefixes) forget(r *resident) {
	for at := p.idle.Front(); at != nil; {
		kept := at.Value.(*idle)
		at = at.Next()
		if kept.resident == r {
			p.drop(kept)
		}
	}
	delete(p.trees, r)
}

// remove drops a sequence, and what led to it alone.
func (p *prefixes) remove(kept *idle) {
	p.drop(kept)
	kept.node.leave()
}

// drop takes a sequence out of all but its tree.
func (p *prefixes) drop(kept *idle) {
	p.bytes -= kept.cache.Bytes()
	p.idle.Remove(kept.place)
}
