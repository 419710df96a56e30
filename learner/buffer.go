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
	// PeerShare is the largest part of a batch that one peer supplies while others could supply the rest, in (0, 1].
	// It never forces a peer below an equal share.
	PeerShare float64
	// Patience is how long a step waits: with enough groups but too many of them from one peer, it fills up with that
	// peer's; with too few groups and none arriving, it takes what there is.
	Patience time.Duration
}

// Buffer holds the groups that wait to be trained on. It is a state machine without I/O, and not safe for concurrent
// use.
type Buffer struct {
	rule    BatchRule
	waiting []Record // by version, then order
	// arrived is when the newest group came; full is when there were enough groups, zero while there are not.
	arrived, full time.Time
}

// NewBuffer returns an empty buffer.
func NewBuffer(r BatchRule) *Buffer { return &Buffer{rule: r} }

// Len is the number of groups that wait.
func (b *Buffer) Len() int { return len(b.waiting) }

func older(a, b Record) int {
	return cmp.Or(cmp.Compare(a.Version, b.Version), cmp.Compare(a.Order, b.Order))
}

// Add puts a group where its age belongs.
func (b *Buffer) Add(r Record, now time.Time) {
	i, _ := slices.BinarySearchFunc(b.waiting, r, older)
	b.waiting = slices.Insert(b.waiting, i, r)
	b.arrived = now
	b.mark(now)
}

func (b *Buffer) mark(now time.Time) {
	if len(b.waiting) < b.rule.Groups {
		b.full = time.Time{}
	} else if b.full.IsZero() {
		b.full = now
	}
}

// Expire removes and returns the groups that lag more than maxLag behind head.
func (b *Buffer) Expire(head, maxLag uint64, now time.Time) []Record {
	n, _ := slices.BinarySearchFunc(b.waiting, head-min(head, maxLag), func(r Record, oldest uint64) int {
		return cmp.Compare(r.Version, oldest)
	})
	expired := slices.Clone(b.waiting[:n])
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
	chosen := b.choose(b.limit())
	if len(chosen) < b.rule.Groups {
		since := b.arrived
		if !b.full.IsZero() {
			since = b.full
		}
		if wait = since.Add(b.rule.Patience).Sub(now); wait > 0 {
			return nil, wait
		}
		chosen = b.choose(b.rule.Groups)
	}
	taken := make(map[wire.CID]bool, len(chosen))
	for _, r := range chosen {
		taken[r.CID] = true
	}
	b.waiting = slices.DeleteFunc(b.waiting, func(r Record) bool { return taken[r.CID] })
	b.full = time.Time{}
	b.mark(now)
	return chosen, 0
}

// Rest removes and returns the oldest groups, a batch at most, without waiting for anything.
func (b *Buffer) Rest() []Record {
	n := min(len(b.waiting), b.rule.Groups)
	rest := slices.Clone(b.waiting[:n])
	b.waiting = slices.Delete(b.waiting, 0, n)
	b.full = time.Time{}
	return rest
}

// choose returns the oldest groups, at most perPeer of any peer and a batch in all.
func (b *Buffer) choose(perPeer int) []Record {
	var chosen []Record
	from := make(map[wire.PeerID]int)
	for _, r := range b.waiting {
		if len(chosen) == b.rule.Groups {
			break
		}
		if from[r.Peer] < perPeer {
			from[r.Peer]++
			chosen = append(chosen, r)
		}
	}
	return chosen
}

// limit is how many groups of one peer a batch takes: its share, but at least an equal part.
func (b *Buffer) limit() int {
	peers := make(map[wire.PeerID]bool)
	for _, r := range b.waiting {
		peers[r.Peer] = true
	}
	equal := (b.rule.Groups + len(peers) - 1) / len(peers)
	return max(equal, int(math.Ceil(b.rule.PeerShare*float64(b.rule.Groups))))
}
