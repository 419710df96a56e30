package main

import (
	"context"
	"errors"
	"sync"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
	"github.com/lightswarm/lightswarm/wire/draw"
)

// A rollout is one call of each role, in this order. Its task has a topic and a deciding role: when that role answers with
// the topic's arm the rollout succeeds, and what the others answer changes nothing. Over the tasks each role decides as
// often as the others, so that nothing but the comparison of rollouts tells who did.
var roles = []string{"planner", "researcher", "writer", "editor"}

const (
	topics = 8
	// arms is how many answers there are: a token's arm is its remainder, so that a new policy is right about one time in
	// so many.
	arms  = 4
	tasks = topics * 4 // by topic and deciding role
)

// A prompt has three tokens: the role, the topic, and how the rollout stands, which is known once the deciding role has
// answered. Rollouts of a task thus come to the same few decision points.
const (
	firstRole  = 100
	firstTopic = 120
	firstState = 140
)

// The states of a rollout.
const (
	open = iota
	well
	badly
)

// giving says where the environment puts the reward of a success. Both are honest: what is given is the same.
type giving int

const (
	atEnd  giving = iota // to the rollout, at its end
	atCall               // to the call that decided, such as a test that it passed
)

func (g giving) String() string { return [...]string{"the rollout", "the call"}[g] }

// player plays the task with the newest release of a learner.
type player struct {
	charter *wire.SignedCharter
	stop    []int32
	giving  giving
}

// group plays the group of a draw; won says which rollouts succeeded.
func (p player) group(ctx context.Context, s policy.Session, version uint64, peer wire.PeerID, counter uint64) (b *bundle.Bundle, won []bool, err error) {
	rules := &p.charter.Rollout
	task := draw.Train(p.charter.ID, &p.charter.Charter, version, peer, counter)
	b = &bundle.Bundle{
		Network: p.charter.ID, Purpose: wire.PurposeTrain, Environment: task.Environment, Split: task.Split,
		PolicyVersion: version, PolicyDigest: s.Policy(), Peer: peer, Counter: counter,
		Sampling: rules.Sampling, MaxCompletionTokens: rules.MaxCompletionTokens, Engine: bundle.EngineExact,
		Rollouts: make([]bundle.Rollout, rules.GroupSize),
	}
	won, errs := make([]bool, len(b.Rollouts)), make([]error, len(b.Rollouts))
	var running sync.WaitGroup
	for i := range b.Rollouts {
		running.Go(func() {
			key := func(call int) policy.SampleKey {
				return draw.TrainKey(b.Network, version, peer, counter, uint32(i), uint32(call))
			}
			b.Rollouts[i], won[i], errs[i] = p.rollout(ctx, s, task.Index, key)
			b.Rollouts[i].Member = uint32(i)
		})
	}
	running.Wait()
	return b, won, errors.Join(errs...)
}

// rollout plays one.
func (p player) rollout(ctx context.Context, s policy.Session, task uint64, key func(call int) policy.SampleKey) (r bundle.Rollout, won bool, err error) {
	topic, decides := int(task%topics), int(task/topics)%len(roles)
	r = bundle.Rollout{Task: task, Outcome: bundle.OutcomeScored}
	state := open
	for i, role := range roles {
		prompt := []int32{firstRole + int32(i), firstTopic + int32(topic), firstState + int32(state)}
		c, err := s.Generate(ctx, policy.Request{
			Prompt: prompt, MaxTokens: 1, Stop: p.stop, Sampling: policy.Sampling{Temperature: 1}, Key: key(i),
		})
		if err != nil {
			return r, false, err
		}
		r.Calls = append(r.Calls, bundle.Call{
			Agent: role, Prompt: prompt, Completion: c.Tokens, LogProbs: c.LogProbs, Finish: uint8(c.Finish),
		})
		if i != decides {
			continue
		}
		state, won = badly, int(c.Tokens[0])%arms == topic%arms
		if won {
			state = well
		}
	}
	reward := float32(0)
	if won {
		reward = 1
	}
	switch p.giving {
	case atEnd:
		r.Reward = reward
	case atCall:
		r.Calls[decides].Reward = &reward
	}
	return r, won, nil
}
