package gossip_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/lightswarm/lightswarm/p2p/gossip"
	"github.com/lightswarm/lightswarm/p2p/simnet"
	"github.com/lightswarm/lightswarm/wire"
)

// TestMemoryIsASet compares a collector's memory with a plain set of sequences.
func TestMemoryIsASet(t *testing.T) {
	const window = 1024
	author := stranger.Peer()
	rapid.Check(t, func(t *rapid.T) {
		cursor := rapid.Uint64Range(0, 3).Draw(t, "cursor")
		m := gossip.NewMemory(gossip.MemoryOptions{Collect: true, Cursor: func(wire.PeerID) uint64 { return cursor }})
		known := make(map[uint64]bool)
		next := func() uint64 {
			for n := cursor; ; n++ {
				if !known[n] {
					return n
				}
			}
		}
		end := cursor
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			sequence := rapid.OneOf(rapid.Uint64Range(0, 20), rapid.Uint64Range(1000, 1060), rapid.Uint64()).Draw(t, "sequence")
			switch rapid.IntRange(0, 2).Draw(t, "step") {
			case 0:
				isNew := sequence >= next() && sequence-next() < window && !known[sequence]
				if got := m.Take(author, sequence); got != isNew {
					t.Fatalf("take %d: %v, want %v", sequence, got, isNew)
				}
				if isNew {
					known[sequence] = true
				}
				if sequence+1 > sequence {
					end = max(end, sequence+1)
				}
			case 1:
				to := sequence % 1100
				missing := uint64(0)
				for n := next(); n < to; n++ {
					if !known[n] {
						missing++
						known[n] = true
					}
				}
				end = max(end, to)
				if got := m.Skip(author, to); got != missing {
					t.Fatalf("skip to %d: %d were missing, want %d", to, got, missing)
				}
			case 2:
				m.Heard(author, now, sequence%2000)
				end = max(end, sequence%2000)
			}
			if got := m.Cursor(author); got != next() {
				t.Fatalf("the cursor is %d, want %d", got, next())
			}
			gaps := m.Gaps(now, 10)
			if want := end > next(); want != (len(gaps) == 1) {
				t.Fatalf("gaps %v, with everything known below %d of %d", gaps, next(), end)
			} else if want && gaps[0] != (gossip.Gap{Peer: author, From: next(), End: end}) {
				t.Fatalf("gap %+v, want from %d to %d", gaps[0], next(), end)
			}
			probe := rapid.Uint64Range(0, 2500).Draw(t, "probe")
			want := gossip.Accepted
			if probe < next() || known[probe] {
				want = gossip.Duplicate
			} else if probe-next() >= window {
				want = gossip.TooFarAhead
			}
			if got := m.Announced(author, probe); got != want {
				t.Fatalf("%d is %s, want %s", probe, got, want)
			}
		}
	})
}

func TestARelayForgetsOldGaps(t *testing.T) {
	m := gossip.NewMemory(gossip.MemoryOptions{})
	author := stranger.Peer()
	for sequence := uint64(0); sequence < 100_000; sequence += 2 { // Every other one is lost.
		if m.Announced(author, sequence) != gossip.Accepted || !m.Take(author, sequence) {
			t.Fatalf("%d was not taken", sequence)
		}
	}
	if m.Take(author, 99_998) {
		t.Error("the last one was taken twice")
	}
	if !m.Take(author, 99_997) {
		t.Error("a recent gap was forgotten")
	}
}

func TestGapsAreAskedForLessAndLessOften(t *testing.T) {
	m := gossip.NewMemory(gossip.MemoryOptions{Collect: true})
	author := stranger.Peer()
	m.Exists(author, 9)
	var asked []time.Duration
	for at := time.Duration(0); at < 15*time.Minute; at += time.Second {
		for _, gap := range m.Gaps(now.Add(at), 10) {
			asked = append(asked, at)
			m.Asked(gap.Peer, now.Add(at))
		}
	}
	if got, want := fmt.Sprint(asked), "[0s 5s 15s 35s 1m15s 2m35s 5m15s 10m15s]"; got != want {
		t.Errorf("asked at %s, want %s", got, want)
	}
	m.Take(author, 3)
	if len(m.Gaps(now.Add(15*time.Minute), 10)) != 1 {
		t.Error("what arrived did not end the wait")
	}
}

func TestMemoryIsBounded(t *testing.T) {
	m := gossip.NewMemory(gossip.MemoryOptions{Collect: true})
	first := wire.NewKey(simnet.Key(2, 0)).Peer()
	m.Take(first, 0)
	m.Heard(stranger.Peer(), now, 5)
	for i := range 8191 {
		m.Exists(wire.PeerID(fmt.Sprintf("peer %d", i)), 0)
		m.Heard(stranger.Peer(), now, 5)
	}
	if m.LastPresence(stranger.Peer()).IsZero() {
		t.Error("a peer that is heard of all the time was forgotten")
	}
	if m.Announced(first, 0) != gossip.Accepted {
		t.Error("the peer heard of least recently was not forgotten")
	}
}

func TestAllowLimitsEachPeer(t *testing.T) {
	m := gossip.NewMemory(gossip.MemoryOptions{AnnouncementRate: 2, AnnouncementBurst: 10})
	allowed := func(kind gossip.Kind, peer wire.PeerID, at time.Duration, tries int) (n int) {
		for range tries {
			if m.Allow(kind, peer, now.Add(at)) {
				n++
			}
		}
		return n
	}
	for _, c := range []struct {
		what string
		got  int
		want int
	}{
		{"at once", allowed(gossip.Announcement, stranger.Peer(), 0, 50), 10},
		{"a second later", allowed(gossip.Announcement, stranger.Peer(), time.Second, 50), 2},
		{"a minute later", allowed(gossip.Announcement, stranger.Peer(), time.Minute, 50), 10},
		{"with the clock set back", allowed(gossip.Announcement, stranger.Peer(), 0, 50), 0},
		{"of another peer", allowed(gossip.Announcement, learner.Peer(), 0, 50), 10},
		{"of another kind", allowed(gossip.Presence, stranger.Peer(), time.Minute, 50), 5},
		{"releases", allowed(gossip.Release, learner.Peer(), 0, 50), 50},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d passed, want %d", c.what, c.got, c.want)
		}
	}
}
