// Command learneringest measures how many announced bundles a second a learner takes in on one core, and that its memory
// stays within its settings when more arrive than it can take. It runs itself as two more processes: the learner, a
// whole node on a data folder, and four peers that announce and serve groups which the built-in policy made before.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/lightswarm/lightswarm/node/api"
	"github.com/lightswarm/lightswarm/node/config"
	"github.com/lightswarm/lightswarm/scripts/checks/peers"
	"github.com/lightswarm/lightswarm/scripts/checks/pinned"
	"github.com/lightswarm/lightswarm/wire"
)

const (
	// promised is the least rate in bundles a second.
	promised = 500
	// authors announce groups, the same number each, in the measured part: faster than the learner takes them in, so its
	// queue has room for all. They fill its room for groups that wait, so that later announcements stay in the queue.
	authors = 4
	groups  = 1000
	queue   = groups
	// floodFactor is how many times what may wait, in buffer and queue, arrives afterwards.
	floodFactor = 10
)

// settings are the learner's.
func settings() config.Config {
	c := config.Default()
	c.Roles = []config.Role{config.RoleLearner}
	c.P2P = config.P2P{Listen: []string{"/ip4/127.0.0.1/tcp/0"}}
	c.Learner.Workers = 1
	c.Learner.Groups, c.Learner.Waiting, c.Learner.PeerPending = groups, groups, groups
	c.Learner.Queue = queue
	c.Learner.FetchBytes = 8 << 20
	return c
}

func main() {
	role := flag.String("role", "", "used by the check itself: learner or authors")
	work := flag.String("work", "", "folder for what the processes keep, left afterwards (default a temporary one)")
	profile := flag.String("profile", "", "file for a processor profile of the learner while it takes in the groups")
	quick := flag.Bool("quick", false, "judge the rate by processor time, against which other work on the machine does not count")
	patience := flag.Duration("patience", 5*time.Minute, "how long everything may take")
	flag.Parse()
	ctx, cancel := context.WithTimeoutCause(context.Background(), *patience, fmt.Errorf("it took longer than %s", *patience))
	defer cancel()
	var err error
	switch *role {
	case "learner":
		err = runLearner(ctx, *work, *profile)
	case "authors":
		err = runAuthors(ctx, *work)
	default:
		err = run(ctx, *work, *profile, *quick)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "learner-ingest:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, work, profile string, quick bool) (err error) {
	if work == "" {
		if work, err = os.MkdirTemp("", "learneringest"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	}
	if profile != "" {
		if profile, err = filepath.Abs(profile); err != nil {
			return err
		}
	}
	cores, err := pinned.Cores()
	if err != nil {
		return err
	}
	learner, err := pinned.Start(ctx, "learner", cores[0], work, "--profile", profile)
	if err != nil {
		return err
	}
	defer learner.Kill()
	var ready learnerReady
	if err := learner.Read(ctx, &ready); err != nil {
		return err
	}
	folder := filepath.Join(work, "learner")
	token, err := config.View(folder).ReadToken()
	if err != nil {
		return err
	}
	client := api.NewClient(ready.API, token)
	defer client.Close()

	list, err := prepare(ctx, work, ready)
	if err != nil {
		return err
	}
	authors, err := pinned.Start(ctx, "authors", cores[len(cores)-1], work)
	if err != nil {
		return err
	}
	defer authors.Kill()
	if err := authors.Read(ctx, &announced{}); err != nil {
		return err
	}

	r := &result{}
	if err := r.measure(ctx, learner, authors); err != nil {
		return err
	}
	if err := r.flood(ctx, learner, authors, client); err != nil {
		return err
	}
	learner.Kill()
	if err := r.recover(ctx, folder, list); err != nil {
		return err
	}
	return r.verdict(quick)
}

// prepare makes the groups, says what they are like and leaves them for the authors.
func prepare(ctx context.Context, work string, ready learnerReady) ([]peers.Group, error) {
	began := time.Now()
	charter, err := wire.OpenCharter(ready.Charter)
	if err != nil {
		return nil, err
	}
	list, err := peers.Make(ctx, &charter, authors, perAuthor, sampledPerAuthor)
	if err != nil {
		return nil, err
	}
	calls, tokens, bytes := 0, 0, 0
	for _, g := range list {
		for _, r := range g.Bundle.Rollouts {
			calls += len(r.Calls)
		}
		tokens += g.Bundle.CompletionTokens()
		bytes += len(g.Body)
	}
	rollouts := float64(len(list) * len(list[0].Bundle.Rollouts))
	fmt.Printf("made         %d groups in %.1f s: %.2f calls and %.1f sampled tokens a rollout, %d bytes a bundle\n",
		len(list), time.Since(began).Seconds(), float64(calls)/rollouts, float64(tokens)/rollouts, bytes/len(list))
	return list, writeGroups(work, ready, list)
}
