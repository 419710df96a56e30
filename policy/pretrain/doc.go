// Package pretrain makes a policy from nothing: supervised training of a small transformer on demonstrations, so that
// reinforcement learning finds a policy that speaks the chat template, uses the tools and succeeds now and then.
//
// Run trains the tokenizer on the demonstrations' texts, then the weights, in rounds. After each round it asks whether
// the ability is there, and stops when it is:
//
//   - Reachable: with what probability the policy writes held-out right demonstrations. Reinforcement learning amplifies
//     what a policy does sometimes; a kind of task that it never gets right stays wrong, and training stops below 1.
//     So nearly all of them must be within reach.
//   - Ability: what rollouts measure, once enough is reachable. There must be room between sampled and perfect success,
//     and greedy success near 0 shows that training changed what the policy prefers, not only how sure it is.
//
// The result is a pure function of the options: the same seed and demonstrations give the same weights on every
// machine, whatever Workers is.
package pretrain
