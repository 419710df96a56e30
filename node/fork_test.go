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
	t.Parallel()
	learner := func() Options {
		o := options(t, settings(config.RoleLearner))
		o.Key, o.Found = simnet.Key(1, 0), parityNetwork(t)
		o.Found.Created, o.Found.Nonce = time.UnixMilli(1_700_000_000_000), []byte("nonce")
		return o
	}
	newest := start(t, learner())
	between := start(t, join(t, newest, config.RoleRollout))
	newest.until("version 1 is out", func() bool { h := newest.head(); return h != nil && h.Version >= 1 })
	between.until("version 1 arrives", func() bool { h := between.head(); return h != nil && h.Version >= 1 })

	o := learner()
	o.Config.P2P.Bootstrap = between.Addresses()
	copied := checkEnds(t, o, errOvertaken)
	if h := copied.head(); h != nil && h.Version > 0 {
		t.Errorf("the learner on the old copy followed version %d, which it did not make", h.Version)
	}
	version := newest.head().Version
	newest.until("training goes on", func() bool { return newest.head().Version > version })
}

// The same for a volunteer, whose announcements would be taken for those of the other copy.
func TestVolunteerOnAnOldCopyEnds(t *testing.T) {
	t.Parallel()
	o := options(t, settings(config.RoleLearner))
	o.Found = parityNetwork(t)
	founder := start(t, o)
	volunteer := func() Options {
		o := join(t, founder, config.RoleRollout)
		o.Key = simnet.Key(1, 1)
		return o
	}
	newest := start(t, volunteer())
	newest.until("the volunteer's work was used", func() bool { h := newest.head(); return h != nil && h.Version >= 1 })
	checkEnds(t, volunteer(), errTwin)
	made := newest.store.NextSequence()
	newest.until("the newest copy goes on", func() bool { return newest.store.NextSequence() > made })
}

// checkEnds runs a node that should end with an error that says what to do, and closes it.
func checkEnds(t *testing.T, o Options, want error) *Node {
	t.Helper()
	n, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	if err := n.Run(ctx); !errors.Is(err, want) || !strings.Contains(err.Error(), "run the") {
		t.Errorf("the node ended with %v, want %v", err, want)
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	return n
}
