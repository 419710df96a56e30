// Package gateway is the HTTP endpoint through which an agent, in any language and framework, reaches the policy: it
// speaks the APIs that agents already speak, and records nothing itself; what it asks of the policy goes through an
// agent.LLM, which does.
//
// The contract:
//
//  1. A Gateway listens on loopback for a whole node. Each rollout opens a Session, which a request names by the path
//     (/rollout/ID/v1/…), by its API key (Bearer or x-api-key) or by the header X-Lightswarm-Rollout. Ids and keys
//     cannot be guessed. No request reaches another rollout's policy, and none of a web page in a browser on the same
//     machine any.
//  2. Each dialect (Chat Completions, Responses, Completions, Messages) is a few pure functions: decode a body into a
//     request, encode an answer into a body or events. What happens in between is the same for all of them.
//  3. Unknown fields, unknown models and sampling parameters never fail a request. Sampling is the network's choice.
//  4. A request that a client marks as a retry (x-stainless-retry-count above 0), with the same body, gets the answer
//     of the first, or joins it while it runs; if that failed, it is asked anew. The same body without the mark is a new
//     sample. A client that goes away does not end its call: it is finished and recorded.
//  5. Errors are JSON in the dialect's form, with the true status. Where trying again cannot help they carry
//     x-should-retry: false: after the rollout's end (409 rollout_ended), when its calls are used up (409
//     calls_exhausted), when the conversation leaves no room for a completion (400 context_length_exceeded). A failure
//     of the engine is 503. A body is read before it is refused, for clients that read nothing before they have written.
//  6. Bodies are bounded before they are decoded, in size, depth and number of values, and so are a session's requests
//     and the calls that run without their clients. Ending a session waits for the calls that run; shutting down waits
//     for all of them, until the context ends.
//
// # The agent's name
//
// A call is made as the role that the path (/rollout/ID/agent/NAME/v1/…), the header X-Lightswarm-Agent or the model id
// (policy/NAME) names, in this order, else as the environment's first. A name that the environment lacks is an error.
// Every other model id is the policy too: agents have gpt-4o written in them.
//
// # What an agent sees, and what is recorded
//
// A completion is recorded as it was sampled: it ends at a stop token or at the network's limit, which is what a
// bundle can say and a verifier checks. What a request asks beyond that shortens only what the agent sees:
//
//	stop                        the text before the one that is complete first; the recorded completion is whole. Only
//	                            the text of an answer is searched, not the arguments of its calls. Usage counts the
//	                            tokens up to the stop
//	max_tokens                  the text of so many tokens, with finish_reason length
//	parallel_tool_calls: false  the first call
//	tool_choice: none           the prompt lists no tools, and a call that is written all the same is text
//	n                           so many calls of the rollout, one after the other; at most 16
//
// Of n samples the agent sees all that are recorded: where the rollout has fewer calls left the answer has fewer choices,
// and where the engine fails in one, the retry goes on with those before it. Only those that are not of a form that could
// not be enforced are left out; an answer without any other is the error below.
//
// A message that was shortened comes back without its tokens: the next prompt says what the agent says, in text. One
// that was not gets the tokens that it was sampled as, however a framework has written it anew (see history), so that
// the next prompt continues what was sampled, exactly. Of the calls of a message of which one has arguments that are no
// JSON object, the Messages API can show only the text, and that is what the next prompt says.
//
// Of a completion that is no message the agent sees the text, special tokens spelled out, with finish_reason stop.
//
// Of a tool's JSON schema the policy reads all but titles, the draft that it is of, and descriptions that repeat a
// property's name: frameworks add them to what they make of a function, each in its own way.
//
// Answers are sampled whole before a stream's first delta. Sampling parameters are recorded with the call, in the same
// words for all dialects (see asked), and not followed.
//
// # The form of an answer
//
// What a request demands of an answer's form is enforced while it is sampled, with the built-in engine: only tokens that
// can lead to the form are drawn from (package policy/grammar), and the bundle says so. Where a call may have fewer tokens
// than the shortest answer of the form takes, the answer is cut, with finish_reason length; else it is whole.
//
//	response_format json_object      a JSON object, or calls if tools are listed
//	response_format json_schema      JSON by the schema, strict or not, or calls if tools are listed
//	tool_choice required             at least one call, without a text
//	tool_choice with a name          one call of that tool, without a text
//	a strict tool, no other demand   a text and calls, whose names are of listed tools and whose arguments are by their schemas
//
// Wherever tools can be called in one of these, arguments are by the tool's schema; of a tool that is not strict and whose
// schema cannot be enforced they are any JSON object. With parallel_tool_calls false there is at most one call. JSON is
// written compactly, members in the schema's order. A text with a strict tool may still be cut.
//
// A demand that cannot be enforced, because the engine is another one or a schema has a keyword that package grammar does
// not support, is passed on as one that a policy may have learned to fulfil. An answer that does not fulfil it is 400 with
// code unsupported; its call is recorded like any other. What is no JSON schema at all is 400 before anything is sampled.
//
// # Rewards
//
// POST …/v1/reward {"reward": 0.5, "components": {"style": 1}} posts the agent's own judgement, the last one counts.
// It is in the session's Summary; what it is worth is for whoever opened the session to decide. So does an event of type
// reward, {"event_type": "reward", "data": {"value": 0.5}}, that an agent of Agent Lightning 1.0 posts (see lightning.go).
//
// # Telemetry
//
// POST …/v1/traces takes exports of OTLP/HTTP. When the session ends, the spans are joined to its calls by the ids of
// its answers (package telemetry), and become the Summary's Feedback: the roles of calls that named none, rewards, and
// what came of tools. A reward of the whole rollout that was posted counts before one of the spans. Metrics, logs,
// and whatever comes after the end are answered as if taken, and dropped. Errors are in OTLP's form.
package gateway
