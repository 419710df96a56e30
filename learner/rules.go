package learner

import (
	"fmt"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/policy/grammar"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

// Rules are what a bundle is checked against. They do not change while a learner runs.
type Rules struct {
	// Network is the network's id and Charter its charter.
	Network wire.CID
	Charter *wire.Charter
	// MaxLag is the largest lag that is trained on.
	MaxLag uint64
	// MaxPending bounds the bundles of one peer that are being fetched or wait to be trained on; 0 sets no bound.
	MaxPending int
	// Vocab is the number of the model's token ids, Context the model's context in tokens, and Stop the tokens that end a
	// completion.
	Vocab, Context int
	Stop           []int32
	// Vocabulary is what the model's tokens write.
	Vocabulary *grammar.Vocabulary
	// Manifests are those of the charter's environments that the learner knows. Rewards of others need only be
	// finite, and all their agents are trained.
	Manifests map[wire.CID]wire.EnvironmentManifest
}

// NewRules combines a charter with the policy that it trains.
func NewRules(c wire.SignedCharter, base *policy.Snapshot, context int, manifests map[wire.CID]wire.EnvironmentManifest) (Rules, error) {
	s := c.Rollout.Sampling
	if s.Temperature != 1 || s.TopK != 0 || (s.TopP != 0 && s.TopP != 1) {
		return Rules{}, fmt.Errorf("network %q samples with temperature %v, top-k %d, top-p %v: a learner computes log-probs at temperature 1 of the whole distribution; found a network with temperature 1, top_k 0 and top_p 1",
			c.Name, s.Temperature, s.TopK, s.TopP)
	}
	return Rules{
		Network:    c.ID,
		Charter:    &c.Charter,
		MaxLag:     uint64(c.Rollout.MaxLag),
		Vocab:      base.VocabSize(),
		Context:    context,
		Stop:       base.Generation.Stop,
		Vocabulary: base.Vocabulary(),
		Manifests:  manifests,
	}, nil
}

// room is how many tokens a call's completion might have had.
func (r *Rules) room(b *bundle.Bundle, c *bundle.Call) int {
	return min(int(b.MaxCompletionTokens), r.Context-len(c.Prompt))
}

// environment returns the environment's reference in the charter.
func (r *Rules) environment(cid wire.CID) (wire.EnvironmentRef, bool) {
	for _, e := range r.Charter.Environments {
		if e.Manifest == cid {
			return e, true
		}
	}
	return wire.EnvironmentRef{}, false
}

// trains says whether an environment's agent is trained: all are, unless the manifest names some.
func (r *Rules) trains(environment wire.CID, agent string) bool {
	trained := r.Manifests[environment].TrainedAgents
	for _, name := range trained {
		if name == agent {
			return true
		}
	}
	return len(trained) == 0
}

// solved is the smallest reward that counts as success: the largest that the environment gives, or 1 when its manifest
// is not known.
func (r *Rules) solved(environment wire.CID) float32 {
	if m, ok := r.Manifests[environment]; ok {
		return m.RewardMax
	}
	return 1
}
