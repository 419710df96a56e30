package lightning

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Whatever runners do, and whenever: a rollout is with one runner at a time, in the order in which it came; an end counts
// once, and nothing of an attempt that is over counts.
func TestQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const claimLease, lease = 5 * time.Second, 20 * time.Second
		q := newQueue(claimLease, lease)
		now := time.Unix(1_000_000, 0)
		made := 0
		ends := map[string]status{}   // of tasks that have ended
		open := map[string]*attempt{} // the attempt that counts, by task
		until := map[string]time.Time{}
		var order []string // of tasks that wait
		var attempts [][2]string
		newOffer := func() offer {
			made++
			n := fmt.Sprint(made)
			return offer{Attempt: "at-" + n, Resources: "rs-" + n, Endpoint: "http://" + n, Key: n}
		}
		some := func(label string) (rollout, id string, counts bool) {
			if len(attempts) == 0 {
				return "", "", false
			}
			pair := rapid.SampledFrom(attempts).Draw(t, label)
			a := open[pair[0]]
			return pair[0], pair[1], a != nil && a.ID == pair[1]
		}
		t.Repeat(map[string]func(*rapid.T){
			"wait": func(t *rapid.T) { now = now.Add(time.Duration(rapid.IntRange(0, 30).Draw(t, "seconds")) * time.Second) },
			"add": func(t *rapid.T) {
				id := fmt.Sprintf("ro-%d", made)
				q.add(now, id, "?", newOffer())
				order = append(order, id)
			},
			"claim": func(t *rapid.T) {
				limit := rapid.IntRange(-1, 3).Draw(t, "limit")
				got := q.claim(now, rapid.SampledFrom([]string{"Worker-0", "Worker-1"}).Draw(t, "worker"), limit)
				want := order[:min(max(limit, 0), len(order))]
				if len(got) != len(want) {
					t.Fatalf("%d were handed out, want %v", len(got), want)
				}
				for i, task := range got {
					last := task.last()
					if task.ID != want[i] || open[task.ID] != nil || last.Number != len(task.Attempts) {
						t.Fatalf("%s was handed out, want %s; its attempt %+v", task.ID, want[i], last)
					}
					open[task.ID], until[task.ID] = last, now.Add(claimLease)
					attempts = append(attempts, [2]string{task.ID, last.ID})
				}
				order = order[len(want):]
			},
			"fetch": func(t *rapid.T) {
				rollout, id, counts := some("whose")
				if rollout == "" {
					return
				}
				_, a := q.find(rollout, id)
				o, _, ok := q.fetch(now, a.offer.Resources)
				if ok != counts || ok && o != a.offer {
					t.Fatalf("%s gets %+v, %t", id, o, ok)
				}
				if ok {
					until[rollout] = now.Add(lease)
				}
			},
			"hear": func(t *rapid.T) {
				rollout, id, counts := some("whom")
				if ok := q.hear(now, rollout, id); ok != counts {
					t.Fatalf("%s is heard: %t", id, ok)
				}
				if counts {
					until[rollout] = now.Add(lease)
				}
			},
			"beat": func(t *rapid.T) {
				worker := rapid.SampledFrom([]string{"Worker-0", "Worker-1"}).Draw(t, "worker")
				busy := q.beat(now, worker)
				found := false
				for rollout, a := range open {
					if a.Worker != worker {
						continue
					}
					found = found || busy != nil && busy.ID == rollout
					if !a.Heard.IsZero() {
						until[rollout] = now.Add(lease)
					}
				}
				if found != (busy != nil) {
					t.Fatalf("%s plays %+v", worker, busy)
				}
			},
			"finish": func(t *rapid.T) {
				rollout, id, counts := some("which")
				s := rapid.SampledFrom([]status{succeeded, failed}).Draw(t, "status")
				if ok := q.finish(now, rollout, id, s); ok != counts {
					t.Fatalf("the end of %s counts: %t", id, ok)
				}
				if counts {
					ends[rollout] = s
					delete(open, rollout)
				}
			},
			"expire": func(t *rapid.T) {
				rollout, id, counts := some("what")
				if !counts {
					return
				}
				lost, at := q.expire(now, rollout)
				if lost != !now.Before(until[rollout]) || !lost && !at.Equal(until[rollout]) {
					t.Fatalf("%s is lost: %t; its lease ends %v, want %v", id, lost, at, until[rollout])
				}
				if !lost {
					return
				}
				delete(open, rollout)
				if rapid.Bool().Draw(t, "again") {
					q.again(rollout, newOffer())
					order = append([]string{rollout}, order...)
				} else {
					q.end(now, rollout, failed, failed)
					ends[rollout] = failed
				}
			},
			"end": func(t *rapid.T) {
				rollout, _, _ := some("whose end")
				if rollout == "" {
					return
				}
				q.end(now, rollout, cancelled, failed)
				if ends[rollout] == "" {
					ends[rollout] = cancelled
				}
				delete(open, rollout)
				order = slices.DeleteFunc(order, func(id string) bool { return id == rollout })
			},
			"": func(t *rapid.T) {
				for id, want := range ends {
					if got := q.rollouts[id]; got != nil && (got.Status != want || !got.ended() || got.current() != nil) {
						t.Fatalf("%s ended %s and is %+v", id, want, got)
					}
				}
				for id, a := range open {
					if got := q.rollouts[id]; got.current() != a || got.Status != a.Status {
						t.Fatalf("%s is %+v, its attempt %+v", id, got, a)
					}
				}
				if waiting, out := q.open(); waiting != len(order) || out != len(open) {
					t.Fatalf("%d wait and %d are out, want %d and %d", waiting, out, len(order), len(open))
				}
			},
		})
	})
}

// What has ended is forgotten, the oldest first.
func TestQueueForgets(t *testing.T) {
	q, now := newQueue(time.Second, time.Second), time.Unix(1, 0)
	for i := range maxOver + 10 {
		id := fmt.Sprint(i)
		q.add(now, id, "", offer{Attempt: "a" + id})
		q.claim(now, "w", 1)
		q.finish(now, id, "a"+id, succeeded)
	}
	if len(q.rollouts) != maxOver || q.rollouts["9"] != nil || q.rollouts["10"] == nil {
		t.Errorf("%d are remembered", len(q.rollouts))
	}
}

// Spans are numbered from 1 on, after those that came with a number.
func TestNumbersOfSpans(t *testing.T) {
	q := newQueue(time.Second, time.Second)
	q.add(time.Unix(1, 0), "r", "", offer{})
	for i, c := range []struct{ said, want int }{{0, 1}, {0, 2}, {7, 7}, {3, 3}, {0, 8}, {-1, 9}, {1 << 62, 1 << 62}, {0, maxSpanNumber + 1}} {
		if n, ok := q.number("r", c.said); !ok || n != c.want {
			t.Errorf("%d: %d, %t, want %d", i, n, ok, c.want)
		}
	}
	if _, ok := q.number("s", 0); ok {
		t.Error("an unknown rollout has spans")
	}
}
