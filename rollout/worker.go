package rollout

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
	"github.com/lightswarm/lightswarm/wire/draw"
)

// WorkerConfig is what a worker is made of. All fields without a default are required.
type WorkerConfig struct {
	// Peer is who the rollouts are drawn for and announced by.
	Peer        wire.PeerID
	Network     *Network
	Policies    PolicySource
	Announcer   Announcer
	Counters    Counters
	Evaluations Evaluations
	// InFlight is how many groups and evaluation blocks run at once, so that an engine has calls to batch; 0 means 4.
	InFlight int
	// Patience is how long to wait for a release before the pace is granted again, see pacer; 0 means a minute. It
	// doubles with each repetition, up to sixteen times.
	Patience time.Duration
}

// Worker runs groups and evaluation blocks as releases ask for them.
type Worker struct {
	WorkerConfig
	stats stats
}

// NewWorker checks that everything the charter asks for can be run here.
func NewWorker(c WorkerConfig) (*Worker, error) {
	if c.Peer == "" || c.Network == nil || c.Policies == nil || c.Announcer == nil || c.Counters == nil || c.Evaluations == nil {
		panic("rollout: incomplete WorkerConfig")
	}
	for _, e := range c.Network.Charter.Environments {
		if _, err := c.Network.Environments.Get(e.Manifest); err != nil {
			return nil, fmt.Errorf("environment %q of the charter: %w", e.Name, err)
		}
	}
	if c.InFlight <= 0 {
		c.InFlight = 4
	}
	if c.Patience <= 0 {
		c.Patience = time.Minute
	}
	w := &Worker{WorkerConfig: c}
	w.stats.s.Activity = Stopped
	return w, nil
}

// Stats returns a copy of the worker's figures. It is safe for concurrent use.
func (w *Worker) Stats() Stats { return w.stats.read() }

// Run works until ctx ends, whose cause it returns, or one of the interfaces or the engine fails. Groups that are in
// flight then are given up; their counters stay reserved and come first in the next Run, if it begins under the same
// version. Run does not return before everything that it started has ended. It is called once at a time.
func (w *Worker) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var running sync.WaitGroup
	err := w.loop(ctx, func(f func() error) {
		running.Go(func() {
			if err := f(); err != nil {
				cancel(err)
			}
		})
	})
	cancel(err)
	running.Wait()
	w.stats.enter(Stopped, w.Stats().Version)
	return context.Cause(ctx)
}

// loop starts one piece of work after the other, each on a free slot: evaluation on the release that it measures,
// everything else on the newest release of that moment.
func (w *Worker) loop(ctx context.Context, start func(func() error)) error {
	counters := &draws{Counters: w.Counters}
	p := w.pacer()
	var measured *pin // what an evaluation that is left runs on
	defer func() { measured.drop() }()
	w.stats.enter(AwaitPolicy, 0)
	slots := make(chan struct{}, w.InFlight)
	for {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		var held *pin // what the next piece of work runs on
		if !p.measuring(w.Evaluations.Claim) {
			release, err := w.Policies.Acquire(ctx)
			if err != nil {
				return fmt.Errorf("acquire a policy: %w", err)
			}
			held = newPin(release)
			if !p.take(release) {
				held.drop()
				<-slots
				continue
			}
			switch {
			case len(p.due) == 0:
				measured.drop()
				measured = nil
			case measured == nil || measured.Version != p.measures:
				measured.drop()
				measured = held.share()
				p.measuring(w.Evaluations.Claim)
			}
		}
		next := p.next()
		if next.action == actWait || next.action == actIdle {
			version := held.Version
			held.drop()
			<-slots
			expired, err := w.wait(ctx, version, next, p)
			if err != nil {
				return err
			}
			if expired {
				p.expired()
				w.stats.update(func(s *Stats) { s.Repeats++ })
			}
			continue
		}
		if next.action == actEvaluate {
			held.drop()
			held = measured.share()
		}
		run, err := w.prepare(ctx, next, held.Policy, counters)
		if err != nil {
			held.drop()
			return err
		}
		w.stats.update(func(s *Stats) { s.Running++ })
		start(func() error {
			defer func() {
				held.drop()
				w.stats.update(func(s *Stats) { s.Running-- })
				<-slots
			}()
			return w.finish(ctx, run)
		})
	}
}

// prepare returns the group or the block that a step asks for, ready to be run.
func (w *Worker) prepare(ctx context.Context, next step, p *Policy, counters *draws) (func(context.Context) (*bundle.Bundle, error), error) {
	if next.action == actEvaluate {
		w.stats.enter(Evaluating, p.Version)
		return func(ctx context.Context) (*bundle.Bundle, error) {
			return RunEvaluationBlock(ctx, w.Network, p, next.purpose, next.block)
		}, nil
	}
	w.stats.enter(Training, p.Version)
	counter, err := counters.next(ctx, p.Version)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (*bundle.Bundle, error) {
		return RunGroup(ctx, w.Network, p, w.Peer, counter)
	}, nil
}

// draws gives out the counters that an earlier run left, as long as their version is the one in use, and then new ones.
type draws struct {
	Counters
	resumed bool
	version uint64 // of left
	left    []uint64
}

func (d *draws) next(ctx context.Context, version uint64) (counter uint64, err error) {
	if !d.resumed {
		if d.left, err = d.Resume(ctx, version); err != nil {
			return 0, fmt.Errorf("resume draw counters of version %d: %w", version, err)
		}
		d.resumed, d.version = true, version
	}
	if len(d.left) > 0 && version == d.version {
		counter, d.left = d.left[0], d.left[1:]
		return counter, nil
	}
	if counter, err = d.Reserve(ctx, version); err != nil {
		return 0, fmt.Errorf("reserve a draw counter under version %d: %w", version, err)
	}
	return counter, nil
}

// pacer returns a pacer by the network's rules.
func (w *Worker) pacer() *pacer {
	rules := w.Network.Charter
	return &pacer{
		charterPace: rules.Rollout.GroupsPerVersion,
		order: func(version uint64) []int {
			return draw.EvaluationOrder(w.Network.ID, version, w.Peer, draw.EvaluationBlocks(rules))
		},
		basePatience: w.Patience,
		maxPatience:  16 * w.Patience,
	}
}

// pin is an acquired release and how many use it; the last one closes it. A nil pin has nothing to drop.
type pin struct {
	Release
	users atomic.Int64
}

func newPin(r Release) *pin {
	p := &pin{Release: r}
	p.users.Store(1)
	return p
}

func (p *pin) share() *pin {
	p.users.Add(1)
	return p
}

func (p *pin) drop() {
	if p != nil && p.users.Add(-1) == 0 {
		p.Close()
	}
}

// claimInterval is how often a worker that waits looks whether claims still hold.
const claimInterval = 3 * time.Second

// wait returns when a version above this one is ready or a block is to be measured, or true when the step's patience has
// passed.
func (w *Worker) wait(ctx context.Context, version uint64, s step, p *pacer) (expired bool, err error) {
	waiting := ctx
	if s.action == actIdle {
		w.stats.enter(AwaitPastLast, version)
	} else {
		w.stats.enter(AwaitRelease, version)
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeout(ctx, s.patience)
		defer cancel()
	}
	for {
		late, err := w.waitOnce(waiting, version, len(p.due) > 0)
		switch {
		case err == nil:
			return false, nil
		case ctx.Err() != nil:
			return false, context.Cause(ctx)
		case !late: // A deadline of the source's own is a failure of the source.
			return false, fmt.Errorf("wait for a release after version %d: %w", version, err)
		case waiting.Err() != nil:
			return true, nil
		case p.measuring(w.Evaluations.Claim):
			return false, nil
		}
	}
}

// waitOnce waits for a version above this one, no longer than claimInterval if there are claims to look at. late says that
// the wait ended by its own deadline or that of ctx.
func (w *Worker) waitOnce(ctx context.Context, version uint64, claims bool) (late bool, err error) {
	if claims {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, claimInterval)
		defer cancel()
	}
	err = w.Policies.Wait(ctx, version)
	return ctx.Err() != nil && errors.Is(err, context.DeadlineExceeded), err
}

// finish runs a piece of work and hands its bundle over.
func (w *Worker) finish(ctx context.Context, run func(context.Context) (*bundle.Bundle, error)) error {
	b, err := run(ctx)
	if err != nil {
		return err
	}
	body, err := bundle.Encode(b)
	if err != nil {
		return fmt.Errorf("encode %s bundle %d of version %d: %w", b.Purpose, b.Counter, b.PolicyVersion, err)
	}
	a := b.Announcement(body)
	if err := w.Announcer.Announce(ctx, a, body); err != nil {
		return fmt.Errorf("announce %s bundle %d of version %d: %w", b.Purpose, b.Counter, b.PolicyVersion, err)
	}
	w.stats.add(b)
	return nil
}
