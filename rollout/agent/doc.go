// Package agent holds the built-in agent: the control flow between a policy and an environment's tools.
//
// An agent is pure control flow. It reaches the policy through the LLM interface and the environment through its
// Episode, and keeps nothing between runs. What its policy writes is the policy's responsibility, so Run reports how a
// conversation ended, never as an error:
//
//	End        what happened                                            outcome of the rollout
//	Answered   the policy answered in text                              scored
//	Malformed  a completion is neither text nor well-formed tool calls  scored, with the empty answer
//	Cut        a completion reached its token limit                     truncated, with the empty answer
//	Exhausted  the policy wanted more calls than the rules allow        truncated, with the empty answer
//
// A malformed completion is scored and not called an agent error: agent_error is for an agent's program that crashed,
// which says nothing about the policy, whereas a policy has to be trained out of malformed output. The environment
// judges what was reached with the empty answer, which for a plain question is its lowest reward.
//
// An error from Run is a failure around the agent: of the LLM (returned as it is) or of the environment (wrapped in
// an EnvironmentError, as is that of starting an agent which is a program). Neither is ever reward 0.
package agent
