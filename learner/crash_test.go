package learner

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/virtualtime"
	"github.com/lightswarm/lightswarm/wire"
)

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
	offers := crashOffers(t, n)
	for durable, step := range map[bool]int64{false: 1, true: 7} { // disks are slow
		t.Run(fmt.Sprintf("folder %v", durable), func(t *testing.T) {
			for at := int64(0); ; at += step {
				if at > 200 {
					t.Fatal("the learner never finishes without a crash")
				}
				crashed := false
				virtualtime.Test(t, func(t *testing.T) { crashed = crashAt(t, n, offers, at, durable) })
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

// What a learner that dies is offered.
const crashGroups, crashEvaluations = 22, 3

// offer is a bundle and its announcement.
type offer struct {
	announcement wire.SignedAnnouncement
	raw          []byte
}

// crashOffers makes the groups and the evaluations that every life of a learner is offered.
func crashOffers(t *testing.T, n network) (offers []offer) {
	t.Helper()
	for i := range crashGroups {
		peer := key(byte(1 + i%2)).Peer()
		a, raw := encode(t, n.group(0, n.base.Digest(), peer, uint64(i)), peer)
		offers = append(offers, offer{a, raw})
	}
	for i := range crashEvaluations {
		a, raw := encode(t, n.evaluation(0, n.base.Digest(), wire.PurposeEvaluateSampled, i, 2), key(9).Peer())
		offers = append(offers, offer{a, raw})
	}
	return offers
}

// crashAt runs a learner that dies at a point, and then one that does not.
func crashAt(t *testing.T, n network, offers []offer, at int64, durable bool) (crashed bool) {
	s := newSwarm()
	for _, o := range offers {
		s.add(o.raw)
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
				for _, o := range offers {
					l.Offer(o.announcement)
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
	if used < 20 || used > 20+crashEvaluations { // evaluations that came after the last checkpoint count from their records
		t.Errorf("%d bundles were used up, want 20 groups and at most %d evaluations", used, crashEvaluations)
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
	if status.Waiting != stored || stored > crashGroups-20 {
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
