// Package chains trains small policies in one process, for checks that compare ways to learn.
//
// There is one node, and one bundle is fetched at a time: between several nodes, and several fetches, the order in which
// groups come would be a matter of time. The learner trains on a step's groups in that order. The same chain thus always
// gives the same policy, to the bit.
package chains

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lightswarm/lightswarm/learner"
	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/policy/embedded"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

// A step trains on Groups groups of GroupSize rollouts.
const (
	GroupSize = 16
	Groups    = 4
)

// Chain is what a policy is trained with.
type Chain struct {
	// Name is that of the network and its environment.
	Name string
	// Seed decides about the first weights and, with the name, about all draws.
	Seed uint64
	// Tasks is how many tasks there are, and Calls how many calls a rollout has at most, of one token each.
	Tasks uint64
	Calls int
	// Play plays a rollout and says whether it succeeded. It is called by several goroutines at once.
	Play func(e *Episode) (won bool, err error)
	// Steps is how many versions are made, unless Enough, if it is set, says of all rollouts so far that they are.
	Steps  uint64
	Enough func(won []bool) bool
	// Learn sets what the learner does differently from its defaults.
	Learn func(c *learner.Config)
}

// Outcome is how a chain ended.
type Outcome struct {
	// Won says of each rollout, in order, whether it succeeded.
	Won []bool
	// Enough says whether they were.
	Enough bool
	// Policy is the last.
	Policy policy.Digest
}

// Share is the part of the last rollouts that succeeded, n of them or as many as there are.
func Share(won []bool, n int) float64 {
	last := won[max(0, len(won)-n):]
	sum := 0
	for _, w := range last {
		if w {
			sum++
		}
	}
	return float64(sum) / float64(max(len(last), 1))
}

// errEnough ends a chain early.
var errEnough = errors.New("learned enough")

// Run trains.
func (c Chain) Run(ctx context.Context) (o Outcome, err error) {
	base, err := newPolicy(c.Seed)
	if err != nil {
		return o, err
	}
	key := newKey(100)
	charter, err := c.charter(key, base)
	if err != nil {
		return o, err
	}
	n := &node{
		chain: c, charter: &charter, stop: base.Generation.Stop, peer: newKey(1).Peer(),
		engine:  embedded.New(embedded.Options{Threads: 1, CacheBytes: -1}), // prompts are too short to be worth keeping
		bundles: make(map[wire.CID][]byte),
	}
	defer func() { err = errors.Join(err, n.engine.Close()) }()

	config := learner.DefaultConfig()
	config.Charter, config.Key, config.Base = charter, key, base
	if config.Trainer, err = learner.NewEmbedded(base, 1); err != nil {
		return o, err
	}
	config.Store, config.Fetcher, config.Publisher = learner.NewMemory(), n, n
	config.Batch.Groups, config.Batch.Patience, config.Intake.Fetches = Groups, time.Hour, 1
	config.Stop.MaxVersion = c.Steps
	c.Learn(&config)
	if n.learner, err = learner.Open(ctx, config); err != nil {
		return o, err
	}
	err = n.learner.Run(ctx)
	n.outcome.Enough = errors.Is(err, errEnough)
	if n.outcome.Enough {
		err = nil
	}
	return n.outcome, err
}

// node plays what a learner releases and hands it the groups.
type node struct {
	chain   Chain
	charter *wire.SignedCharter
	stop    []int32
	peer    wire.PeerID
	learner *learner.Learner
	engine  *embedded.Engine
	counter uint64 // of the next draw
	outcome Outcome

	mu      sync.Mutex
	bundles map[wire.CID][]byte // guarded by mu; announced, and not fetched yet
}

// Publish implements learner.Publisher: it plays the groups of the next step.
func (n *node) Publish(ctx context.Context, r wire.SignedRelease, p *policy.Snapshot) error {
	n.outcome.Policy = p.Digest()
	if r.Final {
		return nil
	}
	if err := n.engine.Load(ctx, p); err != nil {
		return err
	}
	session, err := n.engine.Open()
	if err != nil {
		return err
	}
	defer session.Close()
	for range Groups {
		b, won, err := n.group(ctx, session, r.Version)
		if err != nil {
			return err
		}
		n.counter++
		n.outcome.Won = append(n.outcome.Won, won...)
		if err := n.offer(b); err != nil {
			return err
		}
	}
	if n.chain.Enough != nil && n.chain.Enough(n.outcome.Won) {
		return errEnough
	}
	return nil
}

// offer tells the learner of a group.
func (n *node) offer(b *bundle.Bundle) error {
	raw, err := bundle.Encode(b)
	if err != nil {
		return err
	}
	a := wire.SignedAnnouncement{Announcement: b.Announcement(raw), Signer: b.Peer}
	n.mu.Lock()
	n.bundles[a.Bundle] = raw
	n.mu.Unlock()
	if v := n.learner.Offer(a); !v.Accepted() {
		return fmt.Errorf("the learner refused group %d: %s", b.Counter, v)
	}
	return nil
}

// Fetch implements learner.Fetcher.
func (n *node) Fetch(_ context.Context, cid wire.CID, _ wire.PeerID, _ int) ([]byte, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	raw, ok := n.bundles[cid]
	if !ok {
		return nil, fmt.Errorf("nobody has bundle %s", cid)
	}
	delete(n.bundles, cid)
	return raw, nil
}

// newKey is the key of a made-up peer.
func newKey(n byte) wire.Key {
	return wire.NewKey(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, ed25519.SeedSize)))
}
