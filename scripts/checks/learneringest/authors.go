package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/lightswarm/lightswarm/node/store"
	"github.com/lightswarm/lightswarm/p2p"
	"github.com/lightswarm/lightswarm/p2p/gossip"
	"github.com/lightswarm/lightswarm/wire"
)

// order is what the parent asks of the authors: to announce their groups, or more.
type order struct{ Flood bool }

// announced is their reply.
type announced struct {
	First, Last time.Time // of the announcements
	Count       int
}

// author is a peer that announces groups and serves them: what a rollout node is to a learner, without the engine.
type author struct {
	key     wire.Key
	network *p2p.Network
	store   *store.Store
	charter *wire.SignedCharter
	// groups are announced first, then more.
	groups, more []group
}

// runAuthors is the process of the authors.
func runAuthors(ctx context.Context, work string) (err error) {
	inventory, list, err := readGroups(work)
	if err != nil {
		return err
	}
	charter, err := wire.OpenCharter(inventory.Charter)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var all []*author
	var running sync.WaitGroup
	defer func() {
		cancel()
		running.Wait()
		for _, a := range all {
			err = errors.Join(err, a.network.Close(), a.store.Close())
		}
	}()
	for i := range authors {
		a, err := newAuthor(ctx, i, &charter, inventory.Learner, list[i*perAuthor:(i+1)*perAuthor])
		if err != nil {
			return err
		}
		all = append(all, a)
		running.Go(func() { a.network.Run(ctx) }) //nolint:errcheck // it fails only if it runs already
	}
	if err := awaitLearner(ctx, all); err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(announced{}); err != nil {
		return err
	}
	return orders(func(o order) (any, error) { return announceAll(ctx, all, o.Flood) })
}

func newAuthor(ctx context.Context, i int, charter *wire.SignedCharter, learner []string, list []group) (*author, error) {
	private := authorKey(i)
	a := &author{key: wire.NewKey(private), charter: charter, groups: list}
	for n := range floodFactor * (groups + queue) / authors {
		g, err := list[n%len(list)].again(charter, uint64(len(list)+n))
		if err != nil {
			return nil, err
		}
		a.more = append(a.more, g)
	}
	var err error
	if a.store, err = store.Open(store.Options{Folder: "db", InMemory: true, Self: a.key.Peer(), MaxBlockBytes: 1 << 30}); err != nil {
		return nil, err
	}
	a.network, err = p2p.New(ctx, p2p.Config{
		Key: private, Network: charter.ID, Learners: charter.Learners, MaxLag: charter.Rollout.MaxLag,
		Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Bootstrap: learner,
		Blocks: a.store, Head: a.store, OnRelease: a.release, AgentVersion: "lightswarm/check",
		Tuning: p2p.Tuning{MinConnections: 1}, // The learner is enough.
	})
	if err != nil {
		return nil, errors.Join(err, a.store.Close())
	}
	return a, nil
}

// release keeps a release, as every node does: announcements of its version count from then on.
func (a *author) release(r wire.SignedRelease) {
	if err := a.store.PutRelease(r.Version, r.Raw); err != nil {
		fmt.Fprintln(os.Stderr, "a release was not kept:", err)
	}
}

// awaitLearner returns once every author has met the learner.
func awaitLearner(ctx context.Context, all []*author) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for _, a := range all {
		for {
			if _, ok, err := a.store.Release(0); err != nil {
				return err
			} else if ok {
				break
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return fmt.Errorf("waiting for the learner: %w", context.Cause(ctx))
			}
		}
	}
	return nil
}

// announceAll has all authors announce at once.
func announceAll(ctx context.Context, all []*author, flood bool) (announced, error) {
	reply := announced{First: time.Now()}
	errs := make([]error, len(all))
	var running sync.WaitGroup
	for i, a := range all {
		list := a.groups
		if flood {
			list = a.more
		}
		reply.Count += len(list)
		running.Go(func() { errs[i] = a.announce(ctx, list) })
	}
	running.Wait()
	reply.Last = time.Now()
	return reply, errors.Join(errs...)
}

// announce stores, signs and gossips groups one after the other, as fast as that goes, as a node's announcer does; then
// it says how many there are.
func (a *author) announce(ctx context.Context, list []group) error {
	for _, g := range list {
		announcement := g.announcement
		signed, err := a.store.Announce(store.Own{
			Bundle: announcement.Bundle, Data: g.body,
			Sign: func(sequence uint64) ([]byte, error) {
				announcement.Sequence, announcement.Created = sequence, time.Now()
				s, err := wire.SignAnnouncement(a.key, announcement)
				return s.Raw, err
			},
		})
		if err != nil {
			return err
		}
		if err := a.network.PublishAnnouncement(ctx, signed); err != nil && !errors.Is(err, gossip.ErrNobody) {
			return err
		}
	}
	presence, err := wire.SignPresence(a.key, wire.Presence{
		Network: a.charter.ID, Roles: wire.RoleRollout, NextSequence: a.store.NextSequence(), AgentVersion: "lightswarm/check",
		Created: time.Now(),
	})
	if err != nil {
		return err
	}
	if err := a.network.PublishPresence(ctx, presence.Raw); err != nil && !errors.Is(err, gossip.ErrNobody) {
		return err
	}
	return nil
}
