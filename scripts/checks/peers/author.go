package peers

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/lightswarm/lightswarm/node/store"
	"github.com/lightswarm/lightswarm/p2p"
	"github.com/lightswarm/lightswarm/p2p/gossip"
	"github.com/lightswarm/lightswarm/wire"
)

const agentVersion = "lightswarm/check"

// Author is a peer on loopback that announces groups and serves them. It keeps everything in memory.
type Author struct {
	key     wire.Key
	network *p2p.Network
	store   *store.Store
	charter *wire.SignedCharter
}

// key is the identity of the author of this number, below 256.
func key(author int) ed25519.PrivateKey {
	seed := make([]byte, ed25519.SeedSize)
	copy(seed, "author")
	seed[ed25519.SeedSize-1] = byte(author)
	return ed25519.NewKeyFromSeed(seed)
}

// Peer is the identity of the author of this number, below 256.
func Peer(author int) wire.PeerID { return wire.NewKey(key(author)).Peer() }

// NewAuthor makes the author of this number, who knows the learner by its addresses. The caller closes it.
func NewAuthor(ctx context.Context, number int, charter *wire.SignedCharter, learner []string) (*Author, error) {
	private := key(number)
	a := &Author{key: wire.NewKey(private), charter: charter}
	var err error
	if a.store, err = store.Open(store.Options{Folder: "db", InMemory: true, Self: a.key.Peer(), MaxBlockBytes: 1 << 30}); err != nil {
		return nil, err
	}
	a.network, err = p2p.New(ctx, p2p.Config{
		Key: private, Network: charter.ID, Learners: charter.Learners, MaxLag: charter.Rollout.MaxLag,
		Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Bootstrap: learner,
		Blocks: a.store, Head: a.store, OnRelease: a.release, AgentVersion: agentVersion,
		Tuning: p2p.Tuning{MinConnections: 1}, // The learner is enough.
	})
	if err != nil {
		return nil, errors.Join(err, a.store.Close())
	}
	return a, nil
}

// Run takes part in the network until ctx ends.
func (a *Author) Run(ctx context.Context) {
	a.network.Run(ctx) //nolint:errcheck // it fails only if it runs already
}

// Close frees the author, whose Run has returned.
func (a *Author) Close() error { return errors.Join(a.network.Close(), a.store.Close()) }

// release keeps a release, as every node does: announcements of its version count from then on.
func (a *Author) release(r wire.SignedRelease) {
	if err := a.store.PutRelease(r.Version, r.Raw); err != nil {
		fmt.Fprintln(os.Stderr, "a release was not kept:", err)
	}
}

// Await returns once the author has met the learner and has its version 0.
func (a *Author) Await(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, ok, err := a.store.Release(0); err != nil || ok {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("waiting for the learner: %w", context.Cause(ctx))
		}
	}
}

// Announce stores, signs and gossips a group, as a node's announcer does.
func (a *Author) Announce(ctx context.Context, g Group) error {
	announcement := g.Announcement
	signed, err := a.store.Announce(store.Own{
		Bundle: announcement.Bundle, Data: g.Body,
		Sign: func(sequence uint64) ([]byte, error) {
			announcement.Sequence, announcement.Created = sequence, time.Now()
			s, err := wire.SignAnnouncement(a.key, announcement)
			return s.Raw, err
		},
	})
	if err != nil {
		return err
	}
	return heard(a.network.PublishAnnouncement(ctx, signed))
}

// Count says how many groups there are, so that whoever missed one asks for it.
func (a *Author) Count(ctx context.Context) error {
	presence, err := wire.SignPresence(a.key, wire.Presence{
		Network: a.charter.ID, Roles: wire.RoleRollout, NextSequence: a.store.NextSequence(), AgentVersion: agentVersion,
		Created: time.Now(),
	})
	if err != nil {
		return err
	}
	return heard(a.network.PublishPresence(ctx, presence.Raw))
}

// heard passes over that nobody listens at the moment: what is in the store is pulled later.
func heard(err error) error {
	if errors.Is(err, gossip.ErrNobody) {
		return nil
	}
	return err
}
