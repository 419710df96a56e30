package main

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/lightswarm/lightswarm/node"
	"github.com/lightswarm/lightswarm/policy/base"
	"github.com/lightswarm/lightswarm/policy/embedded"
	"github.com/lightswarm/lightswarm/rollout"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/calc"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

const (
	charterName = "charter"
	bundlesName = "bundles"
)

// record founds a network in a folder and lets the built-in policy run groups of it.
func record(ctx context.Context, work string, groups int) error {
	snapshot, err := base.Load()
	if err != nil {
		return err
	}
	founding, err := node.DefaultFounding("resumed", calc.New())
	if err != nil {
		return err
	}
	anchor, _, err := snapshot.Encode()
	if err != nil {
		return err
	}
	key := wire.NewKey(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	rules := founding.Rollout
	rules.MaxLag = uint32(groups) // every group is of version 0
	charter, err := wire.SignCharter(key, wire.Charter{
		Name: founding.Name, Created: time.UnixMilli(1_700_000_000_000), Nonce: []byte("resumed"), Learners: []wire.PeerID{key.Peer()},
		Environments: founding.Environments, Rollout: rules,
		Base: wire.PolicyRef{Digest: snapshot.Digest(), StateDigest: snapshot.State, Anchor: anchor},
	})
	if err != nil {
		return err
	}
	environments, err := env.NewSet(calc.New())
	if err != nil {
		return err
	}
	engine := embedded.New(embedded.Options{Slots: int(rules.GroupSize), Threads: 1})
	defer engine.Close()
	if err := engine.Load(ctx, snapshot); err != nil {
		return err
	}
	session, err := engine.Open()
	if err != nil {
		return err
	}
	defer session.Close()
	p, err := rollout.NewPolicy(0, snapshot, session, bundle.EngineExact)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(work, bundlesName), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(work, charterName), charter.Raw, 0o600); err != nil {
		return err
	}
	network := &rollout.Network{ID: charter.ID, Charter: &charter.Charter, Environments: environments}
	for counter := range uint64(groups) {
		b, err := rollout.RunGroup(ctx, network, p, key.Peer(), counter)
		if err != nil {
			return err
		}
		raw, err := bundle.Encode(b)
		if err != nil {
			return err
		}
		name := filepath.Join(work, bundlesName, fmt.Sprintf("%06d.bundle", counter))
		if err := os.WriteFile(name, raw, 0o600); err != nil {
			return err
		}
	}
	return nil
}
