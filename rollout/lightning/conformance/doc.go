// Package conformance holds the endpoint for runners to the Python package agentlightning, unmodified and at a fixed version,
// and the gateway to agents that were written for its version 1.0.
//
// The programs in python are what a user of Agent Lightning has: they know nothing of Lightswarm. Real groups of the
// built-in environment are played by them with the built-in policy, and each program prints, one JSON object a line, what it
// saw and what reward it gave. The test compares that with the bundles, rollout by rollout: texts of the calls, rewards of
// the rollout and of calls, outcomes.
//
//	trainer.py function    a function that returns its reward, under AgentOpsTracer, in two runner processes of Trainer
//	trainer.py agent       a LitAgent that emits rewards with several parts and for single calls, under OtelTracer
//	trainer.py broken      a function that fails after its call
//	agent_v1.py            a program for version 1.0: two URLs and a key from its environment
//
// The test has the build tag sdks, because it needs what scripts/checks/agentlightning-clients installs.
package conformance
