package p2p

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/lightswarm/lightswarm/p2p/gossip"
	"github.com/lightswarm/lightswarm/p2p/head"
	"github.com/lightswarm/lightswarm/wire"
)

const (
	releasesPerRequest      = 64
	announcementsPerRequest = 512
)

// errBadRecord says that a peer answered with a record that fails checks which it should have made itself.
var errBadRecord = errors.New("the peer passed on a record that is not valid")

// pullCounters count what pulls did.
type pullCounters struct {
	pulls, failed, skipped, otherNetwork, lost atomic.Uint64
	verdicts                                   gossip.Verdicts
}

// exchange pulls from one peer, request by request, until it has nothing more.
func (p *puller) exchange(ctx context.Context, from peer.ID, cursors []wire.Cursor) error {
	session, err := head.Open(ctx, p.host, from)
	if err != nil {
		return err
	}
	defer session.Close()

	request := wire.HeadRequest{
		Network: p.rules.Network, ReleaseFrom: p.view.NextRelease(), MaxReleases: releasesPerRequest,
		Cursors: []wire.Cursor{{Peer: wire.PeerID(from)}},
	}
	if p.collect {
		request.MaxAnnouncements = announcementsPerRequest
		for _, c := range cursors {
			if c.Peer != wire.PeerID(from) {
				request.Cursors = append(request.Cursors, c)
			}
		}
	}
	if err := p.findTwin(ctx, session); err != nil {
		return err
	}
	var history [][]byte                  // Old releases, held back until newer ones were asked for.
	for n := range head.MaxRequests - 1 { // One was used.
		for i, c := range request.Cursors {
			request.Cursors[i].FromSequence = p.memory.Cursor(c.Peer)
		}
		response, err := session.Ask(ctx, request)
		if err != nil {
			return err
		}
		p.joined(from, response.HeadVersion)
		progress, err := p.takeAnnouncements(from, response.Announcements)
		if err != nil {
			return err
		}
		more := progress && head.Full(request, response)

		first, last := request.ReleaseFrom, response.HeadVersion
		if n == 0 && last > first && last-first >= releasesPerRequest {
			// A node that was away for long needs the newest releases, not the history.
			history = response.Releases
			request.ReleaseFrom = last - releasesPerRequest + 1
			continue
		}
		releases := response.Releases
		if n == 1 && len(releases) == 0 {
			releases = history // The newest are not to be had here.
		}
		newest, err := p.takeReleases(releases)
		if err != nil {
			return err
		}
		if len(releases) == int(request.MaxReleases) && len(releases) > 0 && newest >= request.ReleaseFrom {
			request.ReleaseFrom = newest + 1
			more = true
		} else {
			request.MaxReleases = 0
		}
		if !more {
			return nil
		}
	}
	return nil
}

// findTwin asks whether there are announcements by this node that it has not made yet.
func (p *puller) findTwin(ctx context.Context, session *head.Session) error {
	if p.nextSequence == nil || p.onTwin == nil {
		return nil
	}
	self := p.rules.Self
	response, err := session.Ask(ctx, wire.HeadRequest{
		Network: p.rules.Network, MaxAnnouncements: 1, Cursors: []wire.Cursor{{Peer: self, FromSequence: p.nextSequence()}},
	})
	if err != nil {
		return err
	}
	for _, raw := range response.Announcements {
		a, err := wire.OpenAnnouncement(raw)
		// The node may have made more by now.
		if err == nil && a.Signer == self && a.Network == p.rules.Network && a.Sequence >= p.nextSequence() {
			p.onTwin(a)
		}
	}
	return nil
}

// joined notes that a peer belongs to the network. A peer that left before it was noted is taken out again: the event
// that it left may have come and gone.
func (p *puller) joined(id peer.ID, head uint64) {
	p.members.add(id, head)
	if p.host.Network().Connectedness(id) == network.NotConnected {
		p.members.remove(id)
	}
}

// takeReleases judges pulled releases and hands the good ones over. It returns the newest version among them.
func (p *puller) takeReleases(records [][]byte) (newest uint64, err error) {
	for _, raw := range records {
		r, reason := p.rules.Release(p.view, raw)
		p.counters.verdicts.Count(gossip.Release, reason)
		if reason.Rejects() {
			return 0, fmt.Errorf("%w: a release: %s", errBadRecord, reason)
		}
		newest = max(newest, r.Version)
		switch reason {
		case gossip.Accepted:
			p.intake.release(r)
		case gossip.Forked:
			p.intake.refused(r, reason)
		case gossip.NewerFormat:
			if r.Signer != "" {
				p.intake.refused(r, reason)
			}
		}
	}
	return newest, nil
}

// takeAnnouncements judges pulled announcements and hands the good ones over. It reports whether anything was new.
//
// The author of announcements has them all or has given up the older ones. So when it answers itself, what lies below
// and between the sequences of its answer is not to be had any more, and is not asked for again. An announcement for a
// version that this node does not have yet stays a gap, and is asked for again.
func (p *puller) takeAnnouncements(from peer.ID, records [][]byte) (progress bool, err error) {
	// Announcements of one author in order, so that none is taken for a gap of another.
	pulled := make([]wire.SignedAnnouncement, 0, len(records))
	reasons := make(map[wire.CID]gossip.Reason, len(records))
	for _, raw := range records {
		a, reason := p.rules.Announcement(p.view, raw)
		if reason.Rejects() {
			p.counters.verdicts.Count(gossip.Announcement, reason)
			return progress, fmt.Errorf("%w: an announcement: %s", errBadRecord, reason)
		}
		if reason == gossip.NewerFormat {
			p.counters.verdicts.Count(gossip.Announcement, reason)
			continue
		}
		pulled = append(pulled, a)
		reasons[a.ID] = reason
	}
	slices.SortStableFunc(pulled, func(a, b wire.SignedAnnouncement) int {
		return cmp.Compare(a.Sequence, b.Sequence)
	})
	early := make(map[wire.PeerID]bool) // Authors who are ahead of this node; Skip would give up what stays a gap.
	for _, a := range pulled {
		if peer.ID(a.Signer) == from && !early[a.Signer] {
			if lost := p.memory.Skip(a.Signer, a.Sequence); lost > 0 {
				p.counters.lost.Add(lost)
				progress = true
			}
		}
		reason := reasons[a.ID]
		if reason == gossip.TooFarAhead { // Skip may have moved the window.
			reason = p.memory.Announced(a.Signer, a.Sequence)
		}
		switch reason {
		case gossip.Accepted:
			if !p.intake.announcement(a) {
				reason = gossip.Duplicate // Gossip was faster.
			}
			progress = true
		case gossip.UnknownVersion:
			early[a.Signer] = true
			p.memory.Exists(a.Signer, a.Sequence)
		case gossip.Stale:
			// Known now, and of no use: it must not be pulled again.
			progress = p.memory.Take(a.Signer, a.Sequence) || progress
		}
		p.counters.verdicts.Count(gossip.Announcement, reason)
	}
	return progress, nil
}
