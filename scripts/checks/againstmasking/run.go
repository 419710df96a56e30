package main

import (
	"context"

	"github.com/lightswarm/lightswarm/learner"
	"github.com/lightswarm/lightswarm/learner/advantage"
	"github.com/lightswarm/lightswarm/learner/row"
	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/scripts/checks/chains"
)

// window is the number of last rollouts whose success counts as that of the end.
const window = 512

// experiment is what one chain is run with.
type experiment struct {
	agent agent
	level row.Level
	rate  float64 // the learning rate
	steps uint64
	seed  uint64
}

// outcome is how a chain ended. The same experiment always gives the same.
type outcome struct {
	won    []bool        // of each rollout
	policy policy.Digest // the last
	work   work
}

// end is the success of the last rollouts, along that of all.
func (o outcome) end() float64   { return chains.Share(o.won, window) }
func (o outcome) along() float64 { return chains.Share(o.won, len(o.won)) }

// run trains. Rollouts are compared with their whole batch, so that all are trained on, however alike a group's are: the
// number of tokens trained does not depend on what was learned.
func (e experiment) run(ctx context.Context) (outcome, error) {
	var w work
	o, err := chains.Chain{
		Name: "against-masking", Seed: e.seed, Tasks: tasks, Calls: calls, Play: e.agent.episode, Steps: e.steps,
		Learn: func(c *learner.Config) {
			c.Trainer = counting{c.Trainer, &w}
			c.Algorithm.Level, c.Algorithm.Advantage, c.Algorithm.Schedule.Peak = e.level, advantage.RAE{Decay: 0.95}, e.rate
		},
	}.Run(ctx)
	return outcome{o.Won, o.Policy, w}, err
}

// work is what a trainer did, in tokens: it trained on some of those that it ran, and scored some again before that.
type work struct{ trained, ran, rescored int }

// counting is a trainer that counts its work.
type counting struct {
	learner.Trainer
	work *work
}

// Accumulate implements learner.Trainer.
func (c counting) Accumulate(rows []row.Row, loss func(i int, logProbs, entropies, gradient []float32)) error {
	for _, r := range rows {
		c.work.ran += len(r.Tokens)
		c.work.trained += len(r.Positions)
	}
	return c.Trainer.Accumulate(rows, loss)
}

// LogProbs implements learner.Trainer.
func (c counting) LogProbs(rows []row.Row) ([][]float32, error) {
	for _, r := range rows {
		c.work.rescored += len(r.Tokens)
	}
	return c.Trainer.LogProbs(rows)
}
