package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/lightswarm/lightswarm/scripts/checks/peers"
	"github.com/lightswarm/lightswarm/scripts/checks/pinned"
	"github.com/lightswarm/lightswarm/wire"
)

// order is what the parent asks of the authors: to announce their groups, or more.
type order struct{ Flood bool }

// announced is their reply.
type announced struct {
	First, Last time.Time // of the announcements
	Count       int
}

// author announces groups first, then more.
type author struct {
	*peers.Author
	groups, more []peers.Group
}

// runAuthors is the process of the authors.
func runAuthors(ctx context.Context, work string) (err error) {
	inventory, list, err := readGroups(work)
	if err != nil {
		return err
	}
	charter, err := wire.OpenCharter(inventory.Charter)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var all []*author
	var running sync.WaitGroup
	defer func() {
		cancel()
		running.Wait()
		for _, a := range all {
			err = errors.Join(err, a.Close())
		}
	}()
	for i := range authors {
		a, err := newAuthor(ctx, i, &charter, inventory.Learner, list[i*perAuthor:(i+1)*perAuthor])
		if err != nil {
			return err
		}
		all = append(all, a)
		running.Go(func() { a.Run(ctx) })
	}
	for _, a := range all {
		if err := a.Await(ctx); err != nil {
			return err
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(announced{}); err != nil {
		return err
	}
	return pinned.Orders(func(o order) (any, error) { return announceAll(ctx, all, o.Flood) })
}

func newAuthor(ctx context.Context, i int, charter *wire.SignedCharter, learner []string, list []peers.Group) (*author, error) {
	a := &author{groups: list}
	for n := range floodFactor * (groups + queue) / authors {
		g, err := list[n%len(list)].Again(charter, uint64(len(list)+n))
		if err != nil {
			return nil, err
		}
		a.more = append(a.more, g)
	}
	var err error
	a.Author, err = peers.NewAuthor(ctx, i, charter, learner)
	return a, err
}

// announceAll has all authors announce at once.
func announceAll(ctx context.Context, all []*author, flood bool) (announced, error) {
	reply := announced{First: time.Now()}
	errs := make([]error, len(all))
	var running sync.WaitGroup
	for i, a := range all {
		list := a.groups
		if flood {
			list = a.more
		}
		reply.Count += len(list)
		running.Go(func() { errs[i] = a.announce(ctx, list) })
	}
	running.Wait()
	reply.Last = time.Now()
	return reply, errors.Join(errs...)
}

// announce announces groups one after the other, as fast as that goes; then it says how many there are.
func (a *author) announce(ctx context.Context, list []peers.Group) error {
	for _, g := range list {
		if err := a.Announce(ctx, g); err != nil {
			return err
		}
	}
	return a.Count(ctx)
}
