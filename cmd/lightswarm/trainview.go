package main

import (
	"fmt"
	"io"
	"time"

	"github.com/lightswarm/lightswarm/learner"
	"github.com/lightswarm/lightswarm/learner/journal"
	"github.com/lightswarm/lightswarm/learner/watch"
)

// trainingView tells how training goes. The learner of a folder tells it one thing after the other.
type trainingView struct {
	learner.Nobody
	to      io.Writer
	started time.Time
	watch   *watch.Watch
	journal *journal.Writer // nil without a folder for figures
}

func newTrainingView(to io.Writer, metrics string, c *learner.Config) *trainingView {
	bound := uint64(c.Charter.Rollout.MaxLag)
	if c.MaxLag != nil {
		bound = *c.MaxLag
	}
	v := &trainingView{to: to, started: time.Now(), watch: watch.New(bound)}
	if metrics != "" {
		v.journal = journal.Start(journal.Options{Folder: metrics, Network: c.Charter.ID, Problem: func(err error) {
			fmt.Fprintln(to, "lightswarm:", err)
		}})
	}
	return v
}

// Stepped implements learner.Observer.
func (v *trainingView) Stepped(s learner.Step) {
	fmt.Fprintf(v.to, "%6.1fs version %d: learned from %d of %d groups", time.Since(v.started).Seconds(), s.Version, s.Learned, s.Groups)
	if s.Rollouts > 0 {
		fmt.Fprintf(v.to, ", reward %.3f", s.RewardMean)
	}
	if s.Skipped != "" {
		fmt.Fprintf(v.to, "; the weights stay: %s", s.Skipped)
	}
	fmt.Fprintln(v.to)
	for _, change := range v.watch.Step(s) {
		if !change.Over {
			fmt.Fprintf(v.to, "        %s\n", change)
		}
	}
	if v.journal != nil {
		v.journal.Stepped(s, v.watch.Alerts())
	}
}

// close writes what is left of the figures. That it could not be written is no reason to fail.
func (v *trainingView) close() {
	if v.journal == nil {
		return
	}
	if err := v.journal.Close(); err != nil {
		fmt.Fprintln(v.to, "lightswarm: metrics:", err)
	}
}
