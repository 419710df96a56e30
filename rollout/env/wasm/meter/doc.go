// Package meter rewrites a WebAssembly module so that what it computes, and how much of it, is the same on every
// machine. Rewrite is a pure function of the module and the limit of depth:
//
//   - Steps: every instruction costs one step. A run of instructions without a branch is paid for before it begins; what
//     is left is in an exported global, Steps. Filling and copying memory or tables costs one more step for every 8 bytes
//     or elements, growing memory 8192 for every page. At the start of every function and of every turn of a loop, and
//     before it fills or copies, the module asks its host if what is left is below zero: it calls its import fd_read with
//     the descriptor Yield. The host adds steps, or ends the module, after the same instruction everywhere. A host that
//     adds few at a time can also do what it has to do now and then, and give up a module that nobody waits for.
//   - Depth: every call costs 16 and one more for each parameter and local of the callee while it runs. A function traps
//     at its start if that is above the limit, before any machine's own stack runs out, unless functions keep hundreds of
//     values in each call, which are not counted.
//   - Not-a-number: the result of every arithmetic floating-point instruction that is not a number becomes the one
//     canonical not-a-number, since processors differ in which they give.
//
// It also joins data segments that lie close to one another, so that instances of modules that have many begin sooner.
//
// It accepts core modules of WebAssembly 2.0 that import functions alone, fd_read among them. It counts nothing of what
// these do: hosts charge for it. It refuses shared memories, growing tables, exceptions, tail calls, and everything newer, with an error
// that says what to change. It does not check types: whoever compiles the result does. But indices that would reach what
// it adds are refused, so that no module can touch its own meter.
package meter
