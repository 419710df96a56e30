package learner

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/wire"
)

// Config is everything that a learner is made of. DefaultConfig fills in the settings; the parts in the first block
// have no default.
type Config struct {
	// Charter is the network's; Key signs releases and must be one of the charter's learners.
	Charter wire.SignedCharter
	Key     wire.Key
	// Base is the policy of version 0: the one that the charter names.
	Base *policy.Snapshot
	// Trainer trains it, and is as it was made from Base. NewEmbedded makes one.
	Trainer   Trainer
	Store     Store
	Fetcher   Fetcher
	Publisher Publisher

	// Manifests are the environments' manifests that the learner has, by CID; see Rules.
	Manifests map[wire.CID]wire.EnvironmentManifest
	// Observer is told what happens; nil for nobody.
	Observer Observer
	// Now is the clock; nil for time.Now.
	Now func() time.Time
	// Active returns how many rollout nodes are at work, for the quota of the next release; nil counts the peers that
	// contributed lately.
	Active func() int
	// MaxLag replaces the charter's bound on lag unless it is nil. A learner on a network has no reason to.
	MaxLag *uint64
	// Behaviours are policies outside the chain whose recorded groups are welcome; a learner on a network has none. Their
	// versions lag by their distance from the chain's newest version, those above it not at all.
	Behaviours []Behaviour

	Algorithm Algorithm
	Batch     BatchRule
	Intake    Intake
	Pace      Pace
	Stop      Stop
	// EvaluateEvery asks for an evaluation of every so many versions, besides the first and the last; 0 for those alone.
	EvaluateEvery uint64
	// FinalPatience is how long a learner waits for another result in the evaluation of its last version.
	FinalPatience time.Duration

	// offline frees the key from the charter: releases stay where they are made.
	offline bool
}

// Intake bounds what a learner takes in.
type Intake struct {
	// Queue is how many announcements wait for their fetch.
	Queue int
	// Fetches is how many bundles are fetched at a time; one peer gets at most as many as are left to others.
	Fetches int
	// FetchTimeout is how long one attempt may take, Attempts how many are made, and Retry how long the first failure
	// waits for the second attempt; later ones wait twice as long each.
	FetchTimeout time.Duration
	Attempts     int
	Retry        time.Duration
	// Bytes bounds the fetched bundles in memory, to within one bundle; Decoders how many are decoded at a time.
	Bytes    int
	Decoders int
	// Waiting is how many groups may wait to be trained on before no more are fetched; at least what a step may take.
	Waiting int
	// PeerPending is how many bundles of one peer may be on their way or waiting.
	PeerPending int
	// Sync is how many bundles one synced batch of the store has at most.
	Sync int
}

// DefaultConfig returns the settings for a network of volunteers and a model that a CPU trains.
func DefaultConfig() Config {
	return Config{
		Algorithm: DefaultAlgorithm(),
		Batch:     BatchRule{Groups: 32, Dynamic: 1, PeerShare: 0.5, Patience: 20 * time.Second},
		Intake: Intake{
			Queue:        4096,
			Fetches:      32,
			FetchTimeout: 15 * time.Second,
			Attempts:     3,
			Retry:        time.Second,
			Bytes:        64 << 20,
			Decoders:     2,
			Waiting:      256,
			PeerPending:  128,
			Sync:         256,
		},
		Pace:          Pace{Ahead: 0.25, Most: 1024},
		Stop:          Stop{Hold: 3, Purpose: wire.PurposeEvaluateSampled},
		EvaluateEvery: 5,
		FinalPatience: 2 * time.Minute,
	}
}

// check says what is missing or out of range.
func (c *Config) check() error {
	if c.Key == nil || c.Base == nil || c.Trainer == nil || c.Store == nil || c.Fetcher == nil || c.Publisher == nil {
		return errors.New("key, base policy, trainer, store, fetcher and publisher must be set")
	}
	if !c.offline && !slices.Contains(c.Charter.Learners, c.Key.Peer()) {
		return fmt.Errorf("peer %s is not a learner of network %q: its charter names the peers that may release",
			c.Key.Peer(), c.Charter.Name)
	}
	if want, got := policy.Digest(c.Charter.Base.Digest), c.Base.Digest(); want != got {
		return fmt.Errorf("the base policy is %s, network %q starts from %s", got.Short(), c.Charter.Name, want.Short())
	}
	switch i := c.Intake; {
	case c.Batch.Groups < 1 || c.Batch.PeerShare <= 0 || c.Batch.PeerShare > 1 || c.Batch.Patience <= 0:
		return fmt.Errorf("batch %+v: groups and patience must be positive, the peer share in (0, 1]", c.Batch)
	case !(c.Batch.Dynamic >= 1):
		return fmt.Errorf("batch %+v: a step takes at least 1 times its groups", c.Batch)
	case i.Queue < 1 || i.Fetches < 1 || i.Attempts < 1 || i.Bytes < 1 || i.Decoders < 1 || i.PeerPending < 1 || i.Sync < 1:
		return fmt.Errorf("intake %+v: every bound must be positive", i)
	case i.FetchTimeout <= 0 || i.Retry <= 0:
		return fmt.Errorf("intake %+v: every duration must be positive", i)
	case float64(i.Waiting)+1 <= c.Batch.Dynamic*float64(c.Batch.Groups):
		return fmt.Errorf("intake lets %d groups wait, but a step may take %v times %d", i.Waiting, c.Batch.Dynamic, c.Batch.Groups)
	case c.Pace.Ahead < 0 || c.Pace.Most < 1 || c.Pace.Most > wire.MaxGroupsPerVersion:
		return fmt.Errorf("pace %+v: it must not be negative, and ask for 1 to %d groups", c.Pace, wire.MaxGroupsPerVersion)
	}
	return c.Algorithm.check()
}
