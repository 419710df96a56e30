package lightning

import (
	"slices"
	"time"
)

// status is how a rollout or an attempt is, in Agent Lightning's words.
type status string

// The statuses. A rollout is queuing, then preparing and running as its last attempt is; requeuing is queuing again.
const (
	queuing      status = "queuing"
	requeuing    status = "requeuing"
	preparing    status = "preparing" // handed out
	running      status = "running"   // something was heard of it
	succeeded    status = "succeeded"
	failed       status = "failed"
	timeout      status = "timeout"
	unresponsive status = "unresponsive" // its lease ran out
	cancelled    status = "cancelled"    // of a rollout, by the node
)

// open says that an attempt may still end.
func (s status) open() bool { return s == preparing || s == running }

// maxOver is how many rollouts are remembered after their end, so that what comes late is told so.
const maxOver = 1024

// queue is what runners are given to do, and what they made of it. It is a pure state machine: time is passed in, and it
// is used by one goroutine at a time.
//
//	add ──► queuing ── claim ──► preparing ── fetch, hear ──► running ── finish ──► succeeded, failed
//	           ▲                     └───────── expire ─────────┘
//	           └──────── again ◄──────────────────┘
//
// An attempt holds a lease. The lease of one that was handed out is short until its runner fetches the resources, which
// runners do at once: an answer that got lost is not waited for. Whatever is heard of it then makes the lease whole. Of an
// attempt that is not its rollout's last, or has ended, nothing counts any more.
type queue struct {
	claimLease, lease time.Duration
	rollouts          map[string]*task
	waiting           []*task // queuing and requeuing, in the order in which they are handed out
	over              []string
	started           uint64
}

// task is a rollout for a runner.
type task struct {
	ID       string
	Input    string
	Status   status
	Created  time.Time
	Ended    time.Time // zero until then
	Attempts []*attempt
	// next is what the next attempt is given.
	next offer
	// spans is the last number that was given to a span.
	spans int
}

// attempt is one try of a task.
type attempt struct {
	ID     string
	Number int // from 1 on
	Worker string
	Status status
	Begun  time.Time
	Heard  time.Time // the last sign of life; zero before the first
	Ended  time.Time // zero until then
	offer  offer
	until  time.Time // the end of the lease
}

// offer is what an attempt works with: an endpoint of its own. Resources names it, and is not to be guessed.
type offer struct{ Attempt, Resources, Endpoint, Key string }

func newQueue(claimLease, lease time.Duration) *queue {
	return &queue{claimLease: claimLease, lease: lease, rollouts: map[string]*task{}}
}

// last is a task's last attempt, nil before the first.
func (t *task) last() *attempt {
	if len(t.Attempts) == 0 {
		return nil
	}
	return t.Attempts[len(t.Attempts)-1]
}

// current is a task's open attempt, or nil.
func (t *task) current() *attempt {
	if a := t.last(); a != nil && a.Status.open() {
		return a
	}
	return nil
}

// ended says that a task is over.
func (t *task) ended() bool { return !t.Ended.IsZero() }

// add takes a new task. Its id must be new.
func (q *queue) add(now time.Time, id, input string, o offer) {
	t := &task{ID: id, Input: input, Status: queuing, Created: now, next: o}
	q.rollouts[id] = t
	q.waiting = append(q.waiting, t)
}

// again hands a task out once more, before those that wait: it has waited longer. Its last attempt must have expired.
func (q *queue) again(id string, o offer) {
	t := q.rollouts[id]
	t.Status, t.next = requeuing, o
	q.waiting = slices.Insert(q.waiting, 0, t)
}

// claim hands out up to limit tasks to a worker.
func (q *queue) claim(now time.Time, worker string, limit int) (claimed []*task) {
	n := min(max(limit, 0), len(q.waiting))
	claimed = slices.Clone(q.waiting[:n])
	q.waiting = slices.Delete(q.waiting, 0, n)
	for _, t := range claimed {
		t.Status = preparing
		t.Attempts = append(t.Attempts, &attempt{
			ID: t.next.Attempt, Number: len(t.Attempts) + 1, Worker: worker, Status: preparing, Begun: now,
			offer: t.next, until: now.Add(q.claimLease),
		})
		q.started++
	}
	return claimed
}

// fetch is the offer of that name, if it is an open attempt's, which has arrived with it.
func (q *queue) fetch(now time.Time, resources string) (o offer, begun time.Time, ok bool) {
	for _, t := range q.rollouts {
		if a := t.current(); a != nil && a.offer.Resources == resources {
			a.renew(now, q.lease)
			return a.offer, a.Begun, true
		}
	}
	return offer{}, time.Time{}, false
}

// find is an attempt by its ids, where "latest" is the last.
func (q *queue) find(rollout, id string) (*task, *attempt) {
	t := q.rollouts[rollout]
	if t == nil {
		return nil, nil
	}
	for _, a := range t.Attempts {
		if a.ID == id || id == "latest" && a == t.last() {
			return t, a
		}
	}
	return t, nil
}

// hear takes a sign of life of an attempt, and says whether the attempt counts.
func (q *queue) hear(now time.Time, rollout, id string) bool {
	t, a := q.find(rollout, id)
	if a == nil || a != t.current() {
		return false
	}
	a.renew(now, q.lease)
	a.Status, t.Status = running, running
	return true
}

// beat takes a sign of life of a worker: of those of its attempts that it is known to have got.
func (q *queue) beat(now time.Time, worker string) (t *task) {
	for _, candidate := range q.rollouts {
		a := candidate.current()
		if a == nil || a.Worker != worker {
			continue
		}
		if t == nil || candidate.ID < t.ID {
			t = candidate
		}
		if !a.Heard.IsZero() {
			a.renew(now, q.lease)
		}
	}
	return t
}

func (a *attempt) renew(now time.Time, lease time.Duration) { a.Heard, a.until = now, now.Add(lease) }

// finish ends an attempt as its runner says, and with it the task, if the attempt counts.
func (q *queue) finish(now time.Time, rollout, id string, s status) bool {
	t, a := q.find(rollout, id)
	if a == nil || a != t.current() {
		return false
	}
	a.Heard = now
	a.end(now, s)
	if s != succeeded {
		s = failed
	}
	q.conclude(now, t, s)
	return true
}

func (a *attempt) end(now time.Time, s status) { a.Status, a.Ended = s, now }

// expire says whether an attempt's lease has run out, which ends the attempt but not its task, and when else it will.
func (q *queue) expire(now time.Time, rollout string) (lost bool, until time.Time) {
	a := q.rollouts[rollout].current()
	switch {
	case a == nil:
		return false, time.Time{}
	case now.Before(a.until):
		return false, a.until
	}
	a.end(now, unresponsive)
	return true, time.Time{}
}

// end gives a task up, unless it has ended: s is its status, and that of an attempt that runs is lastly.
func (q *queue) end(now time.Time, rollout string, s, lastly status) {
	t := q.rollouts[rollout]
	if t.ended() {
		return
	}
	if a := t.current(); a != nil {
		a.end(now, lastly)
	}
	q.waiting = slices.DeleteFunc(q.waiting, func(other *task) bool { return other == t })
	q.conclude(now, t, s)
}

// conclude ends a task, and forgets the one that ended longest ago if there are too many.
func (q *queue) conclude(now time.Time, t *task, s status) {
	t.Status, t.Ended = s, now
	if q.over = append(q.over, t.ID); len(q.over) > maxOver {
		delete(q.rollouts, q.over[0])
		q.over = q.over[1:]
	}
}

// number gives a span of a task its place among them. said is what its sender gave it, 0 for nothing.
func (q *queue) number(rollout string, said int) (n int, ok bool) {
	t := q.rollouts[rollout]
	if t == nil {
		return 0, false
	}
	if said <= 0 {
		said = t.spans + 1
	}
	t.spans = max(t.spans, min(said, maxSpanNumber))
	return said, true
}

// maxSpanNumber bounds what a sender may make the last number.
const maxSpanNumber = 1 << 31

// open counts the tasks that wait and those that are handed out.
func (q *queue) open() (waiting, out int) {
	return len(q.waiting), len(q.rollouts) - len(q.over) - len(q.waiting)
}
