package learner

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/lightswarm/lightswarm/wire"
)

func jobOf(peer byte, n int) job {
	a := wire.SignedAnnouncement{Signer: wire.PeerID([]byte{peer})}
	a.Bundle, a.Counter = wire.SumCID(unique(1000*int(peer)+n)), uint64(n)
	return job{announcement: &a}
}

func TestQueueTakesTurns(t *testing.T) {
	q := newQueue(100, 5)
	for i := range 6 {
		q.push(jobOf(1, i))
	}
	q.push(jobOf(2, 0))
	q.push(jobOf(3, 0))
	var got []byte
	for {
		j, ok, next := q.pop(start)
		if !ok {
			if !next.IsZero() {
				t.Fatalf("asks to wait until %v", next)
			}
			break
		}
		got = append(got, j.announcement.Signer[0])
	}
	if want := "\x01\x02\x03\x01"; string(got) != want {
		t.Fatalf("jobs of peers %v, want %v: turns, and as many as are free", got, []byte(want))
	}
	q.done(wire.PeerID("\x01"))
	if j, ok, _ := q.pop(start); !ok || j.announcement.Counter != 2 {
		t.Fatal("a fetch that ended does not let in the next")
	}
}

// Peers that never answer leave fetches to those that do.
func TestQueueKeepsRoomBesideSlowPeers(t *testing.T) {
	const fetches = 32
	for slow := range byte(5) {
		q := newQueue(1000, fetches)
		for n := range fetches {
			for peer := range slow {
				q.push(jobOf(peer, n))
			}
		}
		held := 0
		for {
			if _, ok, _ := q.pop(start); !ok {
				break
			}
			held++
		}
		for n := range fetches {
			q.push(jobOf(200, n))
		}
		free := 0
		for {
			if j, ok, _ := q.pop(start); !ok {
				break
			} else if j.announcement.Signer[0] != 200 {
				t.Fatal("a peer got more than its share")
			}
			free++
		}
		// Each slow peer has at most as many as were left to the other one twice over.
		if held+free > fetches || free*2*(int(slow)+1) < fetches-2*int(slow)-2 {
			t.Errorf("beside %d slow peers with %d fetches there were %d of %d", slow, held, free, fetches)
		}
	}
}

func TestQueueDropsOldestOfLongestLine(t *testing.T) {
	q := newQueue(4, 1)
	for i := range 3 {
		q.push(jobOf(1, i))
	}
	q.push(jobOf(2, 0))
	for i := 3; i < 6; i++ {
		dropped := q.push(jobOf(1, i))
		if dropped == nil || dropped.announcement.Signer[0] != 1 || dropped.announcement.Counter != uint64(i-3) {
			t.Fatalf("dropped %+v", dropped)
		}
	}
	if q.size != 4 {
		t.Fatalf("%d jobs, the limit is 4", q.size)
	}
}

func TestQueueWaitsForRetry(t *testing.T) {
	q := newQueue(10, 4)
	late := jobOf(1, 0)
	late.notBefore = at(5)
	q.push(late)
	later := jobOf(2, 0)
	later.notBefore = at(3)
	q.push(later)
	if _, ok, next := q.pop(start); ok || !next.Equal(at(3)) {
		t.Fatalf("popped %v, next at %v", ok, next)
	}
	q.push(jobOf(1, 1))
	if j, ok, _ := q.pop(start); !ok || j.announcement.Counter != 1 {
		t.Fatal("a job that waits for its retry holds up the line")
	}
	if j, ok, _ := q.pop(at(3)); !ok || j.announcement.Signer[0] != 2 {
		t.Fatal("a job does not come when its time has")
	}
}

// Jobs come out once or are dropped once, the size is right and bounded, and an empty queue remembers nothing.
func TestQueueInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 6).Draw(t, "limit")
		q := newQueue(limit, rapid.IntRange(1, 3).Draw(t, "fetches"))
		pushed, gone, n, now := make(map[wire.CID]bool), make(map[wire.CID]bool), 0, 0
		leave := func(j job) {
			if cid := j.announcement.Bundle; !pushed[cid] || gone[cid] {
				t.Fatal("a job came twice, or from nowhere")
			} else {
				gone[cid] = true
			}
		}
		var fetching []job
		for range rapid.IntRange(1, 80).Draw(t, "events") {
			switch rapid.SampledFrom([]string{"push", "push", "pop", "done"}).Draw(t, "event") {
			case "push":
				j := jobOf(byte(rapid.IntRange(1, 3).Draw(t, "peer")), n)
				n++
				j.notBefore = at(now + rapid.IntRange(-3, 3).Draw(t, "delay"))
				pushed[j.announcement.Bundle] = true
				if dropped := q.push(j); dropped != nil {
					leave(*dropped)
				}
			case "pop":
				now++
				if j, ok, next := q.pop(at(now)); ok {
					leave(j)
					fetching = append(fetching, j)
				} else if !next.IsZero() && !next.After(at(now)) {
					t.Fatalf("asks to wait until %v at %v", next, at(now))
				}
			case "done":
				if len(fetching) > 0 {
					q.done(fetching[0].announcement.Signer)
					fetching = fetching[1:]
				}
			}
			if q.size != len(pushed)-len(gone) || q.size > limit {
				t.Fatalf("size %d of %d, %d are there", q.size, limit, len(pushed)-len(gone))
			}
		}
		for {
			for _, j := range fetching {
				q.done(j.announcement.Signer)
			}
			fetching = nil
			j, ok, _ := q.pop(at(now).Add(time.Hour))
			if !ok {
				break
			}
			leave(j)
			fetching = append(fetching, j)
		}
		if len(gone) != len(pushed) || len(q.lines)+len(q.turns) > 0 {
			t.Fatalf("%d of %d jobs left; %d lines stay", len(gone), len(pushed), len(q.lines))
		}
	})
}
