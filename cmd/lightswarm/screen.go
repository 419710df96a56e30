package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/lightswarm/lightswarm/cmd/lightswarm/live"
	"github.com/lightswarm/lightswarm/node"
	"github.com/lightswarm/lightswarm/testnet"
)

const (
	// screenEvents is how many events wait to be shown.
	screenEvents = 1 << 12
	// screenKept is how many steps and evaluations are remembered: more evaluations than a screen has columns.
	screenKept = 1 << 10
	// screenInterval is the time between two drawings.
	screenInterval = 200 * time.Millisecond
)

// runWithScreen runs a learner's node and draws how training goes. The log goes to a file.
func (p *program) runWithScreen(ctx context.Context, o node.Options) error {
	out, err := os.OpenFile(filepath.Join(o.Folder, "log.txt"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	if o.Log, err = p.logger(o.Config.Log, out); err != nil {
		return usage(errors.Join(err, out.Close()))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	err = p.runNode(ctx, o, func(n *node.Node, _ *slog.Logger) func() {
		view := live.Open(ctx, p.err, false, func() { cancel(errInterrupted) })
		stop := make(chan struct{})
		var drawing sync.WaitGroup
		drawing.Go(func() { draw(n, view, goal(o.Config.Learner), o.Config.Learner.Target, stop) })
		return func() {
			close(stop)
			drawing.Wait()
			view.Close()
		}
	})
	return errors.Join(err, out.Close())
}

// draw shows a learner's events until stop is closed.
func draw(n *node.Node, view *live.View, goal string, target float64, stop <-chan struct{}) {
	events, end := n.Subscribe(screenEvents)
	defer end()
	charter := n.Charter()
	collector := testnet.NewCollector(time.Now(), int(charter.Rollout.GroupSize), target)
	collector.Keep(screenKept)
	title := fmt.Sprintf("learner of %s, %s", charter.Name, goal)
	peer := n.Peer().String()
	ticker := time.NewTicker(screenInterval)
	defer ticker.Stop()
	for {
		select {
		case e, open := <-events:
			if !open {
				return
			}
			collector.Add(peer, e)
		case <-ticker.C:
			now, status := time.Now(), n.Status()
			progress := collector.Progress(now, status.Connected+1)
			if waits := waitsFor(&status, now); waits != "" {
				progress.Phase = waits
			}
			view.Update(live.State{Title: title, Join: n.JoinCommand(), Progress: progress})
		case <-stop:
			return
		}
	}
}
