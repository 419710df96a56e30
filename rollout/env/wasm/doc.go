// Package wasm runs environments that are WebAssembly modules: the driver of kind "wasm". A module can be written in any
// language that compiles to WASI preview 1, and can do nothing but compute: it sees no file, no network, no clock of the
// machine, no other episode. What it does is the same to the byte on every machine.
//
// # The protocol
//
// A module is a command (it exports _start and memory). It reads requests from standard input and answers each with one
// line on standard output, both JSON in UTF-8. One instance plays one episode; it gets requests in this order:
//
//	{"op":"reset","split":"train","index":7,"task":…}     first; task is there if the package lists the split's tasks
//	  {"messages":[{"role":"user","content":"…"}],"tools":[{"name":"…","description":"…","parameters":{…}}]}
//	{"op":"call","name":"…","arguments":"…"}              any number; arguments are the text that the policy wrote
//	  {"result":"…"}
//	{"op":"score","answer":"…"}                           once, and last
//	  {"reward":1,"components":{"name":0.5}}
//	{"op":"solve"}                                        after reset, when the environment is checked, never in a rollout
//	  {"calls":[{"name":"…","arguments":"…"}],"answer":"…"}
//
// Any request may be answered with {"error":"…"}: the environment itself failed. Fields that are not named here are
// errors. A module reads the next request only after it has answered, and may end when its input does. Its standard
// error is for its author: the end of it is in errors.
//
// # What a module has
//
//   - steps: as many as the manifest's limits.steps for each request, counted from one answer to the next, for the first
//     from the module's start on. Package meter defines them. A call of a host function costs 256 steps, and one more for every 8 bytes that it moves.
//   - memory: limits.memory_bytes, rounded down to pages of 64 KiB. Growing beyond fails inside the module.
//   - calls inside one another: a depth of 1048576 as package meter counts.
//   - answers of at most 1 MiB.
//   - a clock that starts at 2022-01-01T00:00:00Z, moves 1 ms with each reading, and moves on at once when the module sleeps.
//   - random bytes: C2SP chacha8rand (the generator of math/rand/v2) with the seed sha256("lightswarm/environment/random/1" || 0x00 || split || 0x00 || index), index
//     as 8 bytes, big-endian. So they are the task's, and the same in every version of the environment.
//   - no arguments, no variables, no files, no sockets.
//
// # Containment
//
// Instances run in one child process for each environment, started by Options.Command, which calls Work. Besides the
// module's own limits, which end its instance alone, the child has limits on its memory and files, and is killed when a
// request takes far longer than its steps can. Whatever happens there is a *Failure of the episodes concerned; the next
// episode finds a new child. Compiled modules are kept in Options.Cache.
package wasm
