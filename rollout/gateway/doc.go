// Package gateway is the HTTP endpoint through which an agent, in any language and framework, reaches the policy: it
// speaks the APIs that agents already speak, and records nothing itself; what it asks of the policy goes through an
// agent.LLM, which does.
//
// The contract:
//
//  1. A Gateway listens on loopback for a whole node. Each rollout opens a Session, which a request names by the path
//     (/rollout/ID/v1/…), by its API key or by a header. No request reaches another rollout's policy.
//  2. Each dialect (Chat Completions, Responses, Completions, Messages) is a pair of pure functions: decode a body into
//     a request, encode answers into bodies or events. What happens in between is the same for all of them.
//  3. Unknown fields, unknown models and sampling parameters never fail a request. Sampling is the network's choice.
//  4. A request that a client marks as a retry, with the same body, gets the answer of the first, or joins it while it
//     runs. The same body without the mark is a new sample. A client that goes away does not end its call.
//  5. Errors are JSON in the dialect's form, with the true status. After its end a session answers 409 with
//     x-should-retry: false.
//  6. Bodies are bounded before they are read. Shutting down waits for what runs, until the context ends.
package gateway
