package main

import (
	"context"

	"github.com/lightswarm/lightswarm/learner"
	"github.com/lightswarm/lightswarm/learner/credit"
	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/scripts/checks/chains"
)

// What every chain has in common.
const (
	groupSize = chains.GroupSize
	groups    = chains.Groups // a step
	window    = 512
	enough    = 0.9
	most      = 40_960 // rollouts, after which a chain ends without success
	// learningRate is that of 0.003, 0.006 and 0.01 with which return needed the fewest rollouts.
	learningRate = 0.01
)

// experiment is what a chain is run with.
type experiment struct {
	credit credit.Assigner
	giving giving
	seed   uint64
	most   int // rollouts, after which the chain ends without success
}

// outcome is how a chain ended. The same experiment always gives the same.
type outcome struct {
	rollouts int           // that were played
	reached  bool          // whether enough of the last window of them succeeded
	success  float64       // the share of that window that did
	policy   policy.Digest // the last
}

// run trains until the last window of rollouts succeeded often enough, or there were too many.
func (e experiment) run(ctx context.Context) (outcome, error) {
	o, err := chains.Chain{
		Name: "credit", Seed: e.seed, Tasks: tasks, Calls: len(roles), Play: e.giving.play,
		Steps:  uint64(e.most / (groups * groupSize)),
		Enough: func(won []bool) bool { return len(won) >= window && chains.Share(won, window) >= enough },
		Learn: func(c *learner.Config) {
			c.Algorithm.Credit, c.Algorithm.Schedule.Peak = e.credit, learningRate
		},
	}.Run(ctx)
	return outcome{len(o.Won), o.Enough, chains.Share(o.Won, window), o.Policy}, err
}
