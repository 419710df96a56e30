package node

import (
	"sync"

	"github.com/lightswarm/lightswarm/learner"
	"github.com/lightswarm/lightswarm/wire"
)

const (
	// maxStandings bounds the peers that are remembered.
	maxStandings = 4096
	// faultWeight is how many good bundles one bad one outweighs.
	faultWeight = 20
	// newcomer is how much good work takes a peer half of the way from unknown to trusted.
	newcomer = 20
)

// standings is what the learner's verdicts say of peers, for their gossip scores. It is safe for concurrent use.
type standings struct {
	mu     sync.Mutex
	byPeer *roster[standing] // guarded by mu
}

// standing counts a peer's bundles: accepted, and refused for a fault of its own.
type standing struct{ good, bad float64 }

func newStandings() *standings { return &standings{byPeer: newRoster[standing](maxStandings)} }

// atFault says whether a verdict is the announcer's fault, and not one of timing, load or the network.
func atFault(r learner.Reason) bool {
	switch r {
	case learner.WrongNetwork, learner.UnknownEnvironment, learner.PolicyMismatch, learner.CounterReused, learner.WrongDraw,
		learner.Malformed, learner.AnnouncementMismatch, learner.WrongGroup, learner.WrongSampling, learner.TooManyCalls,
		learner.CompletionLength, learner.ContextLength, learner.TokenRange, learner.LogProbRange, learner.WrongFinish,
		learner.WrongGrammar, learner.RewardRange:
		return true
	default:
		return false
	}
}

// judge notes a verdict.
func (s *standings) judge(p wire.PeerID, v learner.Verdict) {
	fault := atFault(v.Reason)
	if !v.Accepted() && !fault {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.byPeer.get(p)
	if known == nil {
		known = s.byPeer.add(p, standing{})
	}
	if fault {
		known.bad++
	} else {
		known.good++
	}
	s.byPeer.touch(p, !fault)
}

// score is a peer's standing from -100 (cheats) to 100 (verified work), and 0 for unknown.
func (s *standings) score(p wire.PeerID) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.byPeer.get(p)
	if known == nil {
		return 0
	}
	bad := faultWeight * known.bad
	return 100 * (known.good - bad) / (known.good + bad + newcomer)
}
