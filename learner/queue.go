package learner

import (
	"slices"
	"time"

	"github.com/lightswarm/lightswarm/wire"
)

// job is an announcement whose bundle is to be fetched.
type job struct {
	announcement *wire.SignedAnnouncement
	// failures is how often fetching it failed; notBefore is when it may be tried again.
	failures  int
	notBefore time.Time
}

// queue holds the jobs that wait for a fetch, each peer's in a line of its own. Peers take turns, so that many
// announcements of one do not delay another's, and a peer may have as many fetches at a time as are free: half of all if it
// is alone, a third each for two, and so on. So peers that answer slowly or never, however many, always leave some to
// others (the dynamic thresholds of Choudhury and Hahne, 1998). It is a state machine without I/O, and not safe for
// concurrent use.
type queue struct {
	limit    int // jobs in all
	fetches  int // at a time
	fetching int
	size     int
	lines    map[wire.PeerID]*line
	turns    []wire.PeerID // the peers with a line, the next one first
}

type line struct {
	waiting  []job
	fetching int
}

func newQueue(limit, fetches int) *queue {
	return &queue{limit: limit, fetches: fetches, lines: make(map[wire.PeerID]*line)}
}

// push adds a job. When the queue is full it makes room: it drops and returns the oldest job of the longest line, which
// may be the new one's own.
func (q *queue) push(j job) (dropped *job) {
	peer := j.announcement.Signer
	l := q.lines[peer]
	if l == nil {
		l = &line{}
		q.lines[peer] = l
		q.turns = append(q.turns, peer)
	}
	l.waiting = append(l.waiting, j)
	q.size++
	if q.size <= q.limit {
		return nil
	}
	longest := l
	for _, peer := range q.turns {
		if other := q.lines[peer]; len(other.waiting) > len(longest.waiting) {
			longest = other
		}
	}
	old := longest.waiting[0]
	longest.waiting = slices.Delete(longest.waiting, 0, 1)
	q.size--
	q.tidy(old.announcement.Signer)
	return &old
}

// pop takes the next job that may be fetched now. When there is none it returns when one may be, zero for never unless
// something changes. Exactly one done follows each job.
func (q *queue) pop(now time.Time) (j job, ok bool, next time.Time) {
	for turn, peer := range q.turns {
		l := q.lines[peer]
		if l.fetching >= q.fetches-q.fetching {
			continue
		}
		for i, candidate := range l.waiting {
			if candidate.notBefore.After(now) {
				if next.IsZero() || candidate.notBefore.Before(next) {
					next = candidate.notBefore
				}
				continue
			}
			l.waiting = slices.Delete(l.waiting, i, i+1)
			l.fetching++
			q.fetching++
			q.size--
			q.turns = append(slices.Delete(q.turns, turn, turn+1), peer)
			return candidate, true, time.Time{}
		}
	}
	return job{}, false, next
}

// done ends the fetch of a job of this peer.
func (q *queue) done(peer wire.PeerID) {
	q.lines[peer].fetching--
	q.fetching--
	q.tidy(peer)
}

// tidy forgets a peer that has nothing in the queue.
func (q *queue) tidy(peer wire.PeerID) {
	if l := q.lines[peer]; len(l.waiting) > 0 || l.fetching > 0 {
		return
	}
	delete(q.lines, peer)
	q.turns = slices.DeleteFunc(q.turns, func(p wire.PeerID) bool { return p == peer })
}
