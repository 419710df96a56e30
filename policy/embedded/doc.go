// Package embedded runs a policy in this process, in pure Go: policy.Engine on package transformer.
//
// # The contract
//
//  1. Generate is a pure function of the policy, the prompt, the stop tokens, the sampling parameters, MaxTokens and
//     the key: tokens and log-probs have the same bits on every machine, with any number of slots and threads, whatever
//     else the engine is doing, and whether or not a prefix was found in the cache. Score is one of its arguments alike.
//  2. The log-prob of a sampled token is that of the distribution that it was drawn from, after temperature, top-k and
//     top-p. At temperature 1 without them it equals Score's and the trainer's, to the bit. A greedy token's is
//     its log-prob at temperature 1 without top-k and top-p, since under "always the likeliest" it would say nothing.
//     With a grammar the distribution is that of the tokens that it allows, before all of this; ScoreWithin and the
//     trainer, given the same, agree to the bit.
//  3. Token i of a completion is drawn with number i of the key's stream (package wire/draw) by inverting the
//     cumulative distribution in the order of token ids.
//
// # How it runs
//
// One goroutine owns the scheduler, and with it every running sequence and every cache. Sessions send it calls. It
// repeats one step: take calls in the order in which they came while there are free slots, advance every running
// sequence by a token or by a piece of its prompt in one ragged batch a policy, hand back what is finished. A call that
// is cancelled leaves its slot before the next step.
//
// When a call ends, its keys and values stay, up to a budget of memory, least recently used out first. A new call starts
// from the longest prefix that it shares with any sequence of the same policy, running or idle. If the sequence
// that shares most has yet to compute it, the call waits for it, so that a group on one prompt pays for it once.
//
// A session pins its policy. Weights and caches are given up when the last session on a policy that is no longer the
// newest closes.
package embedded
