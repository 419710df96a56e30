// Package testnet runs a whole network on one machine, from founding to report, with the code that real nodes run.
//
// [Run] founds a network, starts one learner and some rollout nodes, watches until the chain of releases is final and
// measured, stops everything in order and writes a run folder. The nodes share the process, each with its store in
// memory, or are processes of their own with their own data folders. Both are watched through the same events. Processes
// get the flag --end-with-input and a pipe as standard input, so that they stop when this process ends in any way.
//
// A [Collector] turns events into the figures of a report. It is a state machine without I/O; whoever shows a running
// node can use it too.
//
// A seed fixes the nodes' keys, the network and so every task and every sampled token of a given draw. What groups
// a training step takes depends on which arrive first, so two runs of one seed resemble but do not repeat each other.
package testnet
