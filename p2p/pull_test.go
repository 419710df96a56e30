package p2p_test

import (
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/lightswarm/lightswarm/p2p"
	"github.com/lightswarm/lightswarm/p2p/gossip"
	"github.com/lightswarm/lightswarm/p2p/head"
	"github.com/lightswarm/lightswarm/p2p/simnet"
	"github.com/lightswarm/lightswarm/virtualtime"
	"github.com/lightswarm/lightswarm/wire"
)

// liar answers head requests with fixed records, whatever was asked.
type liar struct{ releases, announcements [][]byte }

func (l liar) Releases(uint64, int) ([][]byte, error)                   { return l.releases, nil }
func (l liar) Announcements(wire.PeerID, uint64, int) ([][]byte, error) { return l.announcements, nil }
func (l liar) Head() uint64                                             { return uint64(len(l.releases)) }

// TestPulledRecordsAreJudged has a peer answer pulls with what it must not: nothing of it reaches the node, and the
// peer loses its standing.
func TestPulledRecordsAreJudged(t *testing.T) {
	key := wire.NewKey(simnet.Key(10, 1))
	network := wire.SumCID([]byte("network 10")) // That of the world with seed 10.
	forged := signAnnouncement(t, key, network, 0, 0).Raw
	forged[len(forged)-1] ^= 1
	for name, c := range map[string]struct {
		source liar
		want   gossip.Reason
		kind   string
	}{
		"a release by somebody who is no learner": {
			liar{releases: [][]byte{signRelease(t, key, network, 1).Raw}}, gossip.NotALearner, "release"},
		"a forged announcement": {liar{announcements: [][]byte{forged}}, gossip.BadSignature, "announcement"},
		"junk":                  {liar{announcements: [][]byte{[]byte("junk")}}, gossip.Malformed, "announcement"},
		"an announcement for another network": {liar{announcements: [][]byte{
			signAnnouncement(t, key, wire.SumCID([]byte("other")), 0, 0).Raw}}, gossip.OtherNetwork, "announcement"},
	} {
		t.Run(name, func(t *testing.T) {
			virtualtime.Test(t, func(t *testing.T) {
				w := newWorld(t, 10)
				defer w.close()
				if w.network != network {
					t.Fatal("the test is about another network")
				}
				learner := w.add()
				h, err := w.net.Host(simnet.Key(10, 1), netip.AddrPortFrom(simnet.Addr(1), 8000), 100, nil)
				if err != nil {
					t.Fatal(err)
				}
				defer h.Close()
				defer head.Serve(h, network, c.source).Close()
				info := peer.AddrInfo{ID: learner.Host().ID(), Addrs: learner.Host().Addrs()}
				if err := h.Connect(t.Context(), info); err != nil {
					t.Fatal(err)
				}
				time.Sleep(5 * time.Second)
				if n := learner.Stats().Pull.Verdicts[c.kind][c.want]; n == 0 {
					t.Errorf("nothing was refused as %s: %v", c.want, learner.Stats().Pull.Verdicts)
				}
				if learner.source.nextVersion() != 0 || learner.source.handed != 0 {
					t.Error("it was handed over")
				}
			})
		})
	}
}

// TestReleasesOfANewerFormatAreToldAndNotAskedForAgain has a peer with more releases than one answer takes, all in a format
// that the node cannot read: the node is told, and its pull ends.
func TestReleasesOfANewerFormatAreToldAndNotAskedForAgain(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		w := newWorld(t, 14)
		defer w.close()
		newer, err := wire.Sign(wire.NewKey(w.private(0)), wire.DomainRelease, []byte{1 << 3, wire.Major + 1})
		if err != nil {
			t.Fatal(err)
		}
		w.add()
		var told atomic.Int64
		n := w.add(func(c *p2p.Config) {
			c.OnRefused = func(r wire.SignedRelease, reason gossip.Reason) {
				if reason == gossip.NewerFormat && r.Signer == c.Learners[0] {
					told.Add(1)
				}
			}
		})
		h, err := w.net.Host(simnet.Key(14, 9), netip.AddrPortFrom(simnet.Addr(9), 8000), 100, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		const releases = 64
		defer head.Serve(h, w.network, liar{releases: slices.Repeat([][]byte{newer}, releases)}).Close()
		if err := h.Connect(t.Context(), peer.AddrInfo{ID: n.Host().ID(), Addrs: n.Host().Addrs()}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if told.Load() != releases {
			t.Errorf("the node was told %d times of %d releases", told.Load(), releases)
		}
	})
}

// TestWhatItsAuthorLostIsGivenUp has an author that kept only its newer announcements: the learner takes those and
// does not ask for the others for ever.
func TestWhatItsAuthorLostIsGivenUp(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		w := newWorld(t, 12)
		defer w.close()
		learner := w.add()
		learner.release()
		author := w.add()
		author.source.keepRelease(learner.source.releases[0])
		var kept []wire.SignedAnnouncement
		for _, sequence := range []uint64{5000, 5001, 5003} {
			a := signAnnouncement(t, author.key, w.network, sequence, 0)
			author.source.keepAnnouncement(a)
			kept = append(kept, a)
		}
		w.waitFor("the learner has what is left", time.Minute, func() bool { return hasAll(learner, kept) })
		if n := learner.Stats().Pull.Lost; n != 5001 {
			t.Errorf("%d announcements are counted as lost, want 5000 at the start and one between", n)
		}
		before := learner.Stats().Pull.Pulls
		time.Sleep(10 * time.Minute)
		// A round every 30 s asks learners, bootstraps and a few members, which is the author each time.
		if n := learner.Stats().Pull.Pulls - before; n > 30 {
			t.Errorf("%d pulls in ten minutes", n)
		}
	})
}

// TestAnnouncementsWaitForTheirVersion has an author that knows a version which the learner does not have yet, as after
// the learner went back to a backup: its announcements for it are not lost, nor are others between them.
func TestAnnouncementsWaitForTheirVersion(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		w := newWorld(t, 13)
		defer w.close()
		learner := w.add()
		learner.release()
		author := w.add()
		author.source.keepRelease(learner.source.releases[0])
		var now, later []wire.SignedAnnouncement
		for sequence, version := range map[uint64]uint64{0: 0, 1: 1, 2: 0, 3: 1, 5: 0} { // The author lost 4.
			a := signAnnouncement(t, author.key, w.network, sequence, version)
			author.source.keepAnnouncement(a)
			if version == 0 {
				now = append(now, a)
			} else {
				later = append(later, a)
			}
		}
		w.waitFor("the learner has what is for its version", time.Minute, func() bool { return hasAll(learner, now) })
		time.Sleep(10 * time.Minute)
		for _, a := range later {
			if learner.source.has(a) {
				t.Errorf("announcement %d for an unknown version was handed over", a.Sequence)
			}
		}
		learner.release()
		w.waitFor("the learner has the rest", 6*time.Minute, func() bool { return hasAll(learner, later) })
		if n := learner.Stats().Pull.Lost; n != 1 {
			t.Errorf("%d announcements are counted as lost, want 1", n)
		}
		if n := learner.source.handed; n != 5 {
			t.Errorf("%d announcements were handed over, want 5", n)
		}
	})
}
