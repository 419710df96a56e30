package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/pprof"
	"sync"
	"syscall"
	"time"

	"github.com/lightswarm/lightswarm/learner"
	"github.com/lightswarm/lightswarm/node"
	"github.com/lightswarm/lightswarm/node/config"
	"github.com/lightswarm/lightswarm/policy/base"
	"github.com/lightswarm/lightswarm/rollout/env/calc"
	"github.com/lightswarm/lightswarm/wire"
)

// learnerReady is what the learner says when it listens and has published version 0.
type learnerReady struct {
	Charter   []byte
	Addresses []string
}

// settings are the learner's: the usual ones, with the figures of every step written down.
func settings(work string) config.Config {
	c := config.Default()
	c.Roles = []config.Role{config.RoleLearner}
	c.P2P = config.P2P{Listen: []string{"/ip4/127.0.0.1/tcp/0"}}
	c.Learner.Workers, c.Learner.Groups = 1, batch
	c.Learner.Metrics = filepath.Join(work, "metrics")
	return c
}

// runLearner is the process of the learner: a node that founds a network.
func runLearner(ctx context.Context, work, profile string, waste time.Duration) (err error) {
	founding, err := node.DefaultFounding("throughput", calc.New())
	if err != nil {
		return err
	}
	founding.Evaluation = wire.EvaluationRules{}
	founding.Rollout.MaxLag = 1 << 10 // every group is of version 0
	snapshot, err := base.Load()
	if err != nil {
		return err
	}
	bare, err := newKernel(snapshot)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w := &watch{
		ctx: ctx, cancel: cancel, founded: make(chan struct{}), bare: bare, recorder: &recorder{waste: waste}, say: json.NewEncoder(os.Stdout),
		accepted: make(chan struct{}, spare+2*steps*batch),
	}
	n, err := node.New(ctx, node.Options{
		Config: settings(work), Folder: filepath.Join(work, "learner"), Found: &founding, Observer: w, Version: "check",
		Trainer: func(t learner.Trainer) learner.Trainer {
			w.recorder.Trainer = t
			return w.recorder
		},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel(nil)
	running.Go(func() { cancel(n.Run(ctx)) })
	go func() { // Ends with the process.
		io.Copy(io.Discard, os.Stdin) //nolint:errcheck // whatever ends it, the parent wants no more
		cancel(errEnded)
	}()
	select {
	case <-w.founded:
	case <-ctx.Done():
		return context.Cause(ctx)
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
		defer pprof.StopCPUProfile()
	}
	if err := w.say.Encode(learnerReady{Charter: n.Charter().Raw, Addresses: n.Addresses()}); err != nil {
		return err
	}
	<-ctx.Done()
	if err := context.Cause(ctx); !errors.Is(err, errEnded) {
		return err
	}
	return nil
}

// errEnded says that the check needs the learner no more.
var errEnded = errors.New("the check has ended")

// watch ends each round of the learner with the bare kernel, and tells of both. Only the training loop uses the fields of the
// last block.
type watch struct {
	learner.Nobody
	ctx      context.Context
	cancel   context.CancelCauseFunc
	founded  chan struct{}
	once     sync.Once
	recorder *recorder
	bare     *kernel
	say      *json.Encoder
	accepted chan struct{} // gets one for each group

	steps, tokens int
	waiting       int // groups that were accepted and not trained on
	began         time.Time
	cpu           time.Duration // of this process when the round began
}

// Released implements learner.Observer.
func (w *watch) Released(wire.SignedRelease) {
	w.once.Do(func() {
		w.began, w.cpu = time.Now(), processorTime()
		close(w.founded)
	})
}

// Judged implements learner.Observer.
func (w *watch) Judged(_ *wire.SignedAnnouncement, v learner.Verdict) {
	if !v.Accepted() {
		w.cancel(fmt.Errorf("a group was refused: %s", v))
		return
	}
	w.accepted <- struct{}{}
}

// Stepped implements learner.Observer. The training loop is held until it returns.
func (w *watch) Stepped(s learner.Step) {
	if s.Skipped != "" || s.Groups != batch {
		w.cancel(fmt.Errorf("step %d of %d groups: %s", s.Version, s.Groups, s.Skipped))
		return
	}
	w.steps++
	w.tokens += s.Tokens
	w.waiting -= s.Groups
	if w.steps < steps {
		return
	}
	if err := w.endRound(); err != nil {
		w.cancel(err)
	}
}

// endRound waits until everything that was announced is accepted, so that the learner does nothing else while the bare
// kernel runs.
func (w *watch) endRound() error {
	for w.waiting < spare {
		select {
		case <-w.accepted:
			w.waiting++
		case <-w.ctx.Done():
			return context.Cause(w.ctx)
		}
	}
	r := round{Tokens: w.tokens, Whole: time.Since(w.began), WholeCPU: processorTime() - w.cpu}
	began, cpu := time.Now(), processorTime()
	if err := w.bare.repeat(w.recorder.passes); err != nil {
		return err
	}
	r.Bare, r.BareCPU = time.Since(began), processorTime()-cpu
	if err := w.bare.compare(w.recorder.Trainer); err != nil {
		return err
	}
	w.recorder.passes, w.steps, w.tokens = nil, 0, 0
	w.began, w.cpu = time.Now(), processorTime()
	return w.say.Encode(r)
}

// processorTime is what this process has used.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // it has no other reason than wrong arguments
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
