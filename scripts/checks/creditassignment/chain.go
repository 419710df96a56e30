package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/lightswarm/lightswarm/learner"
	"github.com/lightswarm/lightswarm/learner/credit"
	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/policy/embedded"
	"github.com/lightswarm/lightswarm/policy/safetensors"
	"github.com/lightswarm/lightswarm/policy/tokenizer"
	"github.com/lightswarm/lightswarm/policy/transformer"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

// What every chain has in common.
const (
	groupSize = 16
	groups    = 4 // a step
	window    = 512
	enough    = 0.9
	most      = 40_960 // rollouts, after which a chain ends without success
	// learningRate is that of 0.003, 0.006 and 0.01 with which return needed the fewest rollouts.
	learningRate = 0.01
)

// errEnough ends a chain whose policy has learned enough.
var errEnough = errors.New("learned enough")

// experiment is what a chain is run with.
type experiment struct {
	credit credit.Assigner
	giving giving
	seed   uint64
	most   int // rollouts, after which the chain ends without success
}

// outcome is how a chain ended. The same experiment always gives the same.
type outcome struct {
	rollouts int           // that were played
	reached  bool          // whether enough of the last window of them succeeded
	success  float64       // the share of that window that did
	policy   policy.Digest // the last
}

// chain is a learner, and the node that plays what it releases and hands it the groups.
//
// There is one node, and one bundle is fetched at a time: between several nodes, and several fetches, the order in which
// groups come would be a matter of time. The learner trains on a step's groups in that order.
type chain struct {
	peer    wire.PeerID
	learner *learner.Learner
	engine  *embedded.Engine
	player  player
	counter uint64 // of the next draw
	wins    []bool // of each rollout
	policy  policy.Digest

	mu      sync.Mutex
	bundles map[wire.CID][]byte // guarded by mu; announced, and not fetched yet
}

// run trains until the last window of rollouts succeeded often enough, or there were too many.
func (e experiment) run(ctx context.Context) (o outcome, err error) {
	base, err := newPolicy(e.seed)
	if err != nil {
		return o, err
	}
	key := newKey(100)
	charter, err := newCharter(key, base, e.seed)
	if err != nil {
		return o, err
	}
	c := &chain{
		peer:   newKey(1).Peer(),
		engine: embedded.New(embedded.Options{Threads: 1, CacheBytes: -1}), // prompts are too short to be worth keeping
		player: player{&charter, base.Generation.Stop, e.giving}, bundles: make(map[wire.CID][]byte),
	}
	defer func() { err = errors.Join(err, c.engine.Close()) }()

	config := learner.DefaultConfig()
	config.Charter, config.Key, config.Base = charter, key, base
	if config.Trainer, err = learner.NewEmbedded(base, 1); err != nil {
		return o, err
	}
	config.Store, config.Fetcher, config.Publisher = learner.NewMemory(), c, c
	config.Batch.Groups, config.Batch.Patience, config.Intake.Fetches = groups, time.Hour, 1
	config.Algorithm.Credit, config.Algorithm.Schedule.Peak = e.credit, learningRate
	config.Stop.MaxVersion = uint64(e.most / (groups * groupSize))
	if c.learner, err = learner.Open(ctx, config); err != nil {
		return o, err
	}
	err = c.learner.Run(ctx)
	o = outcome{len(c.wins), errors.Is(err, errEnough), c.success(), c.policy}
	if o.reached {
		err = nil
	}
	return o, err
}

// success is the share of the last window of rollouts that succeeded.
func (c *chain) success() float64 {
	last := c.wins[max(0, len(c.wins)-window):]
	n := 0
	for _, won := range last {
		if won {
			n++
		}
	}
	return float64(n) / float64(max(len(last), 1))
}

// Publish implements learner.Publisher: it plays the groups of the next step.
func (c *chain) Publish(ctx context.Context, r wire.SignedRelease, p *policy.Snapshot) error {
	c.policy = p.Digest()
	if r.Final {
		return nil
	}
	if err := c.engine.Load(ctx, p); err != nil {
		return err
	}
	session, err := c.engine.Open()
	if err != nil {
		return err
	}
	defer session.Close()
	for range groups {
		b, won, err := c.player.group(ctx, session, r.Version, c.peer, c.counter)
		if err != nil {
			return err
		}
		c.counter++
		c.wins = append(c.wins, won...)
		if err := c.offer(b); err != nil {
			return err
		}
	}
	if len(c.wins) >= window && c.success() >= enough {
		return errEnough
	}
	return nil
}

// offer tells the learner of a group.
func (c *chain) offer(b *bundle.Bundle) error {
	raw, err := bundle.Encode(b)
	if err != nil {
		return err
	}
	a := wire.SignedAnnouncement{Announcement: b.Announcement(raw), Signer: b.Peer}
	c.mu.Lock()
	c.bundles[a.Bundle] = raw
	c.mu.Unlock()
	if v := c.learner.Offer(a); !v.Accepted() {
		return fmt.Errorf("the learner refused group %d: %s", b.Counter, v)
	}
	return nil
}

// Fetch implements learner.Fetcher.
func (c *chain) Fetch(_ context.Context, cid wire.CID, _ wire.PeerID, _ int) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	raw, ok := c.bundles[cid]
	if !ok {
		return nil, fmt.Errorf("nobody has bundle %s", cid)
	}
	delete(c.bundles, cid)
	return raw, nil
}

// newPolicy is a transformer that knows nothing.
func newPolicy(seed uint64) (*policy.Snapshot, error) {
	tok, err := tokenizer.Train(slices.Values([]string{"planner writer"}), 256+len(chat.Specials()), chat.Specials())
	if err != nil {
		return nil, err
	}
	c := transformer.Config{
		Hidden: 16, Layers: 1, Heads: 2, KVHeads: 1, HeadDim: 8, Intermediate: 32, Vocab: tok.VocabSize(),
		Context: 16, RopeTheta: 10000, NormEpsilon: 1e-6, TieEmbeddings: true,
	}
	end, ok := tok.Special("<|end|>")
	if !ok {
		return nil, errors.New("the tokenizer has no end token")
	}
	generation := policy.GenerationConfig{Stop: []int32{end}}
	return policy.New(c.JSON(), tok, chat.Lightswarm1, generation, transformer.Init(c, seed).Tensors(safetensors.BF16))
}

func newCharter(key wire.Key, base *policy.Snapshot, seed uint64) (wire.SignedCharter, error) {
	anchor, _, err := base.Encode()
	if err != nil {
		return wire.SignedCharter{}, err
	}
	return wire.SignCharter(key, wire.Charter{
		Name: "credit", Created: time.UnixMilli(1_700_000_000_000), Nonce: fmt.Appendf(nil, "seed %d", seed),
		Learners:     []wire.PeerID{key.Peer()},
		Environments: []wire.EnvironmentRef{{Manifest: wire.SumCID([]byte("credit")), Name: "credit", Weight: 1, TrainTasks: tasks}},
		Base:         wire.PolicyRef{Digest: base.Digest(), StateDigest: base.State, Anchor: anchor},
		Rollout: wire.RolloutRules{
			GroupSize: groupSize, MaxCalls: uint32(len(roles)), MaxCompletionTokens: 1,
			Sampling: wire.Sampling{Temperature: 1, TopP: 1}, MaxLag: 8, GroupsPerVersion: groups,
		},
	})
}

// newKey is the key of a made-up peer.
func newKey(n byte) wire.Key {
	return wire.NewKey(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, ed25519.SeedSize)))
}
