package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lightswarm/lightswarm/cmd/lightswarm/live"
	"github.com/lightswarm/lightswarm/learner"
	"github.com/lightswarm/lightswarm/node"
	"github.com/lightswarm/lightswarm/node/config"
	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

// trainedPolicy is what `policy train --json` prints. Its counts are of the whole chain, of what an earlier run left in --data
// too.
type trainedPolicy struct {
	Digest string `json:"digest"`
	Folder string `json:"folder"`
	// Network is the charter's id.
	Network string `json:"network"`
	// Version is the last one: as many steps were made.
	Version uint64 `json:"version"`
	// Accepted bundles passed the learner's checks; Learned of their groups taught something.
	Accepted uint64 `json:"accepted"`
	Learned  uint64 `json:"groups_trained"`
	Tokens   uint64 `json:"tokens_trained"`
	// Refused counts files, and Dropped accepted groups that taught nothing, by reason: docs/protocol.md lists them.
	Refused map[string]uint64 `json:"refused"`
	Dropped map[string]uint64 `json:"dropped"`
	Seconds float64           `json:"seconds"`
}

// trainSettings are the learner's that mean something without a network.
var trainSettings = []string{
	"learner.steps", "learner.groups", "learner.dynamic", "learner.learning_rate", "learner.credit", "learner.advantage", "learner.level",
	"learner.agents", "learner.loss", "learner.normaliser", "learner.workers", "learner.metrics",
}

// folderTraining is what `policy train` is asked for.
type folderTraining struct {
	bundles, charter, base, out, state string
	environments                       []string
	recorded                           bool
	maxLag                             *uint64
}

func (p *program) train() *cobra.Command {
	var t folderTraining
	maxLag := uint64(0)
	c := &cobra.Command{
		Use:   "train FOLDER --charter FILE --out FOLDER",
		Short: "Train a policy on a folder of bundles, without a network",
		Long: `Train the policy that a network starts from on the files *.bundle of a folder, in the order of their names, as the network's
learner would: the same checks, the same steps, one after the other. The same files give the same policy, to the bit, on every
machine. What is left at the end makes a smaller step. Files that are refused are counted by reason and are no failure.

The charter is the block whose CID is the network's id, and a bundle that of an announcement: a node's local API gives out both
(docs/api.md). The built-in environments are known; --env names others of the charter, whose rewards and trained agents
are then checked and heeded.

Groups are to be of the versions that the run itself makes, of version 0 to begin with. --recorded takes those of any
policy, as a network has left them. A group may lag behind the newest version as far as the charter says, or --max-lag.

With --data the state is kept in a folder: after a kill or an interrupt at any moment the same command goes on, and comes to
the same policy as if nothing had happened. Once it has ended, files whose names sort behind the others go on from there.

Exit codes: 0, the policy is written; 1, it failed, or no group taught anything, and nothing is written; 2, a flag, argument or
setting is wrong; 130, it was interrupted.`,
		Example: `  lightswarm policy train ./bundles --charter ./charter --out ./trained
  lightswarm policy train ./bundles --charter ./charter --recorded --max-lag 100 --out ./trained
  lightswarm policy train ./bundles --charter ./charter --learner-loss "ppo high=0.3" --data ./state --out ./trained --json`,
		Args: takes(1, 1),
	}
	f := c.Flags()
	f.StringVar(&t.charter, "charter", "", "file with the network's signed charter")
	f.StringVar(&t.base, "policy", "", "folder of the policy that the charter starts from (default the built-in one)")
	f.StringSliceVar(&t.environments, "env", nil, "environment of the charter: a folder or a package file; may be given several times")
	f.BoolVar(&t.recorded, "recorded", false, "take groups of any policy, as recorded from a network")
	f.Uint64Var(&maxLag, "max-lag", 0, "largest lag that is trained on (default the charter's)")
	f.StringVar(&t.out, "out", "", "folder for the policy; it must not exist, or be empty")
	f.StringVar(&t.state, "data", "", "folder for the state of the training, from which the same command goes on (default none)")
	config.AddFlags(f, trainSettings...)
	c.RunE = func(cmd *cobra.Command, arguments []string) error {
		t.bundles = arguments[0]
		if cmd.Flags().Changed("max-lag") {
			t.maxLag = &maxLag
		}
		loaded, err := config.Merge(config.Default(), config.Sources{Environ: os.Environ(), Flags: cmd.Flags()})
		if err == nil {
			err = loaded.Validate()
		}
		if err != nil {
			return usage(err)
		}
		return p.trainFolder(cmd.Context(), &t, loaded.Learner)
	}
	return c
}

// trainFolder trains, and writes the policy that comes of it.
func (p *program) trainFolder(ctx context.Context, t *folderTraining, settings config.Learner) (err error) {
	if err := checkOut(t.out); err != nil {
		return err
	}
	c, err := t.config(ctx, settings)
	if err != nil {
		return err
	}
	if t.state != "" {
		closeState, failed := t.openState(&c)
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, closeState()) }()
	}
	seen := newTrainingView(p.err, settings.Metrics, &c)
	c.Observer = seen
	s, status, err := learner.RunFolder(ctx, t.bundles, c)
	seen.close()
	switch {
	case ctx.Err() != nil && t.state != "":
		return &exitError{exitInterrupted, fmt.Errorf("%w; the same command goes on behind version %d", errInterrupted, status.Head.Version)}
	case ctx.Err() != nil:
		return &exitError{exitInterrupted, errInterrupted}
	case err != nil:
		return err
	}
	r := trainedPolicy{
		Digest: s.Digest().String(), Folder: t.out, Network: c.Charter.ID.String(), Version: status.Head.Version,
		Accepted: status.Reasons[learner.Admitted], Learned: status.GroupsTrained, Tokens: status.TokensTrained,
		Refused: make(map[string]uint64), Dropped: make(map[string]uint64),
	}
	for reason, n := range status.Reasons {
		switch {
		case reason.Dropped():
			r.Dropped[string(reason)] = n
		case reason != learner.Admitted:
			r.Refused[string(reason)] = n
		}
	}
	if r.Learned == 0 {
		return fmt.Errorf("no group of %s taught anything: %d were accepted (dropped: %s), refused: %s; nothing is written",
			t.bundles, r.Accepted, orNone(r.Dropped), orNone(r.Refused))
	}
	if err := s.WriteDir(t.out); err != nil {
		return err
	}
	r.Seconds = time.Since(seen.started).Seconds()
	return p.print(r, func(w io.Writer) {
		fmt.Fprintf(w, "policy    %s in %s\n", r.Digest, r.Folder)
		fmt.Fprintf(w, "training  %d versions from %d groups, %d tokens, in %.1f s\n", r.Version, r.Learned, r.Tokens, r.Seconds)
		fmt.Fprintf(w, "bundles   %d accepted, dropped: %s, refused: %s\n", r.Accepted, orNone(r.Dropped), orNone(r.Refused))
	})
}

func orNone(counts map[string]uint64) string {
	if text := live.Counts(counts); text != "" {
		return text
	}
	return "none"
}

// config is the learner's. Mistakes are the user's.
func (t *folderTraining) config(ctx context.Context, settings config.Learner) (learner.Config, error) {
	c, err := node.LearnerConfig(settings)
	if err != nil {
		return c, err
	}
	if t.charter == "" {
		return c, usage(errors.New("name the file with the network's charter with --charter"))
	}
	raw, err := readFile(t.charter, wire.MaxCharterBytes)
	if err != nil {
		return c, usage(fmt.Errorf("--charter: %w", err))
	}
	if c.Charter, err = wire.OpenCharter(raw); err != nil {
		return c, usage(fmt.Errorf("--charter %s: %w", t.charter, err))
	}
	if c.Base, err = readPolicy(t.base); err != nil {
		return c, fmt.Errorf("--policy: %w", err)
	}
	if got, want := c.Base.Digest(), policy.Digest(c.Charter.Base.Digest); got != want {
		return c, usage(fmt.Errorf("--policy: it is %s, and network %q starts from %s: name the folder with that one", got.Short(), c.Charter.Name, want.Short()))
	}
	if c.Manifests, err = t.manifests(ctx); err != nil {
		return c, err
	}
	files, err := bundlesIn(t.bundles)
	if err != nil {
		return c, usage(err)
	}
	if t.recorded {
		if c.Behaviours, err = sampledBy(files); err != nil {
			return c, err
		}
	}
	c.MaxLag = t.maxLag
	workers := settings.Workers
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	c.Trainer, err = learner.NewEmbedded(c.Base, workers)
	return c, err
}

// manifests are those of the environments that the program knows and that the user names.
func (t *folderTraining) manifests(ctx context.Context) (map[wire.CID]wire.EnvironmentManifest, error) {
	known := make(map[wire.CID]wire.EnvironmentManifest)
	for _, e := range builtinEnvironments {
		p, err := env.NewPackage(e.Manifest(), nil)
		if err != nil {
			return nil, err
		}
		known[p.CID()] = p.Manifest()
	}
	for _, name := range t.environments {
		a, err := findEnvironment(ctx, name)
		if err != nil {
			return nil, usage(fmt.Errorf("--env: %w", err))
		}
		known[a.CID()] = a.Manifest()
	}
	return known, nil
}

// bundlesIn are the files of a folder that the learner will read; there is at least one.
func bundlesIn(folder string) (files []string, err error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), learner.BundleSuffix) {
			files = append(files, filepath.Join(folder, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no files *%s", folder, learner.BundleSuffix)
	}
	return files, nil
}

// sampledBy are the policies that the groups in some files were sampled by.
func sampledBy(files []string) ([]learner.Behaviour, error) {
	var policies []learner.Behaviour
	for _, name := range files {
		raw, err := readFile(name, wire.MaxBundleBytes)
		if err != nil {
			return nil, err
		}
		b, err := bundle.Decode(raw, bundle.Limits{})
		if err != nil || b.Purpose != wire.PurposeTrain {
			continue // The learner counts what it cannot read.
		}
		p := learner.Behaviour{Version: b.PolicyVersion, Digest: b.PolicyDigest}
		if !slices.Contains(policies, p) {
			policies = append(policies, p)
		}
	}
	return policies, nil
}

// openState lets the configuration keep its state in a folder that no other process has.
func (t *folderTraining) openState(c *learner.Config) (closeState func() error, err error) {
	if err := checkFolder(t.state); err != nil {
		return nil, err
	}
	if hasDatabase(t.state) {
		return nil, usage(fmt.Errorf("--data %s is a node's data folder: name another one", t.state))
	}
	folder, err := config.OpenFolder(t.state)
	if err != nil {
		return nil, err
	}
	store, err := learner.OpenFolder(t.state)
	if err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	c.Store = store
	return func() error { return errors.Join(store.Close(), folder.Close()) }, nil
}
