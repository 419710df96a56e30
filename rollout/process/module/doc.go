// Package module runs agents that are WebAssembly modules: commands of WASI preview 1, in any language that compiles to it.
// It is what happens in the process of one rollout; package process starts that process, and ends it in time.
//
// # What a module has
//
//   - arguments, variables, standard input, output and error, as any other agent.
//   - the time, and random bytes.
//   - MemoryBytes of memory. Growing beyond fails inside the module. Tables, stack and compiled code are the process's, which
//     on Linux ends when it needs more than 1.75 GiB for all.
//   - descriptor 3: a listener, open when it starts, as in socket activation. Preview 1 knows no way to dial; a connection
//     that the module accepts leads to the endpoint that stands in for the model, whatever address the module thinks of. It
//     can accept at any time, until MaxConnections are open. Reads, writes and accepts can be non-blocking, and waited for
//     with poll_oneoff, so that a runtime such as Go's runs its own threads meanwhile.
//
// It has nothing else: no file, no other connection, no process, no signal.
//
// # How it ends
//
// With the exit status that it gives proc_exit, at most 255, or 0 if it returns from _start. A trap is status 2, and the reason
// is written to standard error. Who runs the process bounds its time: SIGTERM, which asks other agents to end, a module does
// not see, and goes on until the process is killed.
package module
