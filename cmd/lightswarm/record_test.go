package main

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/lightswarm/lightswarm/node"
	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/policy/base"
	"github.com/lightswarm/lightswarm/policy/embedded"
	"github.com/lightswarm/lightswarm/rollout"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/calc"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

// recordGroupsCommand founds a network, always the same, in a folder's file charter, and lets the built-in policy run groups
// of it as some version: recordgroups FOLDER GROUPS VERSION. The group of counter 3 is written as 000003.bundle.
func recordGroupsCommand(ts *testscript.TestScript, _ bool, arguments []string) {
	groups, err := strconv.Atoi(arguments[1])
	ts.Check(err)
	version, err := strconv.ParseUint(arguments[2], 10, 64)
	ts.Check(err)
	ts.Check(recordGroups(context.Background(), ts.MkAbs(arguments[0]), groups, version))
}

func recordGroups(ctx context.Context, folder string, groups int, version uint64) error {
	key := wire.NewKey(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	return played(ctx, version, func(s *policy.Snapshot, p *rollout.Policy, network rollout.Network) error {
		anchor, _, err := s.Encode()
		if err != nil {
			return err
		}
		signed, err := wire.SignCharter(key, wire.Charter{
			Name: "recorded", Created: time.UnixMilli(1_700_000_000_000), Nonce: []byte("recorded"), Learners: []wire.PeerID{key.Peer()},
			Environments: network.Charter.Environments, Rollout: network.Charter.Rollout,
			Base: wire.PolicyRef{Digest: s.Digest(), StateDigest: s.State, Anchor: anchor},
		})
		if err != nil {
			return err
		}
		network.ID, network.Charter = signed.ID, &signed.Charter
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, "charter"), signed.Raw, 0o600); err != nil {
			return err
		}
		for counter := range uint64(groups) {
			b, err := rollout.RunGroup(ctx, &network, p, key.Peer(), counter)
			if err != nil {
				return err
			}
			raw, err := bundle.Encode(b)
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("%06d.bundle", counter)), raw, 0o600); err != nil {
				return err
			}
		}
		return nil
	})
}

// recordBundleCommand runs the built-in policy on four held-out tasks and writes the bundle: recordbundle FILE
func recordBundleCommand(ts *testscript.TestScript, _ bool, arguments []string) {
	raw, err := recordBundle(context.Background())
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(arguments[0]), raw, 0o600))
}

func recordBundle(ctx context.Context) (raw []byte, err error) {
	err = played(ctx, 0, func(_ *policy.Snapshot, p *rollout.Policy, network rollout.Network) error {
		b, err := rollout.RunEvaluationBlock(ctx, &network, p, wire.PurposeEvaluateSampled, 0)
		if err != nil {
			return err
		}
		raw, err = bundle.Encode(b)
		return err
	})
	return raw, err
}

// played lets f play with the built-in policy, as some version, on a network that is not founded.
func played(ctx context.Context, version uint64, f func(*policy.Snapshot, *rollout.Policy, rollout.Network) error) error {
	s, err := base.Load()
	if err != nil {
		return err
	}
	founding, err := node.DefaultFounding("recorded", calc.New())
	if err != nil {
		return err
	}
	environments, err := env.NewSet(calc.New())
	if err != nil {
		return err
	}
	engine := embedded.New(embedded.Options{Threads: 1})
	defer engine.Close()
	if err := engine.Load(ctx, s); err != nil {
		return err
	}
	session, err := engine.Open()
	if err != nil {
		return err
	}
	defer session.Close()
	p, err := rollout.NewPolicy(version, s, session, bundle.EngineExact)
	if err != nil {
		return err
	}
	return f(s, p, rollout.Network{
		ID: wire.SumCID([]byte("recorded")), Environments: environments,
		Charter: &wire.Charter{
			Environments: founding.Environments, Rollout: founding.Rollout,
			Evaluation: wire.EvaluationRules{Tasks: 4, BlockTasks: 4},
		},
	})
}
