package main

import (
	"fmt"
	"log/slog"
	"strings"
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
	case l.Training:
		return "training the next version"
	case l.Waiting == 0:
		return fmt.Sprintf("waiting for rollouts; a step needs %d groups", l.Batch)
	case l.StepDue.After(now):
		// With groups enough, the step waits for those of other peers.
		have := fmt.Sprintf("%d groups of %d", l.Waiting, l.Batch)
		if l.Most > l.Batch {
			have = fmt.Sprintf("%d groups, of which %d teach something, of %d", l.Waiting, l.Teaching, l.Batch)
		}
		return fmt.Sprintf("%s; the step begins in %.0f s at the latest", have, l.StepDue.Sub(now).Seconds())
	}
	return ""
}

// progress says in words how far a node is.
func progress(s *api.Status, now time.Time) string {
	var b strings.Builder
	if s.Head != nil {
		fmt.Fprintf(&b, "at version %d", s.Head.Version)
	} else {
		b.WriteString(s.Phase)
	}
	if r := s.Rollout; r != nil {
		fmt.Fprintf(&b, "; ran %d groups and %d evaluation blocks, now %s", r.Total.Groups, r.Total.Blocks, r.Activity)
	}
	if waits := waitsFor(s, now); waits != "" {
		b.WriteString("; " + waits)
	}
	return b.String()
}

// progressInterval is the time between two lines of the log about a node's progress.
const progressInterval = 10 * time.Second

// logProgress says now and then in the log how far a node is, when there is no screen to show it.
func logProgress(n *node.Node, log *slog.Logger) (ended func()) {
	stop := make(chan struct{})
	var logging sync.WaitGroup
	logging.Go(func() {
		ticker := time.NewTicker(progressInterval)
		defer ticker.Stop()
		last := ""
		for {
			select {
			case now := <-ticker.C:
				s := n.Status()
				if text := progress(&s, now); text != last {
					log.Info(text)
					last = text
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
