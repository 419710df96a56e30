package embedded

import (
	"slices"

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

// shares is how many of the first tokens of s are those of wanted.
func (s *sequence) shares(wanted []int32) int {
	n := min(len(s.tokens), len(wanted))
	for i := range n {
		if s.tokens[i] != wanted[i] {
			return i
		}
	}
	return n
}

// prefixes are the sequences whose calls have ended, for new calls to start from.
type prefixes struct {
	idle   []*sequence // least recently used first; all of their tokens are in their caches
	bytes  int         // of their caches
	budget int
}

// start returns a cache with the longest prefix of wanted that an idle or running sequence of r holds. It returns
// nil if a running one is about to hold a longer one that is worth waiting for: the caller asks again after a step.
func (p *prefixes) start(r *resident, wanted []int32, running []*lane) *transformer.Cache {
	var source *sequence
	now, soon := 0, 0
	for _, s := range p.idle {
		if s.resident == r {
			if n := s.shares(wanted); n > now {
				source, now = s, n
			}
		}
	}
	for _, l := range running {
		if l.resident == r && l.cache != nil {
			n := l.shares(wanted)
			soon = max(soon, n)
			if n = min(n, l.cache.Len()); n > now {
				source, now = &l.sequence, n
			}
		}
	}
	if soon >= now+patience {
		return nil
	}
	if source == nil {
		return r.model.NewCache()
	}
	if i := slices.Index(p.idle, source); i >= 0 {
		if now == len(source.tokens) {
			// Whoever wants this prefix later finds it in the sequence that continues it.
			p.remove(i)
			return source.cache
		}
		p.idle = append(slices.Delete(p.idle, i, i+1), source) // most recently used
	}
	cache := r.model.NewCache()
	cache.CopyPrefix(source.cache, now)
	return cache
}

// keep takes a sequence whose call has ended, and drops the least recently used ones that the budget has no room for.
func (p *prefixes) keep(s sequence) {
	if s.cache == nil || s.cache.Len() == 0 || s.resident.retired {
		return
	}
	s.tokens = s.tokens[:s.cache.Len()]
	p.idle = append(p.idle, &s)
	p.bytes += s.cache.Bytes()
	for p.bytes > p.budget {
		p.remove(0)
	}
}

// forget drops the sequences of r.
func (p *prefixes) forget(r *resident) {
	for i := len(p.idle) - 1; i >= 0; i-- {
		if p.idle[i].resident == r {
			p.remove(i)
		}
	}
}

func (p *prefixes) remove(i int) {
	p.bytes -= p.idle[i].cache.Bytes()
	p.idle = slices.Delete(p.idle, i, i+1)
}
