// Package lightning plays rollouts with runners of Agent Lightning 0.3 (the Python package agentlightning), as they are:
// it speaks the API of that version's LightningStore, of which runners are clients, and the OTLP route that its tracers
// export to.
//
// The contract:
//
//  1. Each Run is a rollout in a queue. A runner that asks for work gets it, as an attempt with a lease, with the text of
//     the episode's last user message as its input, and with resources of its own: main_llm, whose endpoint and key are
//     those of a gateway session that is open for this attempt alone. It runs its agent, exports spans, and says how the
//     attempt ended.
//  2. The answer is the last text that the policy answered with, without tool calls: such an agent has no other. Its
//     reward, that it returns or emits, is in the result's Feedback, with all else that the spans say (package
//     telemetry); the environment's manifest says what of it counts.
//  3. The end of an attempt counts once. What comes of an attempt that has ended, or is not its rollout's last, changes
//     nothing: its status is refused (409), its spans are dropped, its resources are null, its calls get 409 from the
//     gateway.
//  4. A runner is alive while its calls run, and gives a sign with each call, span, number for a span, status, and
//     heartbeat of its worker. One that gives none for the lease is lost, as is one that does not fetch its resources
//     within 15 seconds. If it had made no call, the rollout is handed out again as a new attempt, up to 3 in all.
//  5. The endpoint listens on loopback, and takes no request without its key. Clients of 0.3 know no keys, but send those
//     of a URL: http://lightning:KEY@127.0.0.1:PORT. Bodies, spans, numbers and what is remembered are bounded.
//
// How an attempt ends decides what its rollout is:
//
//	succeeded                            Answered
//	failed, after a call was refused     Exhausted, or Cut if the conversation left the model no room (truncated); unless
//	                                     a call that began later was answered
//	failed otherwise                     an error (agent_error)
//	the runner is lost after a call      an error (agent_error)
//	3 runners are lost without a call    an agent.EnvironmentError (env_error)
//	the context ends first               the context's error (outcome timeout); the time spent waiting for a runner counts
//
// A runner cannot be told to stop: an agent that goes on after its rollout has ended finds its calls refused, and the
// runner then asks for other work.
//
// Not served are the parts of the store by which algorithms, not runners, work: enqueuing, searching, waiting, resources of
// other kinds (prompt templates). A node draws its tasks itself.
package lightning
