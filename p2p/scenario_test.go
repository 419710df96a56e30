package p2p_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lightswarm/lightswarm/p2p"
	"github.com/lightswarm/lightswarm/p2p/gossip"
	"github.com/lightswarm/lightswarm/p2p/simnet"
	"github.com/lightswarm/lightswarm/virtualtime"
	"github.com/lightswarm/lightswarm/wire"
)

func TestReleaseReachesEveryMember(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		defer w.close()
		for range 10 {
			w.add()
		}
		w.waitFor("everybody has peers", time.Minute, func() bool {
			return all(w.nodes, func(n *node) bool { return n.Stats().Members >= 3 })
		})
		for version := range uint64(4) {
			w.nodes[0].release()
			w.waitFor(fmt.Sprintf("everybody has version %d", version), 5*time.Second, func() bool {
				return all(w.nodes, func(n *node) bool { return n.source.nextVersion() == version+1 })
			})
		}
	})
}

func all(nodes []*node, holds func(*node) bool) bool {
	for _, n := range nodes {
		if !holds(n) {
			return false
		}
	}
	return true
}

func TestLateJoinerCatchesUp(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		defer w.close()
		learner := w.add()
		for range 3 {
			learner.release() // Nobody hears it.
		}
		member := w.add()
		w.waitFor("the second node has all releases", 30*time.Second, func() bool { return member.source.nextVersion() == 3 })
	})
}

func TestLateJoinerGetsTheNewestReleasesFirst(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		w := newWorld(t, 3)
		defer w.close()
		learner := w.add()
		for version := range uint64(500) {
			learner.source.keepRelease(signRelease(t, learner.key, w.network, version))
		}
		member := w.add()
		w.waitFor("the second node knows the newest release", 30*time.Second, func() bool { return member.source.Head() == 499 })
		if n := len(member.source.releases); n > 64 {
			t.Errorf("the node was given %d releases of the past, want at most 64", n)
		}
	})
}

func TestAnnouncementsThatGossipLostArePulled(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		w := newWorld(t, 4)
		defer w.close()
		learner := w.add()
		learner.release()
		author := w.add(func(c *p2p.Config) { c.Bootstrap = nil }) // It knows nobody, so that its gossip is lost.
		author.source.keepRelease(learner.source.releases[0])
		var lost []wire.SignedAnnouncement
		for range 5 {
			lost = append(lost, author.announce())
		}
		if n := author.Stats().Gossip.Unheard; n < 5 {
			t.Fatalf("%d records were published to nobody, want the 5 announcements at least", n)
		}
		w.connect(author, learner)
		w.waitFor("the learner has what was published to nobody", 30*time.Second, func() bool {
			return hasAll(learner, lost)
		})

		// Again for one in the middle, kept from the learner but not from the author's store: the next one shows the gap.
		middle := signAnnouncement(t, author.key, w.network, 5, 0)
		author.source.keepAnnouncement(middle)
		next := author.announce()
		w.waitFor("the learner saw the gap and filled it", 30*time.Second, func() bool {
			return hasAll(learner, []wire.SignedAnnouncement{middle, next})
		})
		if n := learner.source.handed; n != 7 {
			t.Errorf("the learner was handed %d announcements, want each of 7 once", n)
		}
	})
}

func TestAnnouncementsAreToBeHadFromOthersWhenTheirAuthorLeft(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		w := newWorld(t, 5)
		defer w.close()
		learner, relay, author := w.add(), w.add(), w.add()
		learner.release()
		w.waitFor("the author has the release and peers", time.Minute, func() bool {
			return author.source.nextVersion() == 1 && author.Stats().Members == 2
		})
		first := []wire.SignedAnnouncement{author.announce()}
		w.waitFor("the learner has the first", 30*time.Second, func() bool { return hasAll(learner, first) })
		w.net.Partition([]netip.Addr{simnet.Addr(0)}) // The learner is alone.
		time.Sleep(time.Minute)                       // Connections to it are given up.
		announced := []wire.SignedAnnouncement{author.announce(), author.announce()}
		w.waitFor("the relay has them", 30*time.Second, func() bool { return hasAll(relay, announced) })
		author.stop()
		w.net.Heal()
		w.waitFor("the learner has them", 5*time.Minute, func() bool { return hasAll(learner, announced) })
	})
}

func hasAll(n *node, announced []wire.SignedAnnouncement) bool {
	for _, a := range announced {
		if !n.source.has(a) {
			return false
		}
	}
	return true
}

// A learner whose data folder was copied signs two releases of one version. Nodes keep the one that they have, and are
// told of the other one.
func TestForkIsTold(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		w := newWorld(t, 90)
		defer w.close()
		learner := w.add()
		var mu sync.Mutex
		told := make(map[int][]wire.CID) // By node.
		for i := 1; i <= 3; i++ {
			w.add(func(c *p2p.Config) {
				c.OnRefused = func(r wire.SignedRelease, reason gossip.Reason) {
					if reason != gossip.Forked {
						t.Errorf("node %d was told of a release that is %s", i, reason)
					}
					mu.Lock()
					defer mu.Unlock()
					told[i] = append(told[i], r.ID)
				}
			})
		}
		w.waitFor("everybody is connected to the learner", time.Minute, func() bool { return learner.Stats().Members == 3 })
		first := learner.release()
		for _, n := range w.nodes {
			w.waitFor("the release arrives", time.Minute, func() bool { return n.source.nextVersion() == 1 })
		}
		second, err := wire.SignRelease(learner.key, wire.Release{
			Network: w.network, Created: signedAt(9), Policy: first.Policy,
		})
		if err != nil {
			t.Fatal(err)
		}
		learner.publish(learner.PublishRelease, second.Raw)
		learner.publish(learner.PublishRelease, first.Raw)
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		for i := 1; i <= 3; i++ {
			if !slices.Equal(told[i], []wire.CID{second.ID}) {
				t.Errorf("node %d was told of %v, want %v", i, told[i], second.ID)
			}
			if n := w.nodes[i]; n.source.nextVersion() != 1 || n.source.releases[0].ID != first.ID {
				t.Errorf("node %d did not stay with the release that it had", i)
			}
		}
	})
}

// The learner, everybody's only bootstrap, comes back with another address that nobody was told. It finds one member
// again, and through that one the others find it.
func TestLearnerMoves(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		w := newWorld(t, 91)
		defer w.close()
		const others = 6
		learner := w.add()
		only := func(c *p2p.Config) { c.Bootstrap = []string{w.bootstrapAddr(0)} }
		for range others {
			w.add(only)
		}
		w.waitFor("everybody has peers", 5*time.Minute, func() bool {
			return all(w.nodes, func(n *node) bool { return n.Stats().Members >= 3 })
		})
		learner.stop()
		time.Sleep(3 * time.Minute)
		for _, n := range w.nodes[1:] {
			if n.Stats().Members == 0 {
				t.Fatalf("node %d is alone without the learner", n.index)
			}
		}

		h, err := w.net.Host(w.private(0), netip.AddrPortFrom(simnet.Addr(70), 8000), 100, nil)
		if err != nil {
			t.Fatal(err)
		}
		cfg := p2p.Config{
			Key: w.private(0), Network: w.network, Learners: []wire.PeerID{learner.key.Peer()}, MaxLag: 2, Collect: true,
			Blocks: learner.blocks, Head: learner.source, OnAnnouncement: learner.source.keepAnnouncement, Seed: 5, Host: h,
			Bootstrap: []string{w.bootstrapAddr(4)}, Tuning: p2p.Tuning{MinConnections: 4},
		}
		moved, err := p2p.New(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var ended sync.WaitGroup
		ended.Go(func() {
			if err := moved.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		w.waitFor("everybody is connected to the learner again", 10*time.Minute, func() bool {
			return moved.Stats().Members == others
		})
		cancel()
		ended.Wait()
		if err := moved.Close(); err != nil {
			t.Error(err)
		}
	})
}
