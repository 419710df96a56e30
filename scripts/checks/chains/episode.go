package chains

import (
	"context"
	"errors"
	"sync"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
	"github.com/lightswarm/lightswarm/wire/draw"
)

// Episode is a rollout that is being played, by one goroutine. Ask adds its calls; whoever plays it sets the rewards.
type Episode struct {
	bundle.Rollout
	ask func(call int, prompt []int32) (policy.Completion, error)
}

// Ask has the policy answer a prompt, on behalf of an agent, with one token. It keeps the prompt.
func (e *Episode) Ask(agent string, prompt []int32) (answer int32, err error) {
	c, err := e.ask(len(e.Calls), prompt)
	if err != nil {
		return 0, err
	}
	e.Calls = append(e.Calls, bundle.Call{
		Agent: agent, Prompt: prompt, Completion: c.Tokens, LogProbs: c.LogProbs, Finish: uint8(c.Finish),
	})
	return c.Tokens[0], nil
}

// group plays the group of the next draw; won says which rollouts succeeded.
func (n *node) group(ctx context.Context, s policy.Session, version uint64) (b *bundle.Bundle, won []bool, err error) {
	rules := &n.charter.Rollout
	task := draw.Train(n.charter.ID, &n.charter.Charter, version, n.peer, n.counter)
	b = &bundle.Bundle{
		Network: n.charter.ID, Purpose: wire.PurposeTrain, Environment: task.Environment, Split: task.Split,
		PolicyVersion: version, PolicyDigest: s.Policy(), Peer: n.peer, Counter: n.counter,
		Sampling: rules.Sampling, MaxCompletionTokens: rules.MaxCompletionTokens, Engine: bundle.EngineExact,
		Rollouts: make([]bundle.Rollout, rules.GroupSize),
	}
	won, errs := make([]bool, len(b.Rollouts)), make([]error, len(b.Rollouts))
	var running sync.WaitGroup
	for i := range b.Rollouts {
		running.Go(func() {
			member := uint32(i)
			e := Episode{
				Rollout: bundle.Rollout{Member: member, Task: task.Index, Outcome: bundle.OutcomeScored},
				ask: func(call int, prompt []int32) (policy.Completion, error) {
					return s.Generate(ctx, policy.Request{
						Prompt: prompt, MaxTokens: 1, Stop: n.stop, Sampling: policy.Sampling{Temperature: 1},
						Key: draw.TrainKey(b.Network, version, n.peer, b.Counter, member, uint32(call)),
					})
				},
			}
			won[i], errs[i] = n.chain.Play(&e)
			b.Rollouts[i] = e.Rollout
		})
	}
	running.Wait()
	return b, won, errors.Join(errs...)
}
