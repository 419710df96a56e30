package lags

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lightswarm/lightswarm/learner"
	"github.com/lightswarm/lightswarm/learner/loss"
	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/policy/base"
	"github.com/lightswarm/lightswarm/policy/embedded"
	"github.com/lightswarm/lightswarm/rollout"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/calc"
	"github.com/lightswarm/lightswarm/wire"
)

// The fleet: each of its nodes runs inFlight groups of groupSize rollouts at once, and a step trains on batch groups.
const (
	nodes     = 4
	inFlight  = 8
	groupSize = 8
	batch     = 16
)

// experiment is one run of a learner with its fleet.
type experiment struct {
	loss string // a specification, as loss.Parse reads it
	// bound is the lag bound. 0 is synchronous: a version asks for one batch and no more.
	bound uint64
	seed  uint64
	// steps is how many versions are made after version 0.
	steps uint64
	// tasks is how many held-out tasks the last version is measured on; 0 does not measure.
	tasks uint64
	waits waits
	// update is how long one of a step's two updates takes besides computing.
	update time.Duration
}

// outcome is what a run showed.
type outcome struct {
	// success is the share of held-out tasks that the last version solved, sampled once each at temperature 1.
	success float64
	// lags counts the groups that were trained on, by lag: the newest version when the learner took them, minus the one
	// that sampled them.
	lags map[uint64]int
	// late are groups that were never trained on because of their age: refused, expired, or still in flight at the end.
	late int
	// skipped are steps that left the weights as they were.
	skipped int
	// took is the time from the first release to the last.
	took time.Duration
}

// run trains one policy. It reads the time but decides nothing by it that the learner and its nodes do not.
func (e experiment) run(ctx context.Context) (o outcome, err error) {
	first, err := base.Load()
	if err != nil {
		return o, err
	}
	set, err := env.NewSet(calc.New())
	if err != nil {
		return o, err
	}
	key := peerKey(e.seed, 0)
	charter, err := e.charter(key, first)
	if err != nil {
		return o, err
	}
	engine := embedded.New(embedded.Options{Slots: 256, Threads: 1})
	defer func() { err = errors.Join(err, engine.Close()) }()
	f := newFleet(engine, e.waits)
	h := &history{}
	config, err := e.learner(charter, key, first, f, h)
	if err != nil {
		return o, err
	}
	l, err := learner.Open(ctx, config)
	if err != nil {
		return o, err
	}
	f.offer = l.Offer
	network := &rollout.Network{ID: charter.ID, Charter: &charter.Charter, Environments: set}
	if err := train(ctx, l, f, network, e.seed); err != nil {
		return o, err
	}
	if o.lags, o.late, err = e.account(f, l.Status().Reasons); err != nil {
		return o, err
	}
	o.skipped, o.took = h.skipped, h.last.Sub(h.first)
	if e.tasks > 0 {
		o.success, err = measure(ctx, f, charter.Rollout, e.tasks)
	}
	return o, err
}

// account is what became of the groups that were sampled: those trained on by lag, and how many were too old. It fails if
// groups were lost for any other reason.
func (e experiment) account(f *fleet, reasons map[learner.Reason]uint64) (lags map[uint64]int, late int, err error) {
	lags, late = f.account(e.bound)
	for reason, n := range reasons {
		switch reason {
		case learner.Stale, learner.StaleAtUse:
			late += int(n)
		case learner.Admitted, learner.Ended, learner.ZeroVariance, learner.TooFewScored:
		default:
			return nil, 0, fmt.Errorf("%d groups are %s: the fleet is at fault", n, reason)
		}
	}
	return lags, late, nil
}

// train lets the learner and the nodes work until the last version is out.
func train(ctx context.Context, l *learner.Learner, f *fleet, network *rollout.Network, seed uint64) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel(nil)
	for i := range nodes {
		n := &node{fleet: f, peer: peerKey(seed, 1+i).Peer()}
		w, err := rollout.NewWorker(rollout.WorkerConfig{
			Peer: n.peer, Network: network, Policies: n, Announcer: n, Counters: n, Evaluations: n, InFlight: inFlight,
		})
		if err != nil {
			return err
		}
		running.Go(func() {
			if err := w.Run(ctx); !errors.Is(err, context.Canceled) {
				cancel(err) // stops the learner
			}
		})
	}
	return l.Run(ctx)
}

// charter is the founding of the network: the usual one, but for what a run sets.
func (e experiment) charter(key wire.Key, first *policy.Snapshot) (wire.SignedCharter, error) {
	reference, err := env.Reference(calc.New())
	if err != nil {
		return wire.SignedCharter{}, err
	}
	anchor, _, err := first.Encode()
	if err != nil {
		return wire.SignedCharter{}, err
	}
	return wire.SignCharter(key, wire.Charter{
		Name:         "lag",
		Created:      time.UnixMilli(1_700_000_000_000),
		Nonce:        binary.BigEndian.AppendUint64(nil, e.seed),
		Learners:     []wire.PeerID{key.Peer()},
		Environments: []wire.EnvironmentRef{reference},
		Base:         wire.PolicyRef{Digest: first.Digest(), StateDigest: first.State, Anchor: anchor},
		Rollout: wire.RolloutRules{
			GroupSize:           groupSize,
			MaxCalls:            4,
			MaxCompletionTokens: 48,
			Sampling:            wire.Sampling{Temperature: 1},
			MaxLag:              uint32(e.bound),
			GroupsPerVersion:    batch / nodes,
		},
	})
}

// learner is the learner's configuration: the defaults, but for what a run sets.
func (e experiment) learner(charter wire.SignedCharter, key wire.Key, first *policy.Snapshot, f *fleet, h *history) (learner.Config, error) {
	chosen, err := loss.Parse(e.loss)
	if err != nil {
		return learner.Config{}, err
	}
	trainer, err := learner.NewEmbedded(first, 1)
	if err != nil {
		return learner.Config{}, err
	}
	c := learner.DefaultConfig()
	c.Charter, c.Key, c.Base = charter, key, first
	c.Trainer = timed{trainer, e.update}
	c.Store, c.Fetcher, c.Publisher, c.Observer = store{learner.NewMemory(), f}, f, f, h
	c.Active = func() int { return nodes }
	c.Algorithm.Loss = chosen.Part
	c.Batch.Groups = batch
	c.Stop.MaxVersion = e.steps
	if e.bound == 0 {
		c.Pace.Ahead = 0
	}
	return c, nil
}

// measure is the share of held-out tasks that the newest version solves.
func measure(ctx context.Context, f *fleet, rules wire.RolloutRules, tasks uint64) (float64, error) {
	p, err := f.open(waits{})
	if err != nil {
		return 0, err
	}
	defer p.Session.Close()
	m, err := rollout.Measure(ctx, calc.New(), p, rules, calc.Test, tasks, 1, 1)
	if err != nil {
		return 0, err
	}
	return m.Solved(), nil
}

// history is what the learner says of its steps. Its learner's training loop owns it until Run returns.
type history struct {
	learner.Nobody
	first, last time.Time // of the first and the last release
	skipped     int
}

// Released implements learner.Observer.
func (h *history) Released(wire.SignedRelease) {
	h.last = time.Now()
	if h.first.IsZero() {
		h.first = h.last
	}
}

// Stepped implements learner.Observer.
func (h *history) Stepped(s learner.Step) {
	if s.Skipped != "" {
		h.skipped++
	}
}

// peerKey is the key of a run's learner, which is number 0, and of its nodes.
func peerKey(seed uint64, number int) wire.Key {
	sum := sha256.Sum256(fmt.Appendf(nil, "lag %d %d", seed, number))
	return wire.NewKey(ed25519.NewKeyFromSeed(sum[:]))
}
