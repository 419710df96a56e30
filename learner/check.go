package learner

import (
	"fmt"
	"math"
	"slices"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
	"github.com/lightswarm/lightswarm/wire/draw"
)

// Check judges a decoded bundle whose announcement passed Screen. It is pure.
func (r *Rules) Check(a *wire.SignedAnnouncement, b *bundle.Bundle) Verdict {
	if why := mismatch(a, b); why != "" {
		return Verdict{AnnouncementMismatch, why}
	}
	if v := r.checkGroup(b); !v.Accepted() {
		return v
	}
	want := r.Charter.Rollout.Sampling
	if b.Purpose == wire.PurposeEvaluateGreedy {
		want = wire.Sampling{}
	}
	if b.Sampling != want || b.MaxCompletionTokens != r.Charter.Rollout.MaxCompletionTokens {
		return Verdict{WrongSampling, fmt.Sprintf("%+v with at most %d tokens, the rules are %+v with at most %d",
			b.Sampling, b.MaxCompletionTokens, want, r.Charter.Rollout.MaxCompletionTokens)}
	}
	g := newGrammars(r.Vocabulary)
	for i := range b.Rollouts {
		if v := r.checkRollout(b, &b.Rollouts[i], g); !v.Accepted() {
			v.Detail = fmt.Sprintf("rollout %d: %s", i, v.Detail)
			return v
		}
	}
	return Verdict{Reason: Admitted}
}

// mismatch says in what a bundle differs from its announcement, "" for nothing.
func mismatch(a *wire.SignedAnnouncement, b *bundle.Bundle) string {
	switch {
	case b.Network != a.Network:
		return "network"
	case b.Purpose != a.Purpose:
		return "purpose"
	case b.Environment != a.Environment:
		return "environment"
	case b.PolicyVersion != a.PolicyVersion:
		return "policy version"
	case b.PolicyDigest != a.PolicyDigest:
		return "policy digest"
	case b.Purpose == wire.PurposeTrain && b.Peer != a.Signer:
		return "peer"
	case b.Counter != a.Counter:
		return "counter"
	case len(b.Rollouts) != int(a.Rollouts):
		return "number of rollouts"
	case b.CompletionTokens() != int(a.CompletionTokens):
		return "number of completion tokens"
	}
	return ""
}

// checkGroup checks that the rollouts are the members of the group, or the tasks of the block, in order.
func (r *Rules) checkGroup(b *bundle.Bundle) Verdict {
	var first draw.Task
	size, step := r.Charter.Rollout.GroupSize, uint64(0)
	if b.Purpose == wire.PurposeTrain {
		first = draw.Train(r.Network, r.Charter, b.PolicyVersion, b.Peer, b.Counter)
	} else {
		block := draw.EvaluationBlock(r.Charter, int(b.Counter))
		first = draw.Task{Environment: block.Environment, Split: wire.SplitValidation, Index: block.First}
		size, step = block.Tasks, 1
	}
	if b.Split != first.Split {
		return Verdict{WrongDraw, fmt.Sprintf("split %q, the draw is from %q", b.Split, first.Split)}
	}
	if len(b.Rollouts) != int(size) {
		return Verdict{WrongGroup, fmt.Sprintf("%d rollouts, want %d", len(b.Rollouts), size)}
	}
	for i, rollout := range b.Rollouts {
		if rollout.Member != uint32(i) {
			return Verdict{WrongGroup, fmt.Sprintf("rollout %d is member %d", i, rollout.Member)}
		}
		if want := first.Index + step*uint64(i); rollout.Task != want {
			return Verdict{WrongDraw, fmt.Sprintf("rollout %d is of task %d, the draw is %d", i, rollout.Task, want)}
		}
	}
	return Verdict{Reason: Admitted}
}

func (r *Rules) checkRollout(b *bundle.Bundle, rollout *bundle.Rollout, g *grammars) Verdict {
	if n, limit := len(rollout.Calls), int(r.Charter.Rollout.MaxCalls); n > limit {
		return Verdict{TooManyCalls, fmt.Sprintf("%d calls, at most %d", n, limit)}
	}
	for i := range rollout.Calls {
		v := r.checkCall(b, &rollout.Calls[i])
		if v.Accepted() {
			v = g.check(&rollout.Calls[i], r.room(b, &rollout.Calls[i]))
		}
		if !v.Accepted() {
			v.Detail = fmt.Sprintf("call %d: %s", i, v.Detail)
			return v
		}
	}
	return r.checkRewards(b.Environment, rollout)
}

// checkRewards bounds every reward of a rollout, and their sum: the return that a rollout is compared by.
func (r *Rules) checkRewards(environment wire.CID, rollout *bundle.Rollout) Verdict {
	m, known := r.Manifests[environment]
	if !known || !rollout.Outcome.Trainable() {
		return Verdict{Reason: Admitted}
	}
	low, high := float64(m.RewardMin), float64(m.RewardMax)
	total := float64(rollout.Reward)
	all := []float64{total}
	for _, c := range rollout.Calls {
		if c.Reward != nil {
			all = append(all, float64(*c.Reward))
			total += float64(*c.Reward)
		}
	}
	for _, reward := range append(all, total) {
		if reward < low || reward > high {
			return Verdict{RewardRange, fmt.Sprintf("reward %v, the environment gives %v to %v", reward, low, high)}
		}
	}
	return Verdict{Reason: Admitted}
}

// minLogProb is below all log-probs of tokens that an engine can have drawn: with float32 weights of a softmax none is
// below that of the least subnormal number, -104, less the logarithm of the vocabulary's size. It is also where float32
// stops to hold every multiple of 2^-16, and the compact form of a bundle ends. A lower one is made up, to make the
// learner's importance ratio vast.
const minLogProb = -256

func (r *Rules) checkCall(b *bundle.Bundle, c *bundle.Call) Verdict {
	length, limit := len(c.Completion), int(b.MaxCompletionTokens)
	if length == 0 || length > limit {
		return Verdict{CompletionLength, fmt.Sprintf("%d completion tokens, at least 1 and at most %d", length, limit)}
	}
	total := len(c.Prompt) + length
	if total > r.Context {
		return Verdict{ContextLength, fmt.Sprintf("%d tokens, the context has %d", total, r.Context)}
	}
	for _, tokens := range [...][]int32{c.Prompt, c.Completion} {
		for _, t := range tokens {
			if t < 0 || int(t) >= r.Vocab {
				return Verdict{TokenRange, fmt.Sprintf("token %d, the vocabulary has %d", t, r.Vocab)}
			}
		}
	}
	for _, p := range c.LogProbs {
		if !(p <= 0 && p > minLogProb) {
			return Verdict{LogProbRange, fmt.Sprintf("log-prob %v is not above %v and at most 0", p, minLogProb)}
		}
		if scaled := float64(p) / policy.LogProbGrid; b.Engine == bundle.EngineExact && scaled != math.Trunc(scaled) {
			return Verdict{LogProbRange, fmt.Sprintf("log-prob %v is not a multiple of 2^-16", p)}
		}
	}
	stops := slices.IndexFunc(c.Completion, func(t int32) bool { return slices.Contains(r.Stop, t) })
	switch policy.FinishReason(c.Finish) {
	case policy.FinishStop:
		if stops != length-1 {
			return Verdict{WrongFinish, "it stopped, but a stop token is not the last and only the last"}
		}
	case policy.FinishLength:
		if stops >= 0 {
			return Verdict{WrongFinish, "it was cut, but has a stop token"}
		}
		if length != limit && total != r.Context {
			return Verdict{WrongFinish, fmt.Sprintf("it was cut after %d tokens, before a limit", length)}
		}
	default:
		return Verdict{WrongFinish, fmt.Sprintf("unknown finish reason %d", c.Finish)}
	}
	return Verdict{Reason: Admitted}
}
