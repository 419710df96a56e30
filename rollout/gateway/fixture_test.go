package gateway_test

import (
	"context"
	"crypto/ed25519"
	"net/http"
	"testing"
	"time"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/policy/base"
	"github.com/lightswarm/lightswarm/policy/embedded"
	"github.com/lightswarm/lightswarm/rollout"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/gateway"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

// builtIn is the built-in policy, and the session of it, as long as the test runs.
func builtIn(t *testing.T) (*rollout.Policy, policy.Session) {
	t.Helper()
	snapshot, err := base.Load()
	if err != nil {
		t.Fatal(err)
	}
	engine := embedded.New(embedded.Options{Threads: 1})
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := engine.Load(t.Context(), snapshot); err != nil {
		t.Fatal(err)
	}
	session, err := engine.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	p, err := rollout.NewPolicy(0, snapshot, session, bundle.EngineExact)
	if err != nil {
		t.Fatal(err)
	}
	return p, session
}

// serve is a gateway as long as the test runs.
func serve(t *testing.T) *gateway.Gateway {
	t.Helper()
	g, err := gateway.Serve(gateway.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := g.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return g
}

// networkOf is a network of one environment by some rules.
func networkOf(t *testing.T, e env.Environment, rules wire.RolloutRules) rollout.Network {
	t.Helper()
	set, err := env.NewSet(e)
	if err != nil {
		t.Fatal(err)
	}
	reference, err := env.Reference(e)
	if err != nil {
		t.Fatal(err)
	}
	return rollout.Network{
		ID: wire.SumCID([]byte("gateway")), Environments: set,
		Charter: &wire.Charter{Environments: []wire.EnvironmentRef{reference}, Rollout: rules},
	}
}

// play runs a group as some peer.
func play(t *testing.T, n *rollout.Network, p *rollout.Policy, counter uint64) *bundle.Bundle {
	t.Helper()
	peer := wire.NewKey(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))).Peer()
	b, err := rollout.RunGroup(t.Context(), n, p, peer, counter)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// sent is a bundle as others read it.
func sent(t *testing.T, b *bundle.Bundle) *bundle.Bundle {
	t.Helper()
	raw, err := bundle.Encode(b)
	if err != nil {
		t.Fatal(err)
	}
	read, err := bundle.Decode(raw, bundle.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return read
}
