// Package peers has the peers of checks that measure a learner: they announce and serve groups that the built-in policy
// made before, which is what a rollout node is to a learner, without the engine.
package peers

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/lightswarm/lightswarm/policy/base"
	"github.com/lightswarm/lightswarm/policy/embedded"
	"github.com/lightswarm/lightswarm/rollout"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/calc"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
	"github.com/lightswarm/lightswarm/wire/draw"
)

// Group is a group of one author, as it is stored and announced.
type Group struct {
	Bundle       *bundle.Bundle
	Body         []byte
	Announcement wire.Announcement // without sequence and time
}

// Make runs the groups that the first counters of each author draw, with the built-in policy in the environment calc. They
// come in the order of counters, the first author's first. Only the first sampled of an author's are run, at least 1; the
// others repeat their rollouts under draws of their own.
func Make(ctx context.Context, c *wire.SignedCharter, authors, perAuthor, sampled int) ([]Group, error) {
	snapshot, err := base.Load()
	if err != nil {
		return nil, err
	}
	set, err := env.NewSet(calc.New())
	if err != nil {
		return nil, err
	}
	engine := embedded.New(embedded.Options{Slots: 256})
	defer engine.Close()
	if err := engine.Load(ctx, snapshot); err != nil {
		return nil, err
	}
	session, err := engine.Open()
	if err != nil {
		return nil, err
	}
	defer session.Close()
	policy, err := rollout.NewPolicy(0, snapshot, session, bundle.EngineExact)
	if err != nil {
		return nil, err
	}
	network := &rollout.Network{ID: c.ID, Charter: &c.Charter, Environments: set}

	const inFlight = 32
	list, errs := make([]Group, authors*perAuthor), make([]error, inFlight)
	next := make(chan int, len(list))
	for i := range list {
		if i%perAuthor < sampled {
			next <- i
		}
	}
	close(next)
	var running sync.WaitGroup
	for worker := range inFlight {
		running.Go(func() {
			for i := range next {
				b, err := rollout.RunGroup(ctx, network, policy, Peer(i/perAuthor), uint64(i%perAuthor))
				if err == nil {
					list[i], err = encode(b)
				}
				if err != nil {
					errs[worker] = err
					return
				}
			}
		})
	}
	running.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	for i := range list {
		if counter := i % perAuthor; counter >= sampled {
			if list[i], err = list[i-counter+counter%sampled].Again(c, uint64(counter)); err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}

// Open is the group whose bundle was encoded as body.
func Open(body []byte) (Group, error) {
	b, err := bundle.Decode(body, bundle.Limits{})
	if err != nil {
		return Group{}, fmt.Errorf("a group: %w", err)
	}
	return Group{b, body, b.Announcement(body)}, nil
}

// Again is a group with the same rollouts under another draw of its author: it passes every check of admission, and costs
// no sampling.
func (g Group) Again(c *wire.SignedCharter, counter uint64) (Group, error) {
	b := *g.Bundle
	task := draw.Train(c.ID, &c.Charter, b.PolicyVersion, b.Peer, counter)
	b.Counter, b.Environment, b.Split = counter, task.Environment, task.Split
	b.Rollouts = append([]bundle.Rollout{}, b.Rollouts...)
	for i := range b.Rollouts {
		b.Rollouts[i].Task = task.Index
	}
	return encode(&b)
}

func encode(b *bundle.Bundle) (Group, error) {
	body, err := bundle.Encode(b)
	if err != nil {
		return Group{}, err
	}
	return Group{b, body, b.Announcement(body)}, nil
}
