package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime/pprof"
	"sync"
	"time"

	"github.com/lightswarm/lightswarm/learner"
	"github.com/lightswarm/lightswarm/node"
	"github.com/lightswarm/lightswarm/rollout/env/calc"
	"github.com/lightswarm/lightswarm/wire"
)

// learnerReady is what the learner says when it listens and has published version 0.
type learnerReady struct {
	Charter   []byte
	Addresses []string
	API       string
}

// learnerJudged is what it says when the fate of as many announcements as there are groups is decided.
type learnerJudged struct {
	At      time.Time
	Reasons map[learner.Reason]int
}

// runLearner is the process of the learner: a node that founds a network.
func runLearner(ctx context.Context, work, profile string) (err error) {
	founding, err := node.DefaultFounding("ingest", calc.New())
	if err != nil {
		return err
	}
	founding.Evaluation = wire.EvaluationRules{}
	w := &watch{ctx: ctx, founded: make(chan struct{}), judged: make(chan learnerJudged, 1), reasons: make(map[learner.Reason]int)}
	n, err := node.New(ctx, node.Options{
		Config: settings(), Folder: filepath.Join(work, "learner"), Found: &founding, Observer: w, Version: "check",
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	ctx, cancel := context.WithCancelCause(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel(nil)
	running.Go(func() { cancel(n.Run(ctx)) })
	go func() { // Ends with the process.
		io.Copy(io.Discard, os.Stdin) //nolint:errcheck // whatever ends it, the parent is gone
		cancel(errors.New("the check has ended"))
	}()

	say := json.NewEncoder(os.Stdout)
	select {
	case <-w.founded:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := say.Encode(learnerReady{Charter: n.Charter().Raw, Addresses: n.Addresses(), API: n.APIAddress()}); err != nil {
		return err
	}
	if profile != "" {
		file, err := os.Create(profile)
		if err != nil {
			return err
		}
		defer file.Close()
		if err := pprof.StartCPUProfile(file); err != nil {
			return fmt.Errorf("profile: %w", err)
		}
	}
	select {
	case judged := <-w.judged:
		if profile != "" {
			pprof.StopCPUProfile()
		}
		if err := say.Encode(judged); err != nil {
			return err
		}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	<-ctx.Done() // killed
	return context.Cause(ctx)
}

// watch counts verdicts. It holds the training loop after the first release, as a long training step does: groups keep
// coming in and none is used up.
type watch struct {
	learner.Nobody
	ctx     context.Context
	founded chan struct{}
	judged  chan learnerJudged // gets one

	mu      sync.Mutex
	count   int                    // guarded by mu
	reasons map[learner.Reason]int // guarded by mu
}

// Released implements learner.Observer.
func (w *watch) Released(wire.SignedRelease) {
	close(w.founded)
	<-w.ctx.Done()
}

// Judged implements learner.Observer. The learner accepts a group only after its store has synced it.
func (w *watch) Judged(_ *wire.SignedAnnouncement, v learner.Verdict) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count++
	w.reasons[v.Reason]++
	if w.count == groups {
		w.judged <- learnerJudged{At: time.Now(), Reasons: maps.Clone(w.reasons)}
	}
}
