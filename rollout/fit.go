package rollout

import (
	"errors"

	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

// fit makes a bundle one that can be encoded. Agents choose their prompts, and those of one group can be more than a
// bundle holds, as can the grammars of what they demand and what they ask of sampling. Then the rollouts with the most of it
// lose their calls, one rollout after the other until the rest fits, and end as agent_error. So the draw is not left out, and
// the other rollouts are not lost.
//
// Whether a bundle fits depends on how well it compresses, which is the same within one build.
func (n *Network) fit(b *bundle.Bundle) {
	for !fits(b) {
		largest, most := -1, 0
		for i, r := range b.Rollouts {
			if size := perToken*tokensOf(r) + textsOf(r); size > most {
				largest, most = i, size
			}
		}
		if largest < 0 {
			return // it is not the calls
		}
		r := &b.Rollouts[largest]
		if n.Log != nil {
			n.Log.Warn("rollout dropped: its group is more than a bundle holds", "split", b.Split, "task", r.Task, "member", r.Member,
				"calls", len(r.Calls), "tokens", tokensOf(*r))
		}
		*r = bundle.Rollout{Member: r.Member, Task: r.Task, Outcome: bundle.OutcomeAgentError}
	}
}

// Bytes that parts of a bundle take at most, before compression. A log-prob is counted with its token.
const perToken, perCall, perRollout, perComponent = 12, 128, 64, 128

// fits says whether a bundle is small enough to be encoded. Nearly all are so small that this shows without encoding them.
func fits(b *bundle.Bundle) bool {
	tokens, bytes := 0, 0
	for _, r := range b.Rollouts {
		tokens += tokensOf(r)
		bytes += perRollout + perComponent*len(r.Components) + perCall*len(r.Calls) + textsOf(r)
	}
	if tokens > wire.MaxBundleTokens {
		return false
	}
	if bytes+perToken*tokens < wire.MaxBundleBytes/2 {
		return true
	}
	_, err := bundle.Encode(b)
	return !errors.Is(err, wire.ErrTooLarge)
}

// tokensOf is how many tokens a rollout's prompts and completions have.
func tokensOf(r bundle.Rollout) (n int) {
	for _, c := range r.Calls {
		n += len(c.Prompt) + len(c.Completion)
	}
	return n
}

// textsOf is how many bytes the grammars of a rollout's calls have, and what they ask, each counted once for each call.
func textsOf(r bundle.Rollout) (n int) {
	for _, c := range r.Calls {
		n += len(c.Grammar) + len(c.Asked)
	}
	return n
}
