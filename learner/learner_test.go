package learner

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
	"github.com/lightswarm/lightswarm/wire/draw"
)

// TestMain uses the bundle codec once: its compressor makes channels at first use, which must not belong to the
// synctest bubble of whichever test comes first.
func TestMain(m *testing.M) {
	if err := warmCodec(); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

func warmCodec() error {
	raw, err := bundle.Encode(&bundle.Bundle{
		Network: wire.SumCID(nil), Environment: wire.SumCID(nil), PolicyDigest: [32]byte{1}, Purpose: wire.PurposeEvaluateGreedy,
		Split: wire.SplitValidation, MaxCompletionTokens: 1, Engine: bundle.EngineExact,
		Rollouts: []bundle.Rollout{{Outcome: bundle.OutcomeScored}},
	})
	if err != nil {
		return err
	}
	_, err = bundle.Decode(raw, bundle.Limits{})
	return err
}

// errCrash is a crash of the process, as far as the learner can tell.
var errCrash = errors.New("crashed")

// crashing counts the points at which a process can die around its durable writes and publications, and dies at one.
type crashing struct {
	Store
	Publisher
	at     int64 // the point to die at; -1 for none
	points atomic.Int64
	// consumed counts, over all lives, how often a durable checkpoint used a bundle up.
	consumed map[wire.CID]int
}

func (c *crashing) point() error {
	if c.points.Add(1)-1 == c.at {
		return errCrash
	}
	return nil
}

func (c *crashing) Accept(ctx context.Context, batch []Accepted) error {
	if err := c.point(); err != nil {
		return err
	}
	if err := c.Store.Accept(ctx, batch); err != nil {
		return err
	}
	return c.point()
}

func (c *crashing) Commit(ctx context.Context, checkpoint Checkpoint) error {
	if err := c.point(); err != nil {
		return err
	}
	if err := c.Store.Commit(ctx, checkpoint); err != nil {
		return err
	}
	for _, cid := range checkpoint.Consumed {
		c.consumed[cid]++
	}
	return c.point()
}

func (c *crashing) Publish(ctx context.Context, r wire.SignedRelease, s *policy.Snapshot) error {
	if err := c.point(); err != nil {
		return err
	}
	if err := c.Publisher.Publish(ctx, r, s); err != nil {
		return err
	}
	return c.point()
}

// Wherever a learner dies, another that opens its store and is offered the same announcements finishes the same work:
// the chain has no gap and no fork, no bundle is used twice, and none that was accepted is lost.
func TestCrashAnywhere(t *testing.T) {
	n := plainNetwork(t)
	for durable, step := range map[bool]int64{false: 1, true: 7} { // disks are slow
		t.Run(fmt.Sprintf("folder %v", durable), func(t *testing.T) {
			for at := int64(0); ; at += step {
				if at > 200 {
					t.Fatal("the learner never finishes without a crash")
				}
				crashed := false
				synctest.Test(t, func(t *testing.T) { crashed = crashAt(t, n, at, durable) })
				if !crashed {
					if at < 15 {
						t.Fatalf("only %d points to die at", at)
					}
					return
				}
				if t.Failed() {
					t.Fatalf("after a crash at point %d", at)
				}
			}
		})
	}
}

// crashAt runs a learner that dies at a point, and then one that does not.
func crashAt(t *testing.T, n network, at int64, durable bool) (crashed bool) {
	const groups, evaluations = 22, 3
	s := newSwarm()
	var offers []wire.SignedAnnouncement
	offer := func(a wire.SignedAnnouncement, raw []byte) {
		s.add(raw)
		offers = append(offers, a)
	}
	for i := range groups {
		peer := key(byte(1 + i%2)).Peer()
		a, raw := encode(t, n.group(0, n.base.Digest(), peer, uint64(i)), peer)
		offer(a, raw)
	}
	for i := range evaluations {
		a, raw := encode(t, n.evaluation(0, n.base.Digest(), wire.PurposeEvaluateSampled, i, 2), key(9).Peer())
		offer(a, raw)
	}
	var store Store = NewMemory()
	dir := t.TempDir()
	c := &crashing{Publisher: s, at: at, consumed: make(map[wire.CID]int)}

	// live runs one life of the learner.
	live := func() (*Learner, error) {
		if durable {
			f, err := OpenFolder(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			store = f
		}
		c.Store = store
		config := n.config(s)
		config.Store, config.Publisher = c, c
		config.Stop.MaxVersion = 5
		config.Intake.Sync = 4
		config.FinalPatience = time.Second
		l, err := Open(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		// As after a restart of a node, everything is announced again once version 0 exists, and once more.
		s.publish = func(wire.SignedRelease) {
			for range 2 {
				for _, a := range offers {
					l.Offer(a)
				}
			}
		}
		return l, l.Run(t.Context())
	}
	_, err := live()
	crashed = errors.Is(err, errCrash)
	if err != nil && !crashed {
		t.Fatal(err)
	}
	c.at = -1
	l, err := live()
	if err != nil {
		t.Fatalf("the second life: %v", err)
	}
	checkChain(t, s.releases)
	status := l.Status()
	if status.Head.Version != 5 || !status.Head.Final || status.GroupsTrained != 20 {
		t.Errorf("version %d (final %v), trained on %d groups", status.Head.Version, status.Head.Final, status.GroupsTrained)
	}
	if e := l.board.Evaluation(0, wire.PurposeEvaluateSampled); e.Tasks != 10 || e.Successes != 6 {
		t.Errorf("evaluation %+v, want 10 tasks and 6 successes", e)
	}
	used := 0
	for cid, times := range c.consumed {
		if times != 1 {
			t.Errorf("bundle %s was used up %d times", cid, times)
		}
		used++
	}
	if used < 20 || used > 20+evaluations { // evaluations that came after the last checkpoint count from their records
		t.Errorf("%d bundles were used up, want 20 groups and at most %d evaluations", used, evaluations)
	}
	// The others that were accepted before the chain ended wait, in memory and in the store.
	if durable {
		f, err := OpenFolder(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		store = f
	}
	recovery, err := store.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	stored := 0
	for _, r := range recovery.Records {
		if r.Purpose == wire.PurposeTrain && !r.Consumed {
			stored++
		}
	}
	if status.Waiting != stored || stored > groups-20 {
		t.Errorf("%d groups wait, %d are stored", status.Waiting, stored)
	}
	return crashed
}

// The weights that come of it are those of a learner that never died.
func TestRestartContinuesWithTheSameWeights(t *testing.T) {
	n := banditNetwork(t)
	player := newBandit(t, n)
	if err := player.load(t.Context(), 0, n.base); err != nil {
		t.Fatal(err)
	}
	var records []Record
	store := NewMemory()
	for i := range 8 {
		g, err := player.play(t.Context(), key(1).Peer(), uint64(i))
		if err != nil {
			t.Fatal(err)
		}
		a, raw := encode(t, g, key(1).Peer())
		r := Record{CID: a.Bundle, Purpose: a.Purpose, Environment: a.Environment, Peer: a.Signer, Counter: a.Counter, Order: uint64(i)}
		records = append(records, r)
		if err := store.Accept(t.Context(), []Accepted{{r, raw}}); err != nil {
			t.Fatal(err)
		}
	}
	// run makes versions up to last on a copy of what was accepted, opening the store anew before each if asked.
	run := func(reopen bool) policy.Digest {
		own := NewMemory()
		for _, r := range records {
			raw, err := store.Bundle(t.Context(), r.CID)
			if err != nil {
				t.Fatal(err)
			}
			if err := own.Accept(t.Context(), []Accepted{{r, raw}}); err != nil {
				t.Fatal(err)
			}
		}
		open := func() *Learner {
			c := banditConfig(t, n, newSwarm())
			c.Store, c.Batch.Groups = own, 2
			l, err := Open(t.Context(), c)
			if err == nil {
				err = l.begin(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		l := open()
		for l.head.Version < 4 {
			batch, _ := l.take()
			if err := l.step(t.Context(), batch, false); err != nil {
				t.Fatal(err)
			}
			if reopen {
				l = open()
			}
		}
		return l.snapshot.Digest()
	}
	if whole, pieces := run(false), run(true); whole != pieces {
		t.Errorf("policy %s, with restarts %s", whole.Short(), pieces.Short())
	}
}

// running starts a learner and returns it with a function that stops it and fails the test if Run failed otherwise.
func running(t *testing.T, c Config) (*Learner, func()) {
	t.Helper()
	l, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- l.Run(ctx) }()
	synctest.Wait()
	return l, func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("run: %v", err)
		}
	}
}

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
	synctest.Test(t, func(t *testing.T) {
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
	synctest.Test(t, func(t *testing.T) {
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

// Ten times more arrives than the learner keeps. It keeps what it may, counts the rest, and holds no more bytes and
// fetches than it should, while one peer's flood does not push out another's few.
func TestOverflowIsBoundedAndCounted(t *testing.T) {
	n := plainNetwork(t)
	synctest.Test(t, func(t *testing.T) {
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
		c.Batch = BatchRule{Groups: 20, PeerShare: 1, Patience: time.Hour}
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
	synctest.Test(t, func(t *testing.T) {
		s := newSwarm()
		var fetched atomic.Int64
		s.fetch = func(context.Context, wire.CID) error { fetched.Add(1); return nil }
		c := n.config(s)
		c.Batch = BatchRule{Groups: 10, PeerShare: 1, Patience: time.Hour}
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

// A peer that never answers costs its own announcements, counted, and hardly delays another's.
func TestSilentPeer(t *testing.T) {
	n := plainNetwork(t)
	synctest.Test(t, func(t *testing.T) {
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
	synctest.Test(t, func(t *testing.T) {
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

func TestGroupsExpire(t *testing.T) {
	n := plainNetwork(t)
	synctest.Test(t, func(t *testing.T) {
		s := newSwarm()
		c := n.config(s)
		lag := uint64(2)
		c.MaxLag = &lag
		c.Batch = BatchRule{Groups: 4, PeerShare: 0.5, Patience: 10 * time.Second}
		s.publish = func(r wire.SignedRelease) {
			if r.Version == 1 {
				time.Sleep(time.Second) // all the others are accepted meanwhile
			}
		}
		l, stop := running(t, c)
		defer stop()
		offerGroups(t, n, s, l, 1, 0, 18)
		time.Sleep(time.Minute)
		status := l.Status()
		// Versions 1, 2 and 3 use twelve; then the lag is 3.
		if status.Head.Version != 3 || status.Reasons[StaleAtUse] != 6 || status.Waiting != 0 {
			t.Errorf("version %d, reasons %v, %d wait", status.Head.Version, status.Reasons, status.Waiting)
		}
		if offerGroups(t, n, s, l, 1, 18, 1) != 0 || s.counted(Stale) != 1 {
			t.Error("a stale announcement is taken")
		}
	})
}

func TestBadGradientsLeaveTheWeights(t *testing.T) {
	n := plainNetwork(t)
	for name, norm := range map[string]float64{"not finite": math.NaN(), "absurd": 1e9} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSwarm()
				c := n.config(s)
				// The second update of the second step is bad: the first must be undone with it.
				c.Trainer = &fakeTrainer{weights: make([]float32, 4), norm: func(step int) float64 {
					if step == 3 {
						return norm
					}
					return 1
				}}
				c.Stop.MaxVersion = 3
				c.FinalPatience = 0
				l, err := Open(t.Context(), c)
				if err != nil {
					t.Fatal(err)
				}
				s.publish = func(r wire.SignedRelease) {
					if r.Version == 0 {
						offerGroups(t, n, s, l, 1, 0, 12)
					}
				}
				if err := l.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				var changed []bool
				for i := 1; i < len(s.releases); i++ {
					changed = append(changed, s.releases[i].Policy.Digest != s.releases[i-1].Policy.Digest)
				}
				if fmt.Sprint(changed) != "[true false true]" {
					t.Errorf("the policy changed: %v", changed)
				}
				if s.steps[0].Skipped != "" || s.steps[1].Skipped == "" || s.steps[1].Updates != 0 || s.steps[2].Skipped != "" {
					t.Errorf("skipped: %q, %q, %q", s.steps[0].Skipped, s.steps[1].Skipped, s.steps[2].Skipped)
				}
				if got := l.Status().GroupsTrained; got != 8 {
					t.Errorf("trained on %d groups, want 8", got)
				}
			})
		})
	}
}

func TestTargetEndsTheChain(t *testing.T) {
	n := plainNetwork(t)
	synctest.Test(t, func(t *testing.T) {
		s := newSwarm()
		c := n.config(s)
		c.Stop = Stop{Target: 0.5, Hold: 2, Purpose: wire.PurposeEvaluateSampled}
		c.EvaluateEvery = 1
		c.FinalPatience = time.Minute
		c.Intake.Waiting = 4
		l, err := Open(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() { done <- l.Run(t.Context()) }()
		evaluate := func(version uint64, digest policy.Digest, solved int) {
			for _, purpose := range []wire.Purpose{wire.PurposeEvaluateSampled, wire.PurposeEvaluateGreedy} {
				for block := range draw.EvaluationBlocks(&n.charter.Charter) {
					a, raw := encode(t, n.evaluation(version, digest, purpose, block, solved), key(3).Peer())
					s.add(raw)
					l.Offer(a)
				}
			}
		}
		head := func() wire.SignedRelease {
			synctest.Wait()
			return l.Status().Head
		}
		for version := range uint64(3) {
			if head().Version != version || head().Final {
				t.Fatalf("version %d (final %v), want %d", head().Version, head().Final, version)
			}
			if version == 2 {
				offerGroups(t, n, s, l, 1, 50, 3) // they wait when the chain ends
			}
			evaluate(version, head().Policy.Digest, int(version)*2) // 0, 12 and 20 of 20 tasks
			if version < 2 {
				synctest.Wait()
				offerGroups(t, n, s, l, 1, int(version)*4, 4)
			}
		}
		if h := head(); h.Version != 3 || !h.Final || !h.Evaluate || h.Policy != s.releases[2].Policy {
			t.Fatalf("version %d (final %v) follows the target", h.Version, h.Final)
		}
		if offerGroups(t, n, s, l, 1, 100, 1) != 0 || s.counted(Ended) != 1 {
			t.Error("a group is taken although the chain is final")
		}
		began := time.Now()
		evaluate(3, head().Policy.Digest, 4)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(began); waited != 0 {
			t.Errorf("a complete evaluation was waited for another %v", waited)
		}
		checkChain(t, s.releases)
		if e := l.board.Evaluation(3, wire.PurposeEvaluateGreedy); !e.Complete() || e.Success() != 1 {
			t.Errorf("the last evaluation is %+v", e)
		}
		if len(s.results) == 0 || s.results[0].Version != 0 {
			t.Error("the observer saw no evaluation")
		}
	})
}

func TestOpenRefuses(t *testing.T) {
	n := plainNetwork(t)
	for name, change := range map[string]func(*Config){
		"a key that may not release": func(c *Config) { c.Key = key(1) },
		"another base policy": func(c *Config) {
			f := fakeTrainer{weights: []float32{1, 2, 3, 4}}
			c.Base, c.Trainer = testPolicy(t, []byte(`{"vocab_size":512}`), f.tensors()), &f
		},
		"a trainer of other weights": func(c *Config) { c.Trainer = &fakeTrainer{weights: []float32{1, 2, 3, 4}} },
		"no store":                   func(c *Config) { c.Store = nil },
		"less room than a batch":     func(c *Config) { c.Intake.Waiting = 3 },
		"no loss":                    func(c *Config) { c.Algorithm.Loss = nil },
		"a temperature": func(c *Config) {
			hot := newNetwork(t, n.base, func(c *wire.Charter) { c.Rollout.Sampling.Temperature = 0.7 })
			c.Charter = hot.charter
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := n.config(newSwarm())
			change(&c)
			if _, err := Open(t.Context(), c); err == nil {
				t.Error("opened")
			} else {
				t.Log(err)
			}
		})
	}
	t.Run("another network's store", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := n.config(newSwarm())
			_, stop := running(t, c)
			stop()
			other := newNetwork(t, n.base, func(c *wire.Charter) { c.Nonce = []byte("other") })
			c2 := other.config(newSwarm())
			c2.Store = c.Store
			if _, err := Open(t.Context(), c2); err == nil {
				t.Error("opened")
			}
		})
	})
}
