package rollout

import (
	"context"
	"fmt"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
	"github.com/lightswarm/lightswarm/wire/draw"
)

// RunEvaluationBlock runs one rollout of each task of an evaluation block, sampled by the charter's rules or greedy
// according to the purpose. The bundle does not depend on the peer that runs it.
func RunEvaluationBlock(ctx context.Context, n *Network, p *Policy, purpose wire.Purpose, number uint64) (*bundle.Bundle, error) {
	fail := func(err error) (*bundle.Bundle, error) {
		return nil, fmt.Errorf("%s block %d of version %d: %w", purpose, number, p.Version, err)
	}
	rule := n.Charter.Rollout.Sampling
	switch purpose {
	case wire.PurposeEvaluateSampled:
	case wire.PurposeEvaluateGreedy:
		rule = wire.Sampling{}
	default:
		return fail(fmt.Errorf("purpose %s is no evaluation", purpose))
	}
	if blocks := draw.EvaluationBlocks(n.Charter); number >= uint64(blocks) {
		return fail(fmt.Errorf("the charter has %d blocks", blocks))
	}
	block := draw.EvaluationBlock(n.Charter, int(number))
	environment, err := n.Environments.Get(block.Environment)
	if err != nil {
		return fail(err)
	}
	jobs := make([]job, block.Tasks)
	for i := range jobs {
		task := block.First + uint64(i)
		jobs[i] = job{
			environment: environment,
			split:       wire.SplitValidation,
			member:      uint32(i),
			task:        task,
			sampling:    sampling(rule),
			key: func(call uint32) policy.SampleKey {
				return draw.EvaluateKey(n.ID, p.Version, block.Environment, task, call)
			},
		}
	}
	b := n.bundle(p, purpose, rule)
	b.Environment, b.Split, b.Counter = block.Environment, wire.SplitValidation, number
	if b.Rollouts, err = n.runAll(ctx, p, jobs); err != nil {
		return fail(err)
	}
	n.fit(b)
	return b, nil
}
