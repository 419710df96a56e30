package chains

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/policy/safetensors"
	"github.com/lightswarm/lightswarm/policy/tokenizer"
	"github.com/lightswarm/lightswarm/policy/transformer"
	"github.com/lightswarm/lightswarm/wire"
)

// newPolicy is a transformer that knows nothing. Its context has 16 tokens.
func newPolicy(seed uint64) (*policy.Snapshot, error) {
	tok, err := tokenizer.Train(slices.Values([]string{"planner writer"}), 256+len(chat.Specials()), chat.Specials())
	if err != nil {
		return nil, err
	}
	c := transformer.Config{
		Hidden: 16, Layers: 1, Heads: 2, KVHeads: 1, HeadDim: 8, Intermediate: 32, Vocab: tok.VocabSize(),
		Context: 16, RopeTheta: 10000, NormEpsilon: 1e-6, TieEmbeddings: true,
	}
	end, ok := tok.Special("<|end|>")
	if !ok {
		return nil, errors.New("the tokenizer has no end token")
	}
	generation := policy.GenerationConfig{Stop: []int32{end}}
	return policy.New(c.JSON(), tok, chat.Lightswarm1, generation, transformer.Init(c, seed).Tensors(safetensors.BF16))
}

// charter is the founding of the network.
func (c Chain) charter(key wire.Key, base *policy.Snapshot) (wire.SignedCharter, error) {
	anchor, _, err := base.Encode()
	if err != nil {
		return wire.SignedCharter{}, err
	}
	return wire.SignCharter(key, wire.Charter{
		Name: c.Name, Created: time.UnixMilli(1_700_000_000_000), Nonce: fmt.Appendf(nil, "seed %d", c.Seed),
		Learners:     []wire.PeerID{key.Peer()},
		Environments: []wire.EnvironmentRef{{Manifest: wire.SumCID([]byte(c.Name)), Name: c.Name, Weight: 1, TrainTasks: c.Tasks}},
		Base:         wire.PolicyRef{Digest: base.Digest(), StateDigest: base.State, Anchor: anchor},
		Rollout: wire.RolloutRules{
			GroupSize: GroupSize, MaxCalls: uint32(c.Calls), MaxCompletionTokens: 1,
			Sampling: wire.Sampling{Temperature: 1, TopP: 1}, MaxLag: 8, GroupsPerVersion: Groups,
		},
	})
}
