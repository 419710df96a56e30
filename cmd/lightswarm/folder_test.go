package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/lightswarm/lightswarm/node"
	"github.com/lightswarm/lightswarm/node/config"
)

// A founding that was interrupted before it said anything is done anew, with the same identity; one that is complete is
// not.
func TestInterruptedFounding(t *testing.T) {
	folder := t.TempDir()
	c := config.Default()
	c.P2P.Listen, c.P2P.Bootstrap, c.P2P.MDNS, c.P2P.DHT, c.P2P.NATPortMap = nil, nil, false, false, false
	c.Roles = []config.Role{config.RoleLearner}
	identity := func() []byte {
		key, err := os.ReadFile(config.View(folder).IdentityFile())
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	begin := func() {
		f := founding{name: "a", environments: []string{"calc"}}
		if standard, err := node.DefaultFounding(""); err != nil {
			t.Fatal(err)
		} else {
			f.rollout, f.evaluation = standard.Rollout, standard.Evaluation
		}
		network, err := f.founding(t.Context(), environmentFlags{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := found(t.Context(), folder, c, network); err != nil {
			t.Fatal(err)
		}
	}
	bound := func() bool {
		if err := clearUnfinished(folder); err != nil {
			t.Fatal(err)
		}
		_, ok, err := networkOf(folder)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	begin()
	key := identity()
	if bound() {
		t.Error("the interrupted founding was not cleared")
	}
	begin()
	if !bytes.Equal(identity(), key) {
		t.Error("the identity is another one")
	}
	if err := finishFounding(folder); err != nil {
		t.Fatal(err)
	}
	if !bound() {
		t.Error("the complete founding was cleared")
	}
}
