package node

import (
	"testing"
	"time"

	"github.com/lightswarm/lightswarm/node/config"
	"github.com/lightswarm/lightswarm/p2p/simnet"
	"github.com/lightswarm/lightswarm/virtualtime"
	"github.com/lightswarm/lightswarm/wire"
)

// A member that announces evaluation blocks, of which it has none, before anybody can measure them keeps no version from
// being measured: neither one that newer ones follow nor the last.
func TestVainClaimsSuppressNothing(t *testing.T) {
	t.Parallel()
	warmUp(t)
	virtualtime.Test(t, func(t *testing.T) {
		net := simnet.New(20 * time.Millisecond)
		net.Start()
		t.Cleanup(net.Close)
		o := simulated(t, net, 0, config.RoleLearner)
		o.Found = parityNetwork(t)
		o.Config.Learner.Steps = 4
		founder := start(t, o)
		o = simulated(t, net, 1, config.RoleRollout)
		o.Config.Network, o.Config.P2P.Bootstrap = founder.Charter().ID.String(), founder.Addresses()
		volunteer := start(t, o)

		liar := wire.NewKey(simnet.Key(1, 2))
		versions, sequence := []uint64{2, 4}, uint64(0)
		for _, version := range versions {
			for block := range uint64(volunteer.evaluationBlocks) {
				for _, purpose := range []wire.Purpose{wire.PurposeEvaluateSampled, wire.PurposeEvaluateGreedy} {
					claim, err := wire.SignAnnouncement(liar, wire.Announcement{
						Network: founder.charter.ID, Sequence: sequence, Purpose: purpose, Bundle: wire.SumCID(nil), BundleBytes: 100,
						PolicyVersion: version, PolicyDigest: [32]byte{1}, Environment: founder.charter.Environments[0].Manifest,
						Counter: block, Rollouts: 4, CompletionTokens: 10, Created: time.Now(),
					})
					if err != nil {
						t.Fatal(err)
					}
					sequence++
					volunteer.onAnnouncement(claim)
				}
			}
		}
		claimed := time.Now()
		founder.limit = time.Hour
		founder.until("the last version is out", func() bool { h := founder.head(); return h != nil && h.Final })
		if time.Since(claimed) >= claimHolds {
			t.Fatal("the claims ended before there was anything to measure")
		}
		founder.until("the learner is finished", func() bool { return founder.Status().Learner.Finished })
		complete := map[uint64]int{}
		for _, e := range founder.Status().Learner.Evaluations {
			if e.Complete {
				complete[e.Version]++
			}
		}
		for _, version := range versions {
			if complete[version] != 2 {
				t.Errorf("version %d has %d of 2 evaluations", version, complete[version])
			}
		}
	})
}
