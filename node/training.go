package node

import (
	"sync"

	"github.com/lightswarm/lightswarm/learner"
	"github.com/lightswarm/lightswarm/learner/journal"
	"github.com/lightswarm/lightswarm/learner/watch"
	"github.com/lightswarm/lightswarm/node/api"
)

// training follows how a learner's training goes: it watches for what goes wrong and keeps the figures.
type training struct {
	n       *Node
	journal *journal.Writer // nil without a folder for them

	mu    sync.Mutex
	watch *watch.Watch // guarded by mu
}

// openTraining starts to follow the learner. maxLag replaces the charter's bound unless it is nil.
func (n *Node) openTraining(maxLag *uint64) *training {
	bound := uint64(n.charter.Rollout.MaxLag)
	if maxLag != nil {
		bound = *maxLag
	}
	t := &training{n: n, watch: watch.New(bound)}
	if folder := n.options.Config.Learner.Metrics; folder != "" {
		t.journal = journal.Start(journal.Options{Folder: folder, Network: n.charter.ID, Problem: func(err error) {
			n.log.Warn("metrics", "error", err)
			n.events.Publish(api.Event{Type: api.EventProblem, Problem: &api.ProblemEvent{Message: err.Error()}})
		}})
	}
	return t
}

// stepped takes in a training step.
func (t *training) stepped(s learner.Step) {
	standing := t.follow(func(w *watch.Watch) []watch.Change { return w.Step(s) })
	if t.journal != nil {
		t.journal.Stepped(s, standing)
	}
}

// evaluated takes in a complete evaluation.
func (t *training) evaluated(e learner.Evaluation) {
	standing := t.follow(func(w *watch.Watch) []watch.Change { return w.Evaluated(e) })
	if t.journal != nil {
		t.journal.Evaluated(e, standing)
	}
}

// follow lets the watch take something in and tells what changed. It returns the alerts that stand.
func (t *training) follow(take func(*watch.Watch) []watch.Change) []watch.Alert {
	t.mu.Lock()
	changes, standing := take(t.watch), t.watch.Alerts()
	t.mu.Unlock()
	for _, c := range changes {
		if c.Over {
			t.n.log.Info("training alert is over", "kind", c.Kind, "version", c.Version, "since", c.Since)
		} else {
			t.n.log.Warn("training alert: "+c.String(), "kind", c.Kind, "version", c.Version)
		}
		t.n.events.Publish(api.Event{Type: api.EventAlert, Alert: &api.AlertEvent{Alert: alertJSON(c.Alert), Over: c.Over, Version: c.Version}})
	}
	return standing
}

// alerts are those that stand.
func (t *training) alerts() []watch.Alert {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.watch.Alerts()
}

// close ends the writing of figures. What does not come to the disk then is no reason to fail.
func (t *training) close() {
	if t.journal == nil {
		return
	}
	if err := t.journal.Close(); err != nil {
		t.n.log.Warn("metrics", "error", err)
	}
}

func alertJSON(a watch.Alert) api.Alert {
	return api.Alert{Kind: string(a.Kind), Since: a.Since, Message: a.Message, Advice: a.Advice}
}
