package gossip_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/lightswarm/lightswarm/p2p/gossip"
	"github.com/lightswarm/lightswarm/p2p/simnet"
	"github.com/lightswarm/lightswarm/wire"
)

// fixedView is a node's state by hand.
type fixedView struct {
	head, next uint64
	announced  gossip.Reason
	presence   time.Time
	releases   map[uint64]wire.CID
}

func (v fixedView) Head() uint64                                { return v.head }
func (v fixedView) NextRelease() uint64                         { return v.next }
func (v fixedView) Release(version uint64) wire.CID             { return v.releases[version] }
func (v fixedView) Announced(wire.PeerID, uint64) gossip.Reason { return v.announced }
func (v fixedView) LastPresence(wire.PeerID) time.Time          { return v.presence }

var (
	learner  = wire.NewKey(simnet.Key(1, 0))
	stranger = wire.NewKey(simnet.Key(1, 1))
	self     = wire.NewKey(simnet.Key(1, 2))
	network  = wire.SumCID([]byte("network"))
	other    = wire.SumCID([]byte("other network"))
	now      = time.UnixMilli(1_700_000_000_000)
	rules    = &gossip.Rules{
		Network: network, Self: self.Peer(), Learners: map[wire.PeerID]bool{learner.Peer(): true}, MaxLag: 2,
	}
)

func release(t testing.TB, key wire.Key, network wire.CID, version uint64) []byte {
	t.Helper()
	r := wire.Release{
		Network: network, Version: version, Created: now,
		Policy: wire.PolicyRef{Digest: [32]byte{1}, StateDigest: [32]byte{2}, Anchor: wire.SumCID([]byte("anchor"))},
	}
	if version > 0 {
		r.Parent, r.ParentStateDigest = wire.SumCID([]byte("parent")), [32]byte{3}
	}
	s, err := wire.SignRelease(key, r)
	if err != nil {
		t.Fatal(err)
	}
	return s.Raw
}

func announcement(t testing.TB, key wire.Key, network wire.CID, purpose wire.Purpose, version uint64) []byte {
	t.Helper()
	s, err := wire.SignAnnouncement(key, wire.Announcement{
		Network: network, Sequence: 7, Purpose: purpose, Bundle: wire.SumCID([]byte("bundle")), BundleBytes: 10,
		PolicyVersion: version, PolicyDigest: [32]byte{1}, Environment: wire.SumCID([]byte("environment")),
		Rollouts: 1, Created: now,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s.Raw
}

func presence(t testing.TB, key wire.Key, network wire.CID, created time.Time) []byte {
	t.Helper()
	s, err := wire.SignPresence(key, wire.Presence{Network: network, Created: created})
	if err != nil {
		t.Fatal(err)
	}
	return s.Raw
}

// broken returns what no record may look like, by the reason for which it is refused.
func broken(raw []byte) map[string]struct {
	raw  []byte
	want gossip.Reason
} {
	flipped := bytes.Clone(raw)
	flipped[len(flipped)-1] ^= 1
	type c = struct {
		raw  []byte
		want gossip.Reason
	}
	return map[string]c{
		"nothing":              {nil, gossip.Malformed},
		"junk":                 {[]byte("\xff\xff\xff junk"), gossip.Malformed},
		"half of it":           {raw[:len(raw)/2], gossip.Malformed},
		"bytes after it":       {append(bytes.Clone(raw), 0x7a, 0x01, 0x00), gossip.Malformed},
		"a wrong signature":    {flipped, gossip.BadSignature},
		"no signature":         {raw[:len(raw)-66], gossip.BadSignature},
		"too many bytes":       {append(bytes.Clone(raw), make([]byte, wire.MaxGossipBytes)...), gossip.Oversized},
		"another's name on it": {bytes.Replace(raw, []byte(learner.Peer()), []byte(stranger.Peer()), 1), gossip.BadSignature},
	}
}

func TestRulesForReleases(t *testing.T) {
	view := fixedView{head: 4, next: 5}
	for name, c := range broken(release(t, learner, network, 5)) {
		if _, got := rules.Release(view, c.raw); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	for _, c := range []struct {
		name string
		view fixedView
		raw  []byte
		want gossip.Reason
	}{
		{"the next version", view, release(t, learner, network, 5), gossip.Accepted},
		{"a version further on", view, release(t, learner, network, 50), gossip.Accepted},
		{"the newest version again", view, release(t, learner, network, 4), gossip.Stale},
		{"an old version", view, release(t, learner, network, 0), gossip.Stale},
		{"a second release of a version", fixedView{head: 4, next: 5, releases: map[uint64]wire.CID{4: other}}, release(t, learner, network, 4), gossip.Forked},
		{"a release that the node has", fixedView{head: 4, next: 5, releases: map[uint64]wire.CID{4: wire.SumCID(release(t, learner, network, 4))}}, release(t, learner, network, 4), gossip.Stale},
		{"the first version", fixedView{}, release(t, learner, network, 0), gossip.Accepted},
		{"the first version again", fixedView{next: 1}, release(t, learner, network, 0), gossip.Stale},
		{"another network", view, release(t, learner, other, 5), gossip.OtherNetwork},
		{"somebody who is no learner", view, release(t, stranger, network, 5), gossip.NotALearner},
		{"an announcement", view, announcement(t, learner, network, wire.PurposeTrain, 4), gossip.BadSignature},
	} {
		if _, got := rules.Release(c.view, c.raw); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// A learner's release in a newer format names the learner, so that the node can ask for an upgrade; a stranger's does not.
func TestNewerReleasesNameTheirLearner(t *testing.T) {
	newer := []byte{1 << 3, wire.Major + 1} // The field of the major alone.
	for _, key := range []wire.Key{learner, stranger} {
		raw, err := wire.Sign(key, wire.DomainRelease, newer)
		if err != nil {
			t.Fatal(err)
		}
		r, reason := rules.Release(fixedView{head: 4, next: 5}, raw)
		if reason != gossip.NewerFormat || (r.Signer == learner.Peer()) != (key.Peer() == learner.Peer()) {
			t.Errorf("%s: %s, signer %q", key.Peer(), reason, r.Signer)
		}
	}
}

func TestRulesForAnnouncements(t *testing.T) {
	view := fixedView{head: 4, next: 5, announced: gossip.Accepted}
	train := func(version uint64) []byte { return announcement(t, stranger, network, wire.PurposeTrain, version) }
	for name, c := range broken(announcement(t, learner, network, wire.PurposeTrain, 4)) {
		if _, got := rules.Announcement(view, c.raw); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	for _, c := range []struct {
		name string
		view fixedView
		raw  []byte
		want gossip.Reason
	}{
		{"the newest version", view, train(4), gossip.Accepted},
		{"the largest lag", view, train(2), gossip.Accepted},
		{"a larger lag", view, train(1), gossip.Stale},
		{"an evaluation of an old version", view, announcement(t, stranger, network, wire.PurposeEvaluateGreedy, 0), gossip.Accepted},
		{"a version that is not there yet", view, train(5), gossip.UnknownVersion},
		{"another network", view, announcement(t, stranger, other, wire.PurposeTrain, 4), gossip.OtherNetwork},
		{"its own", view, announcement(t, self, network, wire.PurposeTrain, 4), gossip.Duplicate},
		{"one that is known", fixedView{head: 4, announced: gossip.Duplicate}, train(4), gossip.Duplicate},
		{"one that is known and stale", fixedView{head: 9, announced: gossip.Duplicate}, train(4), gossip.Duplicate},
		{"one far beyond the others", fixedView{head: 4, announced: gossip.TooFarAhead}, train(4), gossip.TooFarAhead},
	} {
		if _, got := rules.Announcement(c.view, c.raw); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestRulesForPresence(t *testing.T) {
	for name, c := range broken(presence(t, learner, network, now)) {
		if _, got := rules.Presence(fixedView{}, now, c.raw); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	at := func(d time.Duration) []byte { return presence(t, stranger, network, now.Add(d)) }
	for _, c := range []struct {
		name string
		last time.Time
		raw  []byte
		want gossip.Reason
	}{
		{"the first", time.Time{}, at(0), gossip.Accepted},
		{"a newer one", now.Add(-time.Second), at(0), gossip.Accepted},
		{"the same again", now, at(0), gossip.Stale},
		{"an older one", now.Add(time.Second), at(0), gossip.Stale},
		{"one of yesterday", time.Time{}, at(-24 * time.Hour), gossip.Stale},
		{"one of tomorrow", time.Time{}, at(24 * time.Hour), gossip.Stale},
		{"a clock that is a little off", time.Time{}, at(gossip.MaxClockSkew), gossip.Accepted},
		{"its own", time.Time{}, presence(t, self, network, now), gossip.Duplicate},
		{"another network", time.Time{}, presence(t, stranger, other, now), gossip.OtherNetwork},
	} {
		if _, got := rules.Presence(fixedView{presence: c.last}, now, c.raw); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// FuzzRules feeds every rule any bytes: nothing passes that was not signed by a peer that may.
func FuzzRules(f *testing.F) {
	f.Add(release(f, learner, network, 5))
	f.Add(release(f, stranger, network, 5))
	f.Add(announcement(f, stranger, network, wire.PurposeTrain, 4))
	f.Add(presence(f, stranger, network, now))
	f.Add([]byte("\x0a\x00\x12\x00\x1a\x00"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		view := fixedView{head: 4, next: 5, announced: gossip.Accepted}
		if r, reason := rules.Release(view, raw); reason == gossip.Accepted && (r.Signer != learner.Peer() || r.Network != network) {
			t.Errorf("a release of %s passed", r.Signer)
		}
		if a, reason := rules.Announcement(view, raw); reason == gossip.Accepted && a.Network != network {
			t.Error("an announcement of another network passed")
		}
		if p, reason := rules.Presence(view, now, raw); reason == gossip.Accepted && p.Network != network {
			t.Error("a sign of life of another network passed")
		}
	})
}

// TestEveryReasonIsCounted keeps the list, the counters and the names together.
func TestEveryReasonIsCounted(t *testing.T) {
	var v gossip.Verdicts
	for i, reason := range gossip.Reasons {
		for range i + 1 {
			v.Count(gossip.Announcement, reason)
		}
	}
	for i, reason := range gossip.Reasons {
		if got := v.Of(gossip.Announcement, reason); got != uint64(i+1) {
			t.Errorf("%s: counted %d times, want %d", reason, got, i+1)
		}
		if got := v.Map()["announcement"][reason]; got != uint64(i+1) {
			t.Errorf("%s: %d in the map, want %d", reason, got, i+1)
		}
	}
	if s := fmt.Sprint(v.Map()["release"]); s != "map[]" {
		t.Errorf("counted for another kind: %s", s)
	}
}
