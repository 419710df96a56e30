package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/virtualtime"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/draw"
)

// bench is a worker with fakes around it, inside a synctest bubble.
type bench struct {
	*Worker
	policies *fakePolicies
	store    *fakeStore
	cancel   context.CancelFunc
	done     chan error
}

func startWorker(t *testing.T, store *fakeStore, policies *fakePolicies) *bench {
	t.Helper()
	return startWorkerOn(t, store, policies, 3)
}

// startWorkerOn starts a worker that runs so many groups at once.
func startWorkerOn(t *testing.T, store *fakeStore, policies *fakePolicies, inFlight int) *bench {
	t.Helper()
	w, err := NewWorker(WorkerConfig{
		Peer: testPeer(), Network: calcNetwork(t), Policies: policies, Announcer: store, Counters: store, Evaluations: store,
		InFlight: inFlight, Patience: 10 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	b := &bench{Worker: w, policies: policies, store: store, cancel: cancel, done: make(chan error, 1)}
	go func() { b.done <- w.Run(ctx) }()
	return b
}

// stop ends the worker and checks that every pin was given back.
func (b *bench) stop(t *testing.T) {
	t.Helper()
	b.cancel()
	if err := <-b.done; !errors.Is(err, context.Canceled) {
		t.Errorf("Run = %v", err)
	}
	b.checkPins(t)
}

func (b *bench) checkPins(t *testing.T) {
	t.Helper()
	b.policies.mu.Lock()
	defer b.policies.mu.Unlock()
	if b.policies.acquired != b.policies.closed {
		t.Errorf("%d releases acquired, %d closed", b.policies.acquired, b.policies.closed)
	}
	if s := b.Stats(); s.Activity != Stopped || s.Running != 0 {
		t.Errorf("after Run: %s, %d in flight", s.Activity, s.Running)
	}
}

func version(v uint64) Release {
	return Release{Policy: testPolicy(v, &fakeSession{delay: 100 * time.Millisecond})}
}

func span(from, to uint64) []uint64 {
	var list []uint64
	for c := from; c < to; c++ {
		list = append(list, c)
	}
	return list
}

func TestWorkerKeepsThePace(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		b := startWorker(t, newFakeStore(), newFakePolicies())
		synctest.Wait()
		if a := b.Stats().Activity; a != AwaitPolicy {
			t.Errorf("before the first policy: %s", a)
		}
		b.policies.publish(version(0))
		time.Sleep(5 * time.Second)
		if diff := cmp.Diff(span(0, 5), b.store.counters(0)); diff != "" {
			t.Errorf("groups of version 0 (-want +got):\n%s", diff)
		}
		if s := b.Stats(); s.Activity != AwaitRelease || s.Version != 0 || s.Running != 0 {
			t.Errorf("after the pace: %+v", s)
		}
		faster := version(1)
		faster.GroupsPerVersion = 2
		b.policies.publish(faster)
		time.Sleep(5 * time.Second)
		if diff := cmp.Diff(span(5, 7), b.store.counters(1)); diff != "" {
			t.Errorf("groups of version 1 (-want +got):\n%s", diff)
		}
		// Nothing newer comes: the pace is granted again after 10 s, and then after 20 s more.
		for _, c := range []struct {
			wait   time.Duration
			groups int
		}{{4 * time.Second, 2}, {10 * time.Second, 4}, {9 * time.Second, 4}, {5 * time.Second, 6}} {
			time.Sleep(c.wait)
			if got := len(b.store.counters(1)); got != c.groups {
				t.Errorf("%v later: %d groups of version 1, want %d", c.wait, got, c.groups)
			}
		}
		b.stop(t)
		stats := b.Stats()
		if stats.Repeats != 2 || stats.Total.Groups != 11 || stats.Versions[1].Groups != 6 || stats.Total.Rollouts != 44 {
			t.Errorf("stats %+v", stats)
		}
		var outcomes uint64
		for _, n := range stats.Total.Outcomes {
			outcomes += n
		}
		if outcomes != stats.Total.Rollouts {
			t.Errorf("%d outcomes of %d rollouts", outcomes, stats.Total.Rollouts)
		}
	})
}

func TestWorkerEvaluatesFirst(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		store, policies := newFakeStore(), newFakePolicies()
		store.elsewhere[blockID{0, wire.PurposeEvaluateGreedy, 1}] = true
		measured := version(0)
		measured.Evaluate = true
		policies.publish(measured)
		b := startWorker(t, store, policies)
		time.Sleep(5 * time.Second)
		order := draw.EvaluationOrder(b.Network.ID, 0, testPeer(), 3)
		started := map[blockID]int{}
		for i, a := range store.list() {
			if a.Purpose == wire.PurposeTrain {
				continue
			}
			started[blockID{a.PolicyVersion, a.Purpose, a.Counter}] = i
			if i >= 5+3 {
				t.Errorf("%s block %d comes after groups: position %d", a.Purpose, a.Counter, i)
			}
		}
		if len(started) != 5 {
			t.Errorf("blocks %v, want 5 of 6: one was announced elsewhere", started)
		}
		first := blockID{0, wire.PurposeEvaluateSampled, uint64(order[0])}
		last := blockID{0, wire.PurposeEvaluateGreedy, uint64(order[2])}
		if order[2] != 1 && started[first] > started[last] {
			t.Errorf("blocks %v do not follow the peer's order %v", started, order)
		}
		if got := len(store.counters(0)); got != 5 {
			t.Errorf("%d groups", got)
		}
		b.stop(t)
		if s := b.Stats(); s.Total.Blocks != 5 || s.Total.Rewards[wire.PurposeEvaluateGreedy].Count == 0 {
			t.Errorf("stats %+v", s)
		}
	})
}

func TestWorkerFinishesAnEvaluationUnderItsVersion(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		store, policies := newFakeStore(), newFakePolicies()
		measured := version(0)
		measured.Evaluate = true
		policies.publish(measured)
		b := startWorker(t, store, policies)
		time.Sleep(50 * time.Millisecond)
		policies.publish(version(1))
		time.Sleep(5 * time.Second)
		blocks := 0
		for _, a := range store.list() {
			if a.Purpose != wire.PurposeTrain {
				blocks++
				if a.PolicyVersion != 0 || a.PolicyDigest != (policy.Digest{1, 0}) {
					t.Errorf("%s block %d ran under version %d", a.Purpose, a.Counter, a.PolicyVersion)
				}
			}
		}
		if blocks != 6 {
			t.Errorf("%d blocks, want 6", blocks)
		}
		if len(store.counters(0)) != 0 || len(store.counters(1)) != 5 {
			t.Errorf("groups: %v under version 0, %v under 1", store.counters(0), store.counters(1))
		}
		b.stop(t)
	})
}

// A block that another peer claims is measured once the claim does not hold any more: by a worker that waits and by one
// that follows newer releases, under the version that asked for it.
func TestWorkerMeasuresWhatWasClaimedInVain(t *testing.T) {
	for name, final := range map[string]bool{"waiting": true, "training": false} {
		t.Run(name, func(t *testing.T) {
			virtualtime.Test(t, func(t *testing.T) {
				store, policies := newFakeStore(), newFakePolicies()
				claimed := blockID{0, wire.PurposeEvaluateGreedy, 1}
				store.claimed[claimed] = true
				measured := version(0)
				measured.Evaluate, measured.Final = true, final
				policies.publish(measured)
				b := startWorker(t, store, policies)
				time.Sleep(5 * time.Second)
				if !final {
					policies.publish(version(1))
					time.Sleep(5 * time.Second)
				}
				if s := b.Stats(); s.Total.Blocks != 5 {
					t.Errorf("%d blocks while one of 6 is claimed", s.Total.Blocks)
				}
				store.mu.Lock()
				delete(store.claimed, claimed)
				store.mu.Unlock()
				time.Sleep(5 * time.Second)
				b.stop(t)
				list := store.list()
				last := slices.IndexFunc(list, func(a wire.Announcement) bool {
					return blockID{a.PolicyVersion, a.Purpose, a.Counter} == claimed
				})
				if s := b.Stats(); s.Total.Blocks != 6 || last < 0 || list[last].PolicyDigest != (policy.Digest{1, 0}) {
					t.Errorf("%d blocks, the claimed one at %d of %d", s.Total.Blocks, last, len(list))
				}
			})
		})
	}
}

func TestWorkerIdlesAfterTheFinalRelease(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		b := startWorker(t, newFakeStore(), newFakePolicies())
		last := version(7)
		last.Final = true
		b.policies.publish(last)
		time.Sleep(time.Hour)
		if s := b.Stats(); s.Activity != AwaitPastLast || s.Total.Blocks != 6 || s.Total.Groups != 0 {
			t.Errorf("stats %+v", s)
		}
		b.stop(t)
	})
}

// TestWorkerPinsOneVersionPerGroup publishes versions faster than groups run and checks every bundle.
func TestWorkerPinsOneVersionPerGroup(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		b := startWorker(t, newFakeStore(), newFakePolicies())
		for v := range uint64(40) {
			b.policies.publish(version(v))
			time.Sleep(70 * time.Millisecond)
		}
		time.Sleep(5 * time.Second)
		b.stop(t)
		versions := map[uint64]bool{}
		for _, bundle := range b.store.bundles {
			versions[bundle.PolicyVersion] = true
			if bundle.PolicyDigest != (policy.Digest{1, byte(bundle.PolicyVersion)}) {
				t.Errorf("version %d has digest %x", bundle.PolicyVersion, bundle.PolicyDigest[:2])
			}
		}
		if len(versions) < 5 {
			t.Errorf("versions used: %v", versions)
		}
	})
}

// TestWorkerResumesCounters kills workers at different moments under one version and checks that no counter is left out
// or done twice.
func TestWorkerResumesCounters(t *testing.T) {
	for kill := 0; kill < 12; kill++ {
		virtualtime.Test(t, func(t *testing.T) {
			store, policies := newFakeStore(), newFakePolicies()
			r := version(0)
			r.GroupsPerVersion = 10
			policies.publish(r)
			b := startWorker(t, store, policies)
			time.Sleep(time.Duration(kill) * 90 * time.Millisecond)
			b.stop(t)
			pending := store.pending()
			before := len(store.counters(0))
			if before < 10 && kill > 0 && len(pending) == 0 {
				t.Errorf("kill %d: nothing pending after %d groups", kill, before)
			}
			b = startWorker(t, store, policies)
			time.Sleep(5 * time.Second)
			b.stop(t)
			if diff := cmp.Diff(span(0, store.next), store.counters(0)); diff != "" {
				t.Errorf("kill %d: counters (-want +got):\n%s", kill, diff)
			}
			if len(pending) > 0 && before+10 != int(store.next) {
				t.Errorf("kill %d: %d groups, then 10 more, but %d counters", kill, before, store.next)
			}
		})
	}
}

// TestWorkerLeavesOutCountersOfAnOlderVersion kills a worker and starts it again under a newer version, either at once
// or when the counters that it left are begun again. The fake store refuses a group under another version than its
// counter's.
func TestWorkerLeavesOutCountersOfAnOlderVersion(t *testing.T) {
	for _, atOnce := range []bool{true, false} {
		virtualtime.Test(t, func(t *testing.T) {
			store, policies := newFakeStore(), newFakePolicies()
			policies.publish(version(0))
			b := startWorker(t, store, policies)
			time.Sleep(50 * time.Millisecond)
			b.stop(t)
			if diff := cmp.Diff(span(0, 3), store.pending()); diff != "" {
				t.Fatalf("pending counters (-want +got):\n%s", diff)
			}
			want := []uint64{}
			if !atOnce {
				b = startWorkerOn(t, store, policies, 1)
				time.Sleep(50 * time.Millisecond)
				want = span(0, 1) // in flight when the version comes
			}
			policies.publish(version(1))
			if atOnce {
				b = startWorker(t, store, policies)
			}
			time.Sleep(5 * time.Second)
			b.stop(t)
			if got := store.counters(0); !slices.Equal(got, want) {
				t.Errorf("at once %v: counters %v under version 0, want %v", atOnce, got, want)
			}
			if diff := cmp.Diff(span(3, 8), store.counters(1)); diff != "" {
				t.Errorf("at once %v: counters under version 1 (-want +got):\n%s", atOnce, diff)
			}
		})
	}
}

func TestWorkerEndsWhenAnInterfaceFails(t *testing.T) {
	full := errors.New("disk full")
	virtualtime.Test(t, func(t *testing.T) {
		store, policies := newFakeStore(), newFakePolicies()
		store.refuse = func(a wire.Announcement) error {
			if a.Counter == 2 {
				return full
			}
			return nil
		}
		policies.publish(version(0))
		b := startWorker(t, store, policies)
		if err := <-b.done; !errors.Is(err, full) || !strings.Contains(err.Error(), "announce train bundle 2 of version 0") {
			t.Errorf("Run = %v", err)
		}
		b.checkPins(t)
		if pending := store.pending(); !slices.Contains(pending, 2) {
			t.Errorf("pending counters %v lack the one that failed", pending)
		}
	})
	virtualtime.Test(t, func(t *testing.T) {
		policies := newFakePolicies()
		broken := errors.New("engine is gone")
		policies.publish(Release{Policy: testPolicy(0, &fakeSession{behave: func(policy.Request) (chat.Message, error) {
			return chat.Message{}, broken
		}})})
		b := startWorker(t, newFakeStore(), policies)
		if err := <-b.done; !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "group ") {
			t.Errorf("Run = %v", err)
		}
		b.checkPins(t)
	})
}

// impatientPolicies is a source that fails by a deadline of its own.
type impatientPolicies struct{ *fakePolicies }

func (impatientPolicies) Wait(context.Context, uint64) error {
	return fmt.Errorf("ask a server: %w", context.DeadlineExceeded)
}

// A source's own deadline is a failure, not the end of the worker's patience, and must not be asked for again at once.
func TestWorkerEndsWhenWaitingFails(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		store, policies := newFakeStore(), newFakePolicies()
		policies.publish(version(0))
		w, err := NewWorker(WorkerConfig{
			Peer: testPeer(), Network: calcNetwork(t), Policies: impatientPolicies{policies},
			Announcer: store, Counters: store, Evaluations: store,
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := w.Run(ctx); err == nil || !strings.Contains(err.Error(), "wait for a release after version 0: ask a server") {
			t.Errorf("Run = %v", err)
		}
	})
}

func TestNewWorkerNeedsTheCharterEnvironments(t *testing.T) {
	n := calcNetwork(t)
	empty, err := env.NewSet()
	if err != nil {
		t.Fatal(err)
	}
	n.Environments = empty
	store := newFakeStore()
	_, err = NewWorker(WorkerConfig{
		Peer: testPeer(), Network: n, Policies: newFakePolicies(), Announcer: store, Counters: store, Evaluations: store,
	})
	if !errors.Is(err, env.ErrUnknown) || !strings.Contains(fmt.Sprint(err), `environment "calc" of the charter`) {
		t.Errorf("NewWorker = %v", err)
	}
}
