// Package conformance holds the gateway to the agent libraries that people use, unmodified and at fixed versions.
//
// Each program in python and javascript is an agent as one would write it for its library's vendor: it knows nothing
// of Lightswarm and gets there by OPENAI_BASE_URL and its like alone. All play the same scenes with a scripted policy
// and print what they got, one JSON object a line:
//
//	plain    a question and its answer
//	stream   the same, as events; with the usage where the library asks for it
//	tools    a question that the policy answers after two tool calls in one message, whole and streamed
//	turns    a further question in that conversation, which takes one more call
//	error    an error that is not to be tried again
//	retry    an engine that fails once: the library tries again
//	late     an engine that fails when the stream has begun
//	slow     a client that gives up waiting and asks again: it gets the answer of its first call
//
// The test compares what they print, how often they asked the policy, and what was sampled from: each prompt of a
// conversation begins with the exact tokens of the one before it and of its completion, however the library wrote
// them down in between.
//
// Structured output is not a scene: the engine does not enforce a schema.
//
// The test has the build tag sdks, because it needs what scripts/checks/sdk-conformance installs.
package conformance
