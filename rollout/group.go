package rollout

import (
	"context"
	"fmt"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
	"github.com/lightswarm/lightswarm/wire/draw"
)

// RunGroup runs the training group that a peer's counter draws under this policy version. See the package comment for
// what the bundle depends on, and for the errors.
func RunGroup(ctx context.Context, n *Network, p *Policy, peer wire.PeerID, counter uint64) (*bundle.Bundle, error) {
	task := draw.Train(n.ID, n.Charter, p.Version, peer, counter)
	environment, err := n.Environments.Get(task.Environment)
	if err != nil {
		return nil, fmt.Errorf("group %d of version %d: %w", counter, p.Version, err)
	}
	jobs := make([]job, n.Charter.Rollout.GroupSize)
	for i := range jobs {
		member := uint32(i)
		jobs[i] = job{
			environment: environment,
			split:       task.Split,
			member:      member,
			task:        task.Index,
			sampling:    sampling(n.Charter.Rollout.Sampling),
			key: func(call uint32) policy.SampleKey {
				return draw.TrainKey(n.ID, p.Version, peer, counter, member, call)
			},
		}
	}
	b := n.bundle(p, wire.PurposeTrain, n.Charter.Rollout.Sampling)
	b.Environment, b.Split, b.Peer, b.Counter = task.Environment, task.Split, peer, counter
	if b.Rollouts, err = n.runAll(ctx, p, jobs); err != nil {
		return nil, fmt.Errorf("group %d of version %d: %w", counter, p.Version, err)
	}
	n.fit(b)
	return b, nil
}

// bundle is a bundle without its draw and rollouts.
func (n *Network) bundle(p *Policy, purpose wire.Purpose, s wire.Sampling) *bundle.Bundle {
	return &bundle.Bundle{
		Network:             n.ID,
		Purpose:             purpose,
		PolicyVersion:       p.Version,
		PolicyDigest:        p.Session.Policy(),
		Sampling:            s,
		MaxCompletionTokens: n.Charter.Rollout.MaxCompletionTokens,
		Engine:              p.Engine,
	}
}

// sampling is a network's rule in the engine's terms.
func sampling(s wire.Sampling) policy.Sampling {
	return policy.Sampling{Temperature: s.Temperature, TopK: int(s.TopK), TopP: s.TopP}
}
