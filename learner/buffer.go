package learner

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/lightswarm/lightswarm/wire"
)

// BatchRule says when a step has enough groups and which it takes.
type BatchRule struct {
	// Groups is how many groups a step trains on.
	Groups int
	// Dynamic is the largest multiple of Groups that a step takes, at least 1: it goes on, oldest first, until Groups of
	// those that it has teach something. At 1 it takes Groups, whatever they teach. Yu et al. 2025, arXiv 2503.14476,
	// section 3.2.
	Dynamic float64
	// PeerShare is the largest part of a batch that one peer supplies while others could supply the rest, in (0, 1].
	// It never forces a peer below an equal share.
	PeerShare float64
	// Patience is how long a step waits: with enough groups but too many of them from one peer, it fills up with that
	// peer's; with too few groups and none arriving, it takes what there is.
	Patience time.Duration
}

// Most is the largest number of groups that a step takes.
func (r BatchRule) Most() int { return max(r.Groups, int(r.Dynamic*float64(r.Groups))) }

// dynamic says whether it matters to a step what its groups teach.
func (r BatchRule) dynamic() bool { return r.Most() > r.Groups }

// Buffer holds the groups that wait to be trained on. It is a state machine without I/O, and not safe for concurrent
// use.
type Buffer struct {
	rule    BatchRule
	waiting []held // by version, then order
	// arrived is when the newest group came; full is when there were enough groups, zero while there are not.
	arrived, full time.Time
}

// held is a group that waits.
type held struct {
	Record
	teaches bool
}

// NewBuffer returns an empty buffer.
func NewBuffer(r BatchRule) *Buffer { return &Buffer{rule: r} }

// Len is the number of groups that wait.
func (b *Buffer) Len() int { return len(b.waiting) }

// Teaching is how many of the groups that wait teach something.
func (b *Buffer) Teaching() int {
	n := 0
	for _, h := range b.waiting {
		if h.teaches {
			n++
		}
	}
	return n
}

// Enough says whether there are enough groups for a step, whoever supplied them.
func (b *Buffer) Enough() bool {
	return len(b.waiting) >= b.rule.Most() || b.Teaching() >= b.rule.Groups
}

func older(a, b Record) int {
	return cmp.Or(cmp.Compare(a.Version, b.Version), cmp.Compare(a.Order, b.Order))
}

// Add puts a group where its age belongs. teaches says whether there is something to learn from it; where BatchRule.Dynamic
// is 1 that makes no difference.
func (b *Buffer) Add(r Record, teaches bool, now time.Time) {
	i, _ := slices.BinarySearchFunc(b.waiting, r, func(h held, r Record) int { return older(h.Record, r) })
	b.waiting = slices.Insert(b.waiting, i, held{r, teaches})
	b.arrived = now
	b.mark(now)
}

func (b *Buffer) mark(now time.Time) {
	if !b.Enough() {
		b.full = time.Time{}
	} else if b.full.IsZero() {
		b.full = now
	}
}

// Expire removes and returns the groups that lag more than maxLag behind head.
func (b *Buffer) Expire(head, maxLag uint64, now time.Time) []Record {
	n, _ := slices.BinarySearchFunc(b.waiting, head-min(head, maxLag), func(h held, oldest uint64) int {
		return cmp.Compare(h.Version, oldest)
	})
	expired := make([]Record, n)
	for i := range expired {
		expired[i] = b.waiting[i].Record
	}
	b.waiting = slices.Delete(b.waiting, 0, n)
	b.mark(now)
	return expired
}

// Take removes and returns the groups of the next step, oldest first. When it is not time for a step it returns none,
// and how long to wait before asking again if no group comes; 0 means for ever.
func (b *Buffer) Take(now time.Time) (batch []Record, wait time.Duration) {
	if len(b.waiting) == 0 {
		return nil, 0
	}
	chosen, enough := b.choose(b.limit(b.rule.Most()), b.limit(b.rule.Groups))
	if !enough {
		since := b.arrived
		if !b.full.IsZero() {
			since = b.full
		}
		if wait = since.Add(b.rule.Patience).Sub(now); wait > 0 {
			return nil, wait
		}
		chosen, _ = b.choose(b.rule.Most(), b.rule.Groups)
	}
	b.remove(chosen)
	b.mark(now)
	return chosen, 0
}

// Rest removes and returns the oldest groups, as many as a step takes, without waiting for anything.
func (b *Buffer) Rest() []Record {
	rest, _ := b.choose(b.rule.Most(), b.rule.Groups)
	b.remove(rest)
	return rest
}

func (b *Buffer) remove(chosen []Record) {
	taken := make(map[wire.CID]bool, len(chosen))
	for _, r := range chosen {
		taken[r.CID] = true
	}
	b.waiting = slices.DeleteFunc(b.waiting, func(h held) bool { return taken[h.CID] })
	b.full = time.Time{}
}

// choose returns the oldest groups that a step takes: of any peer at most perPeer, and of those that teach at most
// teachPerPeer. enough says that the step needs no more.
func (b *Buffer) choose(perPeer, teachPerPeer int) (chosen []Record, enough bool) {
	from, teachFrom := make(map[wire.PeerID]int), make(map[wire.PeerID]int)
	teaching := 0
	for _, h := range b.waiting {
		if from[h.Peer] == perPeer || teachFrom[h.Peer] == teachPerPeer {
			continue
		}
		from[h.Peer]++
		if h.teaches {
			teachFrom[h.Peer]++
			teaching++
		}
		chosen = append(chosen, h.Record)
		if enough = len(chosen) == b.rule.Most() || teaching == b.rule.Groups; enough {
			break
		}
	}
	return chosen, enough
}

// limit is how many of some groups one peer supplies: its share, but at least an equal part.
func (b *Buffer) limit(groups int) int {
	peers := make(map[wire.PeerID]bool)
	for _, h := range b.waiting {
		peers[h.Peer] = true
	}
	equal := (groups + len(peers) - 1) / len(peers)
	return max(equal, int(math.Ceil(b.rule.PeerShare*float64(groups))))
}
