// Package openenv runs environments that are OpenEnv servers: the driver of kind "openenv". The package says how an agent
// meets such an environment (Spec), the owner of the node where its server is (Options.Servers). The server is no part of
// the package, and nothing contains it: whoever names it has started it.
//
// # An episode
//
// Each episode has a WebSocket of its own, which to OpenEnv is an environment of its own. Reset sends the task's arguments;
// what the server observes then is what the agent starts from. A tool's call is a step, and so is the final answer, if the
// Spec says where it goes. Rewards of steps are added up, or the last one counts. What the server ended is not stepped any
// more. The agent sees what Spec.Observe names, never rewards, and never metadata that is not named.
//
// Two executions of a task have to begin alike, so that a server has to heed the seed or the arguments that it is reset with.
// Nothing makes two servers agree, so determinism is stochastic.
//
// # Whose fault
//
// An action that the server does not accept for what the agent put into it is the agent's: a tool's result says why, and an
// answer gets the smallest reward. All else that goes wrong is a *protocol.Failure, so that the rollout's outcome is
// env_error: the server cannot be reached, ends, is late, answers what is no answer, reports an error, refuses what the Spec
// rather than the agent put into an action, or ends an episode without a reward.
//
// # The connection
//
// Replies have no numbers: a late one would be taken for the reply to what is asked next. So one thing is asked at a time, a
// connection is thrown away whenever a reply is late or comes unasked, and no episode goes on with another. Only a beginning
// is tried again: until Options.Patience is over if the server cannot be reached or plays as many episodes as it can.
// Messages have at most 1 MiB, a reply limits.steps milliseconds. At its end an episode tells the server and waits a little
// until the server has let go of it, so that its place is free for the next.
package openenv
