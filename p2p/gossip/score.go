package gossip

import (
	"time"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	"github.com/libp2p/go-libp2p/core/peer"
)

// Thresholds of a peer's score. An application score of a cheat (-100) alone stops gossip with a peer; a cheat that
// also sends invalid records is not listened to.
const (
	GossipThreshold   = -50.0
	PublishThreshold  = -100.0
	GraylistThreshold = -200.0
)

// scoreParams are GossipSub's score parameters.
//
//   - P1 and P2 (time in the mesh, first deliveries) earn at most 20 together, so that standing cannot be saved up and
//     spent on an attack.
//   - P3 (deliveries expected of mesh peers) is off: with as few messages as a small network has, it punishes the
//     honest.
//   - P4 (invalid records) is the square of their number, times ten: 5 of them end listening, and 10 minutes later
//     they are nearly forgotten.
//   - P5 is the application's score.
//   - P6 (peers at one address) begins above what a house, a lab or a carrier's NAT has.
//   - P7 (broken promises of the gossip protocol) is as in common use.
func scoreParams(topics []string, application func(peer.ID) float64) (*pubsub.PeerScoreParams, *pubsub.PeerScoreThresholds) {
	const decayInterval, decayToZero = time.Second, 0.01
	decay := func(d time.Duration) float64 {
		return pubsub.ScoreParameterDecayWithBase(d, decayInterval, decayToZero)
	}
	params := &pubsub.PeerScoreParams{
		Topics:                      make(map[string]*pubsub.TopicScoreParams),
		TopicScoreCap:               20,
		AppSpecificScore:            application,
		AppSpecificWeight:           1,
		IPColocationFactorWeight:    -1,
		IPColocationFactorThreshold: 128,
		BehaviourPenaltyWeight:      -1,
		BehaviourPenaltyThreshold:   6,
		BehaviourPenaltyDecay:       decay(10 * time.Minute),
		DecayInterval:               decayInterval,
		DecayToZero:                 decayToZero,
		RetainScore:                 time.Hour, // So that a new connection is no way out.
	}
	for _, topic := range topics {
		params.Topics[topic] = &pubsub.TopicScoreParams{
			TopicWeight:                    1,
			TimeInMeshWeight:               0.01,
			TimeInMeshQuantum:              time.Second,
			TimeInMeshCap:                  300,
			FirstMessageDeliveriesWeight:   0.1,
			FirstMessageDeliveriesDecay:    decay(10 * time.Minute),
			FirstMessageDeliveriesCap:      50,
			InvalidMessageDeliveriesWeight: -10,
			InvalidMessageDeliveriesDecay:  decay(10 * time.Minute),
		}
	}
	return params, &pubsub.PeerScoreThresholds{
		GossipThreshold:             GossipThreshold,
		PublishThreshold:            PublishThreshold,
		GraylistThreshold:           GraylistThreshold,
		AcceptPXThreshold:           20, // Peers are exchanged by records that carry signatures, not by GossipSub.
		OpportunisticGraftThreshold: 1,
	}
}
