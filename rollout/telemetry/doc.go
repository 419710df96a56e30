// Package telemetry reads what an agent's instrumentation exports by OpenTelemetry, and says what it means for the calls
// of a rollout: which agent made them, what came of the tools that they called, and which rewards they were given.
//
//	bytes ── Decode ──► spans ── Trace.Add ──► one rollout's spans ── Trace.Read ──► Reading
//
// The contract:
//
//  1. Decode reads the body of an OTLP/HTTP export of traces, in protobuf or JSON, compressed with gzip or not. Bodies are
//     bounded after decompression, and in the number of their parts, before anything is made of them. What is wrong with
//     one is a *Fault with the status that exporters understand. Accepted and Fault.Body are the answers.
//  2. Of a span only what matters here is kept, in a few hundred bytes: prompts and completions are not. The policy's
//     tokens come from where they are sampled, never from telemetry.
//  3. A Trace takes every span once, however often it is exported: a span is its trace's and its own id. It holds a bounded
//     number, refuses the rest, and says how many those are.
//  4. Read is pure: the same spans give the same Reading, in whatever order they came.
//
// Nothing here does I/O or keeps goroutines. A Trace has one user at a time; all else is safe for concurrent use.
//
// # Dialects
//
// Instrumentations say the same in different attributes. These are read, whichever of them a span speaks (see dialect.go):
//
//	OpenTelemetry    gen_ai.*, the semantic conventions for generative AI, with gen_ai.evaluation.result events
//	OpenInference    openinference.span.kind, tool.*, agent.name, evaluations.N.evaluation.*
//	OpenLLMetry      traceloop.span.kind, traceloop.entity.name, gen_ai.* and llm.request.type
//	AgentOps         agentops.span.kind, agentops.entity.name, agent.name, tool.*
//	Agent Lightning  spans agentlightning.annotation with agentlightning.reward.N.* and agentlightning.link.N.*
//
// # What a Reading says
//
// A span of a model's call is a recorded call's if its response id is; all other spans find theirs through it.
//
// Agent: the nearest name, from the call's span upwards, that is one of the environment's roles.
//
// Tool: its span failed if its status is an error, or says error.type. The call that called it is that of the tool call's
// id; without one the last that ended before the tool began, of those that share the most of the tree with it.
//
// Rewards: a result of a span's evaluation, or of a span that links to a response or another span, is
//
//	of a model's call    that call's
//	of a tool            the call's that called it
//	of a root, or of the trace or session as a whole: the rollout's
//	of any other span    that of the last call below it
//
// A span that is nothing but a reward (Agent Lightning's, an OpenInference evaluator's) and links to nothing is the rollout's
// if it is the last of them, as there; the ones before reward the call that ended last before them. Of rewards of one span for
// one thing the first is the reward, the others are its components. Of several for the rollout the last counts; that of
// a span that is nothing but a reward counts before all others.
package telemetry
