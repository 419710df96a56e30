package node

import (
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/google/go-cmp/cmp"

	"github.com/lightswarm/lightswarm/learner"
	"github.com/lightswarm/lightswarm/node/config"
	"github.com/lightswarm/lightswarm/node/store"
	"github.com/lightswarm/lightswarm/rollout"
	"github.com/lightswarm/lightswarm/wire"
)

// Whatever the order of verdicts, a cursor is the first sequence without one, and a new cursors knows it from the store.
func TestCursorIsFirstUndecided(t *testing.T) {
	s, err := store.Open(store.Options{Folder: "db", InMemory: true, MaxBlockBytes: 1000})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	peers := 0 // Each check has a peer of its own: to open a store takes long.
	rapid.Check(t, func(t *rapid.T) {
		peers++
		peer := wire.PeerID(fmt.Sprint(peers))
		c := newCursors(s)
		decided := map[uint64]bool{}
		for _, sequence := range rapid.SliceOf(rapid.Uint64Range(0, 12)).Draw(t, "sequences") {
			if err := c.judged(peer, sequence, true); err != nil {
				t.Fatal(err)
			}
			decided[sequence] = true
			first := uint64(0)
			for decided[first] {
				first++
			}
			if got, again := c.next(peer), newCursors(s).next(peer); got != first || again != first {
				t.Fatalf("cursor is %d, from the store %d, want %d", got, again, first)
			}
		}
	})
}

func TestCursorGivesUpOnAGap(t *testing.T) {
	c := cursor{ahead: map[uint64]bool{}}
	for sequence := range uint64(maxJudgedAhead) {
		if c.judge(sequence + 1) {
			t.Fatalf("moved to %d over a gap", c.next)
		}
	}
	if !c.judge(maxJudgedAhead+1) || c.next != maxJudgedAhead+2 || len(c.ahead) != 0 {
		t.Errorf("cursor is %d with %d ahead", c.next, len(c.ahead))
	}
}

func TestCursorsAreBounded(t *testing.T) {
	s, err := store.Open(store.Options{Folder: "db", InMemory: true, MaxBlockBytes: 1000})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c := newCursors(s)
	for i := range maxCursors + 10 {
		c.next(wire.PeerID(fmt.Sprint(i)))
	}
	if len(c.byPeer.entries) > maxCursors {
		t.Errorf("%d peers are remembered", len(c.byPeer.entries))
	}
}

// Announcements that are refused leave nothing on the disk, until the peer's first that is accepted.
func TestCursorsOfStrangersAreNotStored(t *testing.T) {
	s, err := store.Open(store.Options{Folder: "db", InMemory: true, MaxBlockBytes: 1000})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c := newCursors(s)
	for sequence, want := range []uint64{0, 0, 3, 4} {
		if err := c.judged("peer", uint64(sequence), sequence == 2); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Cursor("peer"); got != want || err != nil {
			t.Errorf("after sequence %d the store has %d, %v, want %d", sequence, got, err, want)
		}
	}
}

// Peers with accepted work keep their standing, and newcomers get one, however many others were made up.
func TestStandingsOfMadeUpPeers(t *testing.T) {
	s := newStandings()
	s.judge("good", learner.Verdict{Reason: learner.Admitted})
	for i := range 2 * maxStandings {
		s.judge(wire.PeerID(fmt.Sprint(i)), learner.Verdict{Reason: learner.Malformed})
	}
	s.judge("newcomer", learner.Verdict{Reason: learner.Admitted})
	if s.score("good") <= 0 || s.score("newcomer") <= 0 {
		t.Errorf("scores: good %v, newcomer %v", s.score("good"), s.score("newcomer"))
	}
}

func TestStandings(t *testing.T) {
	s := newStandings()
	if got := s.score("unknown"); got != 0 {
		t.Errorf("unknown peer: %v", got)
	}
	judge := func(p wire.PeerID, r learner.Reason, times int) {
		for range times {
			s.judge(p, learner.Verdict{Reason: r})
		}
	}
	judge("good", learner.Admitted, 20)
	judge("late", learner.Stale, 1000)
	judge("repeats", learner.Duplicate, 1000)
	judge("cheat", learner.WrongDraw, 20)
	judge("turned", learner.Admitted, 100)
	judge("turned", learner.LogProbRange, 10)
	for p, want := range map[wire.PeerID][2]float64{
		"good": {50, 50}, "late": {0, 0}, "repeats": {0, 0}, "cheat": {-100, -90}, "turned": {-100, -20},
	} {
		if got := s.score(p); got < want[0] || got > want[1] || math.IsNaN(got) {
			t.Errorf("%s: %v, want %v to %v", p, got, want[0], want[1])
		}
	}
}

func TestEvaluationsAreBounded(t *testing.T) {
	var e evaluations
	now := time.Now()
	announcement := func(version uint64, purpose wire.Purpose, block uint64) *wire.SignedAnnouncement {
		return &wire.SignedAnnouncement{Announcement: wire.Announcement{PolicyVersion: version, Purpose: purpose, Counter: block}, Signer: "peer"}
	}
	e.add(announcement(1, wire.PurposeTrain, 0), 4, now)
	e.add(announcement(1, wire.PurposeEvaluateGreedy, 4), 4, now)
	if len(e.versions) != 0 {
		t.Error("training, or a block that does not exist, counts as an evaluation")
	}
	for version := range uint64(2 * keptEvaluations) {
		e.add(announcement(version, wire.PurposeEvaluateSampled, 3), 4, now)
	}
	newest := uint64(2*keptEvaluations - 1)
	for _, c := range []struct {
		version uint64
		purpose wire.Purpose
		block   uint64
		want    rollout.Claim
	}{
		{newest, wire.PurposeEvaluateSampled, 3, rollout.Claimed},
		{newest, wire.PurposeEvaluateGreedy, 3, rollout.Unclaimed},
		{newest, wire.PurposeEvaluateSampled, 2, rollout.Unclaimed},
		{0, wire.PurposeEvaluateSampled, 3, rollout.Unclaimed},
	} {
		if got := e.at(now, c.version, c.purpose, c.block); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	if len(e.versions) != keptEvaluations {
		t.Errorf("%d versions are kept", len(e.versions))
	}
}

// Whoever announces what it did not measure puts the measurement off for a while, however often and under however many
// names, and a learner's word ends all doubt.
func TestClaimsExpire(t *testing.T) {
	var e evaluations
	start := time.Now()
	claim := func(at time.Duration, signer string, want rollout.Claim) {
		t.Helper()
		now := start.Add(at)
		e.add(&wire.SignedAnnouncement{
			Announcement: wire.Announcement{PolicyVersion: 7, Purpose: wire.PurposeEvaluateGreedy, Counter: 2}, Signer: wire.PeerID(signer),
		}, 4, now)
		if got := e.at(now, 7, wire.PurposeEvaluateGreedy, 2); got != want {
			t.Errorf("%v after the first claim of %s: %v, want %v", at, signer, got, want)
		}
	}
	claim(0, "a", rollout.Claimed)
	claim(claimHolds-1, "a", rollout.Claimed)
	claim(claimHolds, "a", rollout.Unclaimed)
	claim(2*claimHolds, "b", rollout.Claimed)
	claim(3*claimHolds, "c", rollout.Claimed)
	claim(4*claimHolds, "d", rollout.Unclaimed)
	e.confirm(wire.EvaluationResults{Version: 7, Sampled: []byte{1 << 2}}, 4)
	claim(5*claimHolds, "e", rollout.Unclaimed)
	e.confirm(wire.EvaluationResults{Version: 7, Greedy: []byte{1 << 2}}, 4)
	claim(6*claimHolds, "f", rollout.Settled)
	e.made(&wire.SignedAnnouncement{Announcement: wire.Announcement{PolicyVersion: 8, Purpose: wire.PurposeEvaluateSampled, Counter: 1}})
	if got := e.at(start, 8, wire.PurposeEvaluateSampled, 1); got != rollout.Settled {
		t.Errorf("what the node measured itself is %v", got)
	}
}

// The settings' defaults are those that the learner itself would choose.
func TestDefaultsAgree(t *testing.T) {
	settings, own := config.Default().Learner, learner.DefaultConfig()
	if settings.Groups != own.Batch.Groups || settings.Dynamic != own.Batch.Dynamic || settings.Patience != own.Batch.Patience ||
		settings.LearningRate != own.Algorithm.Schedule.Peak || uint64(settings.EvaluateEvery) != own.EvaluateEvery ||
		settings.FinalPatience != own.FinalPatience {
		t.Errorf("settings: %+v, the learner's: %+v", settings, own)
	}
	named, err := algorithm(settings)
	if diff := cmp.Diff(own.Algorithm, named); diff != "" || err != nil {
		t.Errorf("error %v, the algorithm (-learner's +settings'):\n%s", err, diff)
	}
}

func TestJoinCommandPrefersReachableAddresses(t *testing.T) {
	const loopback, private, public, name = "/ip4/127.0.0.1/tcp/1", "/ip4/192.168.1.2/tcp/1", "/ip4/192.0.2.1/tcp/1", "/dns4/example.org/tcp/1"
	for _, c := range []struct{ all, want []string }{
		{[]string{loopback}, []string{loopback}},
		{[]string{loopback, private}, []string{private}},
		{[]string{loopback, private, public, name}, []string{public, name}},
		{[]string{public, public, public, public, public}, []string{public, public, public, public}},
		{nil, nil},
	} {
		got := bootstrapAddresses(c.all)
		if len(got) != len(c.want) {
			t.Errorf("of %v: %v, want %v", c.all, got, c.want)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("of %v: %v, want %v", c.all, got, c.want)
			}
		}
	}
}
