package bundle

import (
	"math"
	"slices"
)

// Calls repeat one another: within a rollout a prompt continues the call before it, and the rollouts of a group start
// from one prompt and often say the same. A source names the earlier call that something is taken from:
//
//	0        none
//	1 … j    call j-source of the same rollout, for call number j
//	j+1 …    call j of the rollout source-j places before this one
//
// Distances are bounded, which bounds the encoder's search; the decoder takes any.
const (
	maxCallDistance    = 16
	maxRolloutDistance = 64
)

// sourceCall resolves a source for call j of the rollout that follows rollouts; calls are the rollout's calls before j.
// It returns nil when there is no such call. own says that it is of the same rollout.
func sourceCall(rollouts []Rollout, calls []Call, j int, source uint64) (c *Call, own bool) {
	switch {
	case source == 0:
		return nil, false
	case source <= uint64(j):
		return &calls[j-int(source)], true
	case source-uint64(j) > uint64(len(rollouts)):
		return nil, false
	}
	earlier := &rollouts[len(rollouts)-int(source-uint64(j))]
	if j >= len(earlier.Calls) {
		return nil, false
	}
	return &earlier.Calls[j], false
}

// sources yields every source that the encoder tries for call j, nearest first.
func sources(rollouts, j int) func(yield func(uint64) bool) {
	return func(yield func(uint64) bool) {
		for s := range min(j, maxCallDistance) {
			if !yield(uint64(s + 1)) {
				return
			}
		}
		for d := range min(rollouts, maxRolloutDistance) {
			if !yield(uint64(j + d + 1)) {
				return
			}
		}
	}
}

// promptBase is what a prompt can start with: the whole exchange of an earlier call of its rollout, or the prompt of
// the same call of another rollout. It comes in two parts.
func promptBase(c *Call, own bool) (head, tail []int32) {
	if own {
		return c.Prompt, c.Completion
	}
	return c.Prompt, nil
}

// promptSource finds the source that shares the longest prefix with the prompt, and that prefix's length.
func promptSource(rollouts []Rollout, calls []Call, prompt []int32) (source uint64, shared int) {
	for s := range sources(len(rollouts), len(calls)) {
		c, own := sourceCall(rollouts, calls, len(calls), s)
		if c == nil {
			continue
		}
		head, tail := promptBase(c, own)
		n := commonPrefix(prompt, head)
		if n == len(head) {
			n += commonPrefix(prompt[n:], tail)
		}
		if n > shared {
			source, shared = s, n
		}
	}
	return source, shared
}

// completionSource finds the source whose completion shares the longest prefix with c's, that prefix's length, and how
// many of its log-probs are the same to the bit from the start. With an exact engine all but the first different
// token's are, when the prompts are equal too.
func completionSource(rollouts []Rollout, calls []Call, c *Call) (source uint64, shared, sameLogProbs int) {
	for s := range sources(len(rollouts), len(calls)) {
		other, _ := sourceCall(rollouts, calls, len(calls), s)
		if other == nil {
			continue
		}
		n := commonPrefix(c.Completion, other.Completion)
		same := 0
		for same < n && math.Float32bits(c.LogProbs[same]) == math.Float32bits(other.LogProbs[same]) {
			same++
		}
		if n+2*same > shared+2*sameLogProbs { // a log-prob takes about twice a token's room
			source, shared, sameLogProbs = s, n, same
		}
	}
	return source, shared, sameLogProbs
}

// copySource returns how many rollouts before the next one lies a rollout whose call j is c, or 0.
func copySource(rollouts []Rollout, j int, c *Call) int {
	for d := 1; d <= min(len(rollouts), maxRolloutDistance); d++ {
		if other := rollouts[len(rollouts)-d].Calls; j < len(other) && equalCalls(&other[j], c) {
			return d
		}
	}
	return 0
}

func equalCalls(a, b *Call) bool {
	sameBits := func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) }
	return a.Agent == b.Agent && a.Finish == b.Finish && a.Grammar == b.Grammar && a.Asked == b.Asked &&
		(a.Reward == nil) == (b.Reward == nil) && (a.Reward == nil || sameBits(*a.Reward, *b.Reward)) &&
		slices.Equal(a.Completion, b.Completion) && slices.Equal(a.Prompt, b.Prompt) &&
		slices.EqualFunc(a.LogProbs, b.LogProbs, sameBits)
}

func commonPrefix(a, b []int32) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
