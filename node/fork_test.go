package node

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lightswarm/lightswarm/node/config"
	"github.com/lightswarm/lightswarm/p2p/simnet"
)

// A learner that is started on an old copy of its data folder, while the newest copy runs elsewhere, hears of it and ends
// with an error that says so; the network goes on with the other one.
func TestLearnerOnAnOldCopyEnds(t *testing.T) {
	learner := func() Options {
		o := options(t, settings(config.RoleLearner, config.RoleRollout))
		o.Key, o.Found = simnet.Key(1, 0), parityNetwork(t)
		o.Found.Created, o.Found.Nonce = time.UnixMilli(1_700_000_000_000), []byte("nonce")
		return o
	}
	newest := start(t, learner())
	newest.until("version 1 is out", func() bool { h := newest.head(); return h != nil && h.Version >= 1 })
	between := start(t, join(t, newest, config.RoleRelay))
	between.until("version 1 arrives", func() bool { h := between.head(); return h != nil && h.Version >= 1 })

	o := learner()
	o.Config.Roles = []config.Role{config.RoleLearner} // It makes no version before it hears of the others.
	o.Config.P2P.Bootstrap = between.Addresses()
	copied, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	err = copied.Run(ctx)
	if !errors.Is(err, errOvertaken) || !strings.Contains(err.Error(), "the newest copy alone") {
		t.Errorf("the learner on the old copy ended with %v", err)
	}
	if h := copied.head(); h != nil && h.Version > 0 {
		t.Errorf("the learner on the old copy followed version %d, which it did not make", h.Version)
	}
	if err := copied.Close(); err != nil {
		t.Error(err)
	}
	version := newest.head().Version
	newest.until("training goes on", func() bool { return newest.head().Version > version })
}
