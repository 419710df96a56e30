package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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

// Each author announces perAuthor groups in the measured part. The policy samples the first of them; the others repeat their
// rollouts under draws of their own.
const perAuthor, sampledPerAuthor = groups / authors, 50

// group is a group of one author.
type group struct {
	author       int
	bundle       *bundle.Bundle
	body         []byte
	announcement wire.Announcement // without sequence and time
}

// makeGroups makes the groups that the authors' first counters draw, with the built-in policy.
func makeGroups(ctx context.Context, charter []byte) ([]group, error) {
	c, err := wire.OpenCharter(charter)
	if err != nil {
		return nil, err
	}
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
	list, errs := make([]group, groups), make([]error, inFlight)
	next := make(chan int, groups)
	for i := range groups {
		if i%perAuthor < sampledPerAuthor {
			next <- i
		}
	}
	close(next)
	var running sync.WaitGroup
	for worker := range inFlight {
		running.Go(func() {
			for i := range next {
				author, counter := i/perAuthor, uint64(i%perAuthor)
				b, err := rollout.RunGroup(ctx, network, policy, authorPeer(author), counter)
				if err == nil {
					list[i], err = encode(author, b)
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
		if counter := i % perAuthor; counter >= sampledPerAuthor {
			if list[i], err = list[i-counter+counter%sampledPerAuthor].again(&c, uint64(counter)); err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}

func encode(author int, b *bundle.Bundle) (group, error) {
	body, err := bundle.Encode(b)
	if err != nil {
		return group{}, err
	}
	return group{author, b, body, b.Announcement(body)}, nil
}

// again is a group with the same rollouts under another draw of its author: it passes every check of admission, and
// costs no sampling.
func (g group) again(c *wire.SignedCharter, counter uint64) (group, error) {
	b := *g.bundle
	task := draw.Train(c.ID, &c.Charter, b.PolicyVersion, b.Peer, counter)
	b.Counter, b.Environment, b.Split = counter, task.Environment, task.Split
	b.Rollouts = append([]bundle.Rollout{}, b.Rollouts...)
	for i := range b.Rollouts {
		b.Rollouts[i].Task = task.Index
	}
	return encode(g.author, &b)
}

// inventory is what the authors need to know.
type inventory struct {
	Charter []byte
	Learner []string // its addresses
	Bodies  [][]byte // every author's groups in the order of counters, the first author's first
}

// writeGroups leaves the groups for the authors.
func writeGroups(work string, ready learnerReady, list []group) error {
	i := inventory{Charter: ready.Charter, Learner: ready.Addresses}
	for _, g := range list {
		i.Bodies = append(i.Bodies, g.body)
	}
	encoded, err := json.Marshal(i)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(work, "groups.json"), encoded, 0o600)
}

// readGroups reads what writeGroups wrote.
func readGroups(work string) (i inventory, list []group, err error) {
	encoded, err := os.ReadFile(filepath.Join(work, "groups.json"))
	if err != nil {
		return i, nil, err
	}
	if err := json.Unmarshal(encoded, &i); err != nil {
		return i, nil, err
	}
	for n, body := range i.Bodies {
		b, err := bundle.Decode(body, bundle.Limits{})
		if err != nil {
			return i, nil, fmt.Errorf("group %d: %w", n, err)
		}
		list = append(list, group{n / perAuthor, b, body, b.Announcement(body)})
	}
	return i, list, nil
}
