// Package wasm runs environments that are WebAssembly modules: the driver of kind "wasm". A module can be written in any
// language that compiles to WASI preview 1, and can do nothing but compute: it sees no file, no network, no clock of the
// machine, no other episode. What it does is the same to the byte on every machine.
//
// A module is a command (it exports _start and memory). It speaks package protocol; one instance plays one episode.
//
// # What a module has
//
//   - steps: as many as the manifest's limits.steps for each request, counted from one answer to the next, for the first
//     from the module's start on. Package meter defines them. A call of a host function costs 256 steps, and one more for every 8 bytes that it moves.
//   - memory: limits.memory_bytes, rounded down to pages of 64 KiB. Growing beyond fails inside the module.
//   - calls inside one another: a depth of 1048576 as package meter counts. Functions that keep hundreds of values in each
//     call may come to the end of the engine's stack before, at some 80 MB, or 2000 calls where modules are interpreted. Of
//     all limits this alone is not the same everywhere.
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
