package main

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/lightswarm/lightswarm/node"
	"github.com/lightswarm/lightswarm/node/api"
	"github.com/lightswarm/lightswarm/node/config"
)

// goal says when a learner ends its training.
func goal(c config.Learner) string {
	switch {
	case c.Target > 0 && c.Steps > 0:
		return fmt.Sprintf("until %g of the held-out tasks or version %d", c.Target, c.Steps)
	case c.Target > 0:
		return fmt.Sprintf("until %g of the held-out tasks", c.Target)
	case c.Steps > 0:
		return fmt.Sprintf("until version %d", c.Steps)
	}
	return "until it is stopped"
}

// waitsFor says in words what a learner waits for; it is empty if it waits for nothing that is known.
func waitsFor(s *api.Status, now time.Time) string {
	l := s.Learner
	switch {
	case l == nil || s.Head == nil:
		return ""
	case l.Finished:
		return fmt.Sprintf("finished: version %d is final, and served until this is stopped", s.Head.Version)
	case s.Head.Final:
		return fmt.Sprintf("waiting for the evaluation of version %d, the final one", s.Head.Version)
	case l.Waiting == 0:
		return fmt.Sprintf("waiting for rollouts; a step needs %d groups", l.Batch)
	case l.StepDue.After(now):
		// With groups enough, the step waits for those of other peers.
		return fmt.Sprintf("%d groups of %d; the step begins in %.0f s at the latest", l.Waiting, l.Batch, l.StepDue.Sub(now).Seconds())
	}
	return ""
}

// waitingInterval is the time between two lines of the log about what a learner waits for.
const waitingInterval = 10 * time.Second

// logWaiting says now and then in the log what the node's learner waits for, when there is no screen to show it.
func logWaiting(n *node.Node, log *slog.Logger) (ended func()) {
	stop := make(chan struct{})
	var logging sync.WaitGroup
	logging.Go(func() {
		ticker := time.NewTicker(waitingInterval)
		defer ticker.Stop()
		last := ""
		for {
			select {
			case now := <-ticker.C:
				s := n.Status()
				if waits := waitsFor(&s, now); waits != "" && waits != last {
					log.Info(waits)
					last = waits
				}
			case <-stop:
				return
			}
		}
	})
	return func() {
		close(stop)
		logging.Wait()
	}
}
