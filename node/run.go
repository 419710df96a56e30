package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/lightswarm/lightswarm/node/api"
	"github.com/lightswarm/lightswarm/wire"
)

// monitorInterval is how often the node looks whether its phase has changed.
const monitorInterval = 500 * time.Millisecond

// partError ends Run: the part that it names failed.
type partError struct {
	part string
	err  error
}

func (e *partError) Error() string { return e.part + ": " + e.err.Error() }

func (e *partError) Unwrap() error { return e.err }

// Run works until ctx ends or Shutdown is called, which is nil, or until a part fails that the node cannot go on
// without. A learner that is finished is no end: the node goes on serving what it made. Run is called once.
func (n *Node) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// Services outlive the work that feeds them.
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServing()

	var services, work sync.WaitGroup
	start := func(group *sync.WaitGroup, ctx context.Context, name string, run func(context.Context) error) {
		group.Go(func() {
			if err := run(ctx); err != nil && ctx.Err() == nil {
				cancel(&partError{name, err})
			}
		})
	}
	quiet := func(run func(context.Context)) func(context.Context) error {
		return func(ctx context.Context) error {
			run(ctx)
			return nil
		}
	}
	start(&services, serving, "network", n.network.Run)
	start(&services, serving, "policies", quiet(n.policies.run))
	start(&services, serving, "announcements", quiet(n.announcer.run))
	start(&services, serving, "presence", quiet(n.presence.run))
	if n.trainer != nil {
		start(&work, ctx, "learner", n.runLearner)
	}
	if n.worker != nil {
		start(&work, ctx, "rollout worker", n.runWorker)
	}
	start(&services, serving, "monitor", quiet(n.monitor))

	select {
	case <-ctx.Done():
	case err := <-n.failed:
		cancel(err)
	case <-n.stop:
		cancel(nil)
	}
	work.Wait()
	stopServing()
	services.Wait()
	if failed := (*partError)(nil); errors.As(context.Cause(ctx), &failed) {
		return fmt.Errorf("node: %w", failed)
	}
	return nil
}

// fail makes Run end with the failure of a part, unless another one came first. It does not block.
func (n *Node) fail(part string, err error) {
	select {
	case n.failed <- &partError{part, err}:
	default:
	}
}

// runLearner trains until the chain is final and evaluated.
func (n *Node) runLearner(ctx context.Context) error {
	if err := n.trainer.learner.Run(ctx); err != nil {
		return err
	}
	n.trainer.finished.Store(true)
	return nil
}

// runWorker runs rollouts. That their program can be started is found out first, so that somebody who has misspelt a
// module hears of it at once and not from rollouts that fail one by one. Runners are waited for: until one has connected,
// no task is drawn.
func (n *Node) runWorker(ctx context.Context) error {
	if n.player != nil {
		if err := n.player.ready(ctx); err != nil {
			return err
		}
	}
	return n.worker.Run(ctx)
}

// monitor makes the node's phase known whenever it changes.
func (n *Node) monitor(ctx context.Context) {
	ticker := time.NewTicker(monitorInterval)
	defer ticker.Stop()
	var last string
	var version uint64
	for {
		if phase := n.phase(); phase != last {
			last = phase
			finished := n.trainer != nil && n.trainer.finished.Load()
			// What a node does at work changes with each version, and the release was logged.
			level := slog.LevelInfo
			if current, _ := n.policies.newest(); current != nil && !finished {
				level = slog.LevelDebug
			}
			n.log.Log(ctx, level, phase)
			n.events.Publish(api.Event{Type: api.EventPhase, Phase: &api.PhaseEvent{
				Phase: phase, Finished: finished,
			}})
		}
		// Others pace themselves by what this node runs.
		if current, _ := n.policies.newest(); current != nil && current.Version != version {
			version = current.Version
			n.presence.hurry()
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// phase says what the node does or waits for.
func (n *Node) phase() string {
	head := n.head()
	current, _ := n.policies.newest()
	fetching := n.policies.fetching()
	switch {
	case n.trainer != nil && n.trainer.finished.Load():
		return fmt.Sprintf("finished: version %d is final", head.Version)
	case head == nil && n.network.Stats().Members == 0:
		return "looking for members of the network"
	case head == nil:
		return "waiting for the first release"
	case current == nil && fetching != nil:
		return fmt.Sprintf("fetching the policy of version %d", fetching.release.Version)
	case n.player != nil && !n.player.prepared.Load():
		return n.player.awaited()
	case n.worker != nil:
		s := n.worker.Stats()
		return fmt.Sprintf("%s under version %d", s.Activity, s.Version)
	case n.trainer != nil:
		s := n.trainer.learner.Status()
		// No number: where this is shown beside the newest version, one of them may be a moment older.
		switch {
		case s.Training:
			return "training the next version"
		case s.Head.Final:
			return fmt.Sprintf("waiting for the evaluation of version %d", s.Head.Version)
		}
		return "gathering groups for the next version"
	case n.roles.Has(wire.RoleRelay):
		return fmt.Sprintf("relaying, at version %d", head.Version)
	}
	return "running"
}
