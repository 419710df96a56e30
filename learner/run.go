package learner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lightswarm/lightswarm/wire"
)

// Run founds the chain, or publishes its newest release again, and then takes in bundles and trains until the chain is
// final and evaluated (nil), ctx ends (its cause), or something that the learner cannot do without fails. What was
// accepted or committed by then is in the store; a learner opened on it continues.
func (l *Learner) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	intake := make(chan error, 1)
	go func() {
		err := l.intake(ctx)
		cancel(err)
		intake <- err
	}()
	err := l.train(ctx)
	if ctx.Err() != nil {
		err = context.Cause(ctx) // the first failure, wherever it was
	}
	cancel(errEnded)
	if stored := <-intake; err == nil && stored != nil && !errors.Is(stored, context.Canceled) {
		err = stored
	}
	if err != nil {
		return fmt.Errorf("learner: %w", err)
	}
	return nil
}

// errEnded stops the intake of a learner whose chain is final.
var errEnded = errors.New("the chain is final")

// train is the training loop.
func (l *Learner) train(ctx context.Context) error {
	if err := l.begin(ctx); err != nil {
		return err
	}
	for !l.final() {
		if l.stop() {
			if err := l.step(ctx, nil, true); err != nil {
				return err
			}
			break
		}
		batch, wait := l.take()
		if len(batch) > 0 {
			if err := l.step(ctx, batch, false); err != nil {
				return err
			}
			continue
		}
		if err := l.await(ctx, wait); err != nil {
			return err
		}
	}
	return l.finish(ctx)
}

// begin makes version 0 if there is none, and publishes the newest release: it may have been made durable without being
// published.
func (l *Learner) begin(ctx context.Context) error {
	if l.saved == nil {
		if err := l.found(ctx); err != nil {
			return err
		}
	}
	return l.publish(ctx)
}

// take returns the groups of the next step, or how long to wait for them.
func (l *Learner) take() (batch []Record, wait time.Duration) {
	now := l.config.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.buffer.Len()
	l.expire(now)
	batch, wait = l.buffer.Take(now)
	l.training = len(batch) > 0
	if l.buffer.Len() < before {
		signal(l.work) // there is room again
	}
	l.due = time.Time{}
	if wait > 0 {
		l.due = now.Add(wait)
	}
	return batch, wait
}

// expire lets go of the groups that are too old by now. l.mu is held.
func (l *Learner) expire(now time.Time) {
	for _, r := range l.buffer.Expire(l.head.Version, l.rules.MaxLag, now) {
		l.state.Consume(r)
		l.reasons[StaleAtUse]++
		l.used = append(l.used, r.CID)
		l.expired++
	}
}

// await returns when something may have changed, after wait at the latest unless that is 0.
func (l *Learner) await(ctx context.Context, wait time.Duration) error {
	var timer <-chan time.Time
	if wait > 0 {
		timer = time.After(wait)
	}
	select {
	case <-l.ready:
	case <-timer:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// stop says whether the chain ends with what is known now.
func (l *Learner) stop() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.config.Stop.Reached(l.head.Version, l.board.Evaluations())
}

func (l *Learner) final() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.head.Final
}

// finish waits for the evaluation of the last version, until none of its results came for FinalPatience.
func (l *Learner) finish(ctx context.Context) error {
	var deadline time.Time
	results := -1
	for {
		l.mu.Lock()
		head := l.head
		sampled := l.board.Evaluation(head.Version, wire.PurposeEvaluateSampled)
		greedy := l.board.Evaluation(head.Version, wire.PurposeEvaluateGreedy)
		l.mu.Unlock()
		if n := sampled.Tasks + greedy.Tasks; n != results {
			results, deadline = n, l.config.Now().Add(l.config.FinalPatience)
		}
		left := deadline.Sub(l.config.Now())
		if !head.Evaluate || (sampled.Complete() && greedy.Complete()) || left <= 0 {
			return nil
		}
		if err := l.await(ctx, left); err != nil {
			return err
		}
	}
}
