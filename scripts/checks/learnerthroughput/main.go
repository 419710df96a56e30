// Command learnerthroughput measures what a learner's other work costs its training. It runs itself as one more process,
// the learner, on one core: a whole node on a data folder, which takes in groups from four peers over libp2p and trains on
// them. After every round of steps the same process repeats what was computed, forward, backward and AdamW of the same
// rows in the same micro-batches with the same gradients of log-probs, by a bare transformer.Trainer, which must come to the
// same bits.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/lightswarm/lightswarm/scripts/checks/peers"
	"github.com/lightswarm/lightswarm/scripts/checks/pinned"
	"github.com/lightswarm/lightswarm/wire"
)

const (
	// promised is the least ratio of the tokens that the learner trains on in a second to those of the bare kernel.
	promised = 0.9
	// authors announce the groups of a round, the same number each.
	authors = 4
	// batch is how many groups a step trains on. A round has some steps, and as many groups are announced for it, which the
	// learner takes in while it trains.
	batch = 32
	steps = 8
	// spare is how many groups are left over from each round for the first step of the next, as in a network that goes on.
	spare = 2 * batch
	// perAuthor is how many groups of a round each author announces.
	perAuthor = steps * batch / authors
)

func main() {
	role := flag.String("role", "", "used by the check itself: learner")
	work := flag.String("work", "", "folder for what the learner keeps, left afterwards (default a temporary one)")
	quick := flag.Bool("quick", false, "measure 3 rounds instead of 12")
	profile := flag.String("profile", "", "file for a processor profile of the learner, with the bare kernel in it as (*kernel).repeat")
	waste := flag.Duration("waste", 0, "how long each update is held up, to see the check fail")
	patience := flag.Duration("patience", 10*time.Minute, "how long everything may take")
	flag.Parse()
	ctx, cancel := context.WithTimeoutCause(context.Background(), *patience, fmt.Errorf("it took longer than %s", *patience))
	defer cancel()
	var err error
	switch {
	case *role == "learner":
		err = runLearner(ctx, *work, *profile, *waste)
	case *quick:
		err = run(ctx, *work, 3, "--profile", *profile, "--waste", waste.String())
	default:
		err = run(ctx, *work, 12, "--profile", *profile, "--waste", waste.String())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "learner-throughput:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, work string, rounds int, arguments ...string) (err error) {
	if work == "" {
		if work, err = os.MkdirTemp("", "learnerthroughput"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	}
	cores, err := pinned.Cores()
	if err != nil {
		return err
	}
	learner, err := pinned.Start(ctx, "learner", cores[0], work, arguments...)
	if err != nil {
		return err
	}
	defer learner.Kill()
	var ready learnerReady
	if err := learner.Read(ctx, &ready); err != nil {
		return err
	}
	charter, err := wire.OpenCharter(ready.Charter)
	if err != nil {
		return err
	}
	made, err := peers.Make(ctx, &charter, authors, perAuthor, perAuthor)
	if err != nil {
		return err
	}
	list := make([]peers.Group, len(made)) // in turns: a batch takes at most half of its groups from one author
	for i := range list {
		list[i] = made[i%authors*perAuthor+i/authors]
	}
	all, end, err := gather(ctx, &charter, ready.Addresses)
	defer func() { err = errors.Join(err, end()) }()
	if err != nil {
		return err
	}

	left := make([]peers.Group, spare)
	for i := range left {
		counter := list[i].Bundle.Counter + uint64(rounds+1)*perAuthor // behind those of all rounds
		if left[i], err = list[i].Again(&charter, counter); err != nil {
			return err
		}
	}
	if err := announce(ctx, all, left); err != nil {
		return err
	}
	fmt.Printf("rounds of %d steps of %d groups of %d rollouts, after one to warm up; one core\n", steps, batch, charter.Rollout.GroupSize)
	fmt.Println("round   tokens  learner tokens/s  bare tokens/s  ratio  by processor time")
	var measured []round
	for number := range rounds + 1 {
		if err := announce(ctx, all, list); err != nil {
			return err
		}
		var r round
		if err := learner.Read(ctx, &r); err != nil {
			return err
		}
		if number > 0 {
			measured = append(measured, r)
			r.print(number)
		}
		for i, g := range list {
			if list[i], err = g.Again(&charter, g.Bundle.Counter+perAuthor); err != nil {
				return err
			}
		}
	}
	if err := learner.End(); err != nil {
		return fmt.Errorf("the learner: %w", err)
	}
	return verdict(measured)
}

// gather makes the authors. end is to be called in any case, and waits for what they do.
func gather(ctx context.Context, charter *wire.SignedCharter, learner []string) (all []*peers.Author, end func() error, err error) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	end = func() (err error) {
		cancel()
		running.Wait()
		for _, a := range all {
			err = errors.Join(err, a.Close())
		}
		return err
	}
	for i := range authors {
		a, err := peers.NewAuthor(ctx, i, charter, learner)
		if err != nil {
			return all, end, err
		}
		all = append(all, a)
		running.Go(func() { a.Run(ctx) })
	}
	for _, a := range all {
		if err := a.Await(ctx); err != nil {
			return all, end, err
		}
	}
	return all, end, nil
}

// announce has the authors announce groups: the first is the first author's, and so on in turns.
func announce(ctx context.Context, all []*peers.Author, list []peers.Group) error {
	for i, g := range list {
		if err := all[i%authors].Announce(ctx, g); err != nil {
			return err
		}
	}
	for _, a := range all {
		if err := a.Count(ctx); err != nil {
			return err
		}
	}
	return nil
}
