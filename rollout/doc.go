// Package rollout runs agents in environments against a policy and records what happened.
//
// # From a draw to a bundle
//
// RunGroup is the core: given a network's rules, a pinned policy and a draw (peer and counter) it runs the group's
// rollouts and returns them as a bundle.Bundle. RunEvaluationBlock does the same for a block of held-out tasks,
// independent of who runs it. Both draw tasks and sampling keys from wire/draw and keep nothing between runs, so with
// an exact engine, an exact environment and the built-in agent the bundle is a pure function of (charter, policy, draw):
// whoever has the policy can compute the same bytes, however many rollouts run at once. That is how a bundle is verified.
// With another agent it holds for each call, given its prompt.
//
// A rollout records every call's exact token ids and log-probs, at the place where they are sampled; nothing is
// tokenised a second time. Calls may run at once: each is numbered when it begins, and its sampling key is its number's.
// How it ends becomes its outcome:
//
//	scored       the agent answered, or wrote something malformed, and the environment judged it
//	truncated    a token or call limit ended it; judged as far as it came
//	agent_error  the agent's program failed, or it had prompts that its group's bundle has no room for; says nothing
//	             about the policy
//	env_error    the environment failed, or the agent's program could not be started
//	timeout      the rollout took longer than this node allows
//
// Only scored and truncated carry a reward. A failure of the engine, or the end of the context, is no outcome: no
// bundle comes out, and the counter stays reserved.
//
// # The worker
//
// Worker turns this into a node's role: it takes the newest policy (PolicySource), measures releases that ask for it,
// runs training groups up to the pace that the release or the charter sets, and hands finished bundles over
// (Announcer). Counters are durable and consecutive (Counters), and bound to the policy version that they are reserved
// under: one that was reserved and not announced comes again first after a restart if that version is still the newest,
// else never. A group runs wholly under one policy version.
//
// The package needs no network: these interfaces are declared here and supplied by the caller. FolderPolicies and
// FolderAnnouncer supply them from and to folders.
package rollout
