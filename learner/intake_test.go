package learner

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/virtualtime"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

// offerGroups announces training groups of version 0 by a peer, with counters from first on.
func offerGroups(t *testing.T, n network, s *swarm, l *Learner, peer byte, first, count int) (accepted int) {
	for i := range count {
		p := key(peer).Peer()
		a, raw := encode(t, n.group(0, n.base.Digest(), p, uint64(first+i)), p)
		s.add(raw)
		if l.Offer(a).Accepted() {
			accepted++
		}
	}
	return accepted
}

func TestDuplicatesAreCountedNotTrained(t *testing.T) {
	n := plainNetwork(t)
	virtualtime.Test(t, func(t *testing.T) {
		s := newSwarm()
		c := n.config(s)
		c.Batch.Groups = 100
		l, stop := running(t, c)
		defer stop()
		offerGroups(t, n, s, l, 1, 0, 10)
		offerGroups(t, n, s, l, 1, 0, 10) // on their way
		synctest.Wait()
		offerGroups(t, n, s, l, 1, 0, 10) // waiting
		if got := l.Status(); got.Waiting != 10 || got.Reasons[Admitted] != 10 || got.Reasons[Duplicate] != 20 {
			t.Errorf("%d groups wait, reasons %v", got.Waiting, got.Reasons)
		}
	})
}

// Peers that measure the same block make the same bundle. It is accepted once, whether they deliver it together or one
// after the other, and even when a task has no result, so that the block stays open.
func TestSameEvaluationOfSeveralPeers(t *testing.T) {
	n := plainNetwork(t)
	virtualtime.Test(t, func(t *testing.T) {
		s := newSwarm()
		l, stop := running(t, n.config(s))
		defer stop()
		b := n.evaluation(0, n.base.Digest(), wire.PurposeEvaluateSampled, 0, 2)
		b.Rollouts[3].Outcome, b.Rollouts[3].Reward = bundle.OutcomeTimeout, 0
		open := make(chan struct{})
		s.fetch = func(context.Context, wire.CID) error {
			<-open
			return nil
		}
		offer := func(peer byte) {
			a, raw := encode(t, b, key(peer).Peer())
			s.add(raw)
			if v := l.Offer(a); !v.Accepted() {
				t.Errorf("peer %d: verdict %q", peer, v)
			}
		}
		offer(1)
		offer(2)
		synctest.Wait()
		close(open) // both arrive
		synctest.Wait()
		offer(3)
		synctest.Wait()
		if got := l.Status(); got.Reasons[Admitted] != 1 || got.Reasons[Duplicate] != 2 || got.Fetching != 0 {
			t.Errorf("reasons %v, %d being fetched", got.Reasons, got.Fetching)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if len(l.used) != 1 {
			t.Errorf("the next checkpoint uses up %d bundles, want 1", len(l.used))
		}
	})
}

// Evaluations that tell nothing new are not stored: a peer could make any number of them, and keep them until the next
// version, which after the last one never comes.
func TestEvaluationsWithoutResultsAreRefused(t *testing.T) {
	n := plainNetwork(t)
	virtualtime.Test(t, func(t *testing.T) {
		s := newSwarm()
		l, stop := running(t, n.config(s))
		defer stop()
		offer := func(failed, member int) {
			b := n.evaluation(0, n.base.Digest(), wire.PurposeEvaluateSampled, 0, 2)
			for i := range b.Rollouts {
				if i < failed {
					b.Rollouts[i].Outcome, b.Rollouts[i].Reward = bundle.OutcomeEnvError, 0
				}
			}
			b.Rollouts[0].Calls = b.Rollouts[0].Calls[:member] // makes it another bundle
			a, raw := encode(t, b, key(1).Peer())
			s.add(raw)
			if v := l.Offer(a); !v.Accepted() {
				t.Errorf("verdict %q before the fetch", v)
			}
			synctest.Wait()
		}
		all := len(n.evaluation(0, n.base.Digest(), wire.PurposeEvaluateSampled, 0, 0).Rollouts)
		for _, o := range []struct{ failed, calls, admitted, duplicate int }{
			{all, 1, 0, 1}, {all, 0, 0, 2}, // no result at all
			{2, 1, 1, 2},       // some are new
			{2, 0, 1, 3},       // and not any more
			{all - 1, 0, 1, 4}, // one of those
			{1, 0, 2, 4},       // one more
		} {
			offer(o.failed, o.calls)
			if got := l.Status().Reasons; got[Admitted] != uint64(o.admitted) || got[Duplicate] != uint64(o.duplicate) {
				t.Errorf("%+v: reasons %v", o, got)
			}
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if len(l.used) != 2 {
			t.Errorf("the next checkpoint uses up %d bundles, want 2", len(l.used))
		}
	})
}

// Evaluations that gain results in one batch are told in one order, so that what is written of them does not vary.
func TestEvaluationsAreToldInOrder(t *testing.T) {
	n := plainNetwork(t)
	s := newSwarm()
	c := n.config(s)
	c.Intake.Fetches = 64
	l, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	var batch []arrival
	var accepted []Accepted
	var want []Evaluation
	for version := range uint64(8) {
		for _, purpose := range []wire.Purpose{wire.PurposeEvaluateSampled, wire.PurposeEvaluateGreedy} {
			b := n.evaluation(version, n.base.Digest(), purpose, 0, 2)
			a, _ := encode(t, b, key(1).Peer())
			l.queue.push(job{announcement: &a})
			if _, ok, _ := l.next(); !ok {
				t.Fatal("nothing to fetch")
			}
			batch = append(batch, arrival{announcement: &a, evaluation: b})
			accepted = append(accepted, Accepted{Record: Record{CID: a.Bundle, Peer: a.Signer, Purpose: purpose, Version: version}})
			want = append(want, Evaluation{Version: version, Purpose: purpose, Tasks: 4, Expected: 20, Successes: 2, RewardMean: 0.5})
		}
	}
	slices.Reverse(batch)
	slices.Reverse(accepted)
	if diff := cmp.Diff(want, l.settle(batch, accepted)); diff != "" {
		t.Error(diff)
	}
}

// Ten times more arrives than the learner keeps. It keeps what it may, counts the rest, and holds no more bytes and
// fetches than it should, while one peer's flood does not push out another's few.
func TestOverflowIsBoundedAndCounted(t *testing.T) {
	n := plainNetwork(t)
	virtualtime.Test(t, func(t *testing.T) {
		s := newSwarm()
		var now, most atomic.Int64
		s.fetch = func(ctx context.Context, _ wire.CID) error {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			select {
			case <-time.After(100 * time.Millisecond):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		c := n.config(s)
		c.Batch = BatchRule{Groups: 20, Dynamic: 1, PeerShare: 1, Patience: time.Hour}
		c.Intake.Queue, c.Intake.Fetches, c.Intake.Waiting, c.Intake.PeerPending = 30, 8, 20, 1000
		l, stop := running(t, c)
		defer stop()
		flood := offerGroups(t, n, s, l, 1, 0, 300)
		few := offerGroups(t, n, s, l, 2, 0, 5)
		if flood != 300 || few != 5 {
			t.Fatalf("%d and %d offers passed the first look", flood, few)
		}
		time.Sleep(time.Minute)
		status := l.Status()
		if got := most.Load(); got > 8 {
			t.Errorf("%d fetches at a time", got)
		}
		used := int(status.Reasons[Admitted])
		if status.Reasons[QueueFull] == 0 || int(status.Reasons[QueueFull])+used+status.Queued != 305 {
			t.Errorf("%d dropped, %d accepted and %d queued of 305", status.Reasons[QueueFull], used, status.Queued)
		}
		if int(status.Reasons[QueueFull]) != s.counted(QueueFull) {
			t.Errorf("%d dropped, the observer saw %d", status.Reasons[QueueFull], s.counted(QueueFull))
		}
		if got := status.Peers[key(2).Peer()]; got.Missing != 0 || s.steps[0].Peers != 2 {
			t.Errorf("the quiet peer's groups were dropped: %+v", got)
		}
	})
}

// A full buffer stops the fetching until a step makes room.
func TestBackpressure(t *testing.T) {
	n := plainNetwork(t)
	virtualtime.Test(t, func(t *testing.T) {
		s := newSwarm()
		var fetched atomic.Int64
		s.fetch = func(context.Context, wire.CID) error { fetched.Add(1); return nil }
		c := n.config(s)
		c.Batch = BatchRule{Groups: 10, Dynamic: 1, PeerShare: 1, Patience: time.Hour}
		c.Intake.Waiting = 10
		release := make(chan struct{})
		c.Publisher = publisherFunc(func(ctx context.Context, r wire.SignedRelease, p *policy.Snapshot) error {
			if r.Version == 1 {
				<-release // a step that takes long
			}
			return s.Publish(ctx, r, p)
		})
		l, stop := running(t, c)
		defer stop()
		offerGroups(t, n, s, l, 1, 0, 60)
		synctest.Wait()
		if got := fetched.Load(); got != 20 {
			t.Errorf("%d bundles fetched while one batch trains and one waits, want 20", got)
		}
		close(release)
		synctest.Wait()
		if got := len(s.steps); got != 6 {
			t.Errorf("%d steps on 60 groups, want 6", got)
		}
	})
}

// slow is an Observer that takes its time after a step.
type slow struct{ *swarm }

func (s slow) Stepped(step Step) {
	time.Sleep(time.Second)
	s.swarm.Stepped(step)
}

// Groups that become too old make room for others at once, also when too few are left for a step.
func TestExpiredGroupsMakeRoom(t *testing.T) {
	n := plainNetwork(t)
	virtualtime.Test(t, func(t *testing.T) {
		s := newSwarm()
		c := n.config(s)
		c.Observer = slow{s} // When a version is out, the intake finds the buffer still full.
		c.Trainer = &fakeTrainer{weights: make([]float32, 4), norm: func(int) float64 {
			time.Sleep(time.Second) // The buffer fills up meanwhile.
			return 1
		}}
		lag := uint64(0)
		c.MaxLag = &lag
		c.Batch = BatchRule{Groups: 10, Dynamic: 1, PeerShare: 1, Patience: time.Hour}
		c.Intake.Waiting = 10
		l, stop := running(t, c)
		defer stop()
		offerGroups(t, n, s, l, 1, 0, 30)
		time.Sleep(time.Minute)
		if got := l.Status(); got.Head.Version != 1 || got.Reasons[StaleAtUse] != 10 || got.Queued != 0 || got.Reasons[Stale] != 10 {
			t.Errorf("at version %d, %d queued, reasons %v", got.Head.Version, got.Queued, got.Reasons)
		}
	})
}

// A peer that never answers costs its own announcements, counted, and hardly delays another's.
func TestSilentPeer(t *testing.T) {
	n := plainNetwork(t)
	virtualtime.Test(t, func(t *testing.T) {
		s := newSwarm()
		silent := make(map[wire.CID]bool)
		s.fetch = func(ctx context.Context, cid wire.CID) error {
			if silent[cid] {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}
		for i := range 50 {
			a, _ := encode(t, n.group(0, n.base.Digest(), key(1).Peer(), uint64(i)), key(1).Peer())
			silent[a.Bundle] = true
		}
		c := n.config(s)
		c.Batch.Groups = 100
		l, stop := running(t, c)
		defer stop()
		offerGroups(t, n, s, l, 1, 0, 50)
		synctest.Wait()
		offerGroups(t, n, s, l, 2, 0, 50)
		synctest.Wait()
		if got := l.Status().Waiting; got != 50 {
			t.Errorf("%d groups of the peer that answers, want 50 at once", got)
		}
		time.Sleep(10 * time.Minute)
		status := l.Status()
		if status.Reasons[FetchFailed] != 50 || status.Queued+status.Fetching != 0 {
			t.Errorf("reasons %v, %d queued, %d fetching", status.Reasons, status.Queued, status.Fetching)
		}
		// What failed may be tried again.
		clear(silent)
		if accepted := offerGroups(t, n, s, l, 1, 0, 50); accepted != 50 {
			t.Errorf("%d of 50 announcements are taken again", accepted)
		}
	})
}

func TestBadBundlesAreRefused(t *testing.T) {
	n := plainNetwork(t)
	virtualtime.Test(t, func(t *testing.T) {
		s := newSwarm()
		c := n.config(s)
		c.Intake.Attempts = 1
		l, stop := running(t, c)
		defer stop()
		peer := key(1).Peer()
		offer := func(counter uint64, change func(a *wire.SignedAnnouncement, raw []byte) []byte) {
			a, raw := encode(t, n.group(0, n.base.Digest(), peer, counter), peer)
			raw = change(&a, raw)
			s.mu.Lock()
			s.bundles[a.Bundle] = raw
			s.mu.Unlock()
			l.Offer(a)
		}
		offer(0, func(a *wire.SignedAnnouncement, raw []byte) []byte { // other bytes than the CID's
			return append([]byte{raw[0] ^ 1}, raw[1:]...)
		})
		offer(1, func(a *wire.SignedAnnouncement, raw []byte) []byte { // no bundle
			raw = raw[:len(raw)/2]
			a.Bundle, a.BundleBytes = wire.SumCID(raw), uint32(len(raw))
			return raw
		})
		offer(2, func(a *wire.SignedAnnouncement, raw []byte) []byte { // another size than announced
			a.BundleBytes++
			return raw
		})
		offer(3, func(a *wire.SignedAnnouncement, raw []byte) []byte { // another bundle than announced
			a.CompletionTokens++
			return raw
		})
		synctest.Wait()
		want := map[Reason]int{FetchFailed: 1, Malformed: 1, AnnouncementMismatch: 2}
		for reason, count := range want {
			if got := s.counted(reason); got != count {
				t.Errorf("%d bundles are %s, want %d", got, reason, count)
			}
		}
		if status := l.Status(); len(status.Peers) != 0 || status.Waiting != 0 {
			t.Errorf("a peer that gave nothing is remembered: %+v", status)
		}
	})
}
