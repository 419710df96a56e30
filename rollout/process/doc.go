// Package process plays rollouts with an agent that is a program of its own, in any language: it starts one process
// for each rollout, which reaches the policy through a gateway session.
//
// The contract:
//
//  1. The task is the text of the episode's last user message. It is the program's standard input, and the variable
//     TASK unless it is longer than 64 KiB or has a zero byte. The episode's tools are not the program's: it has its
//     own.
//  2. The answer is what the program has written to its standard output when it exits with status 0, without white
//     space around it. The end of its standard error, up to 8 KiB, goes into the log and the error.
//  3. The environment is PATH and LANG of the node, HOME, TMPDIR, the command's own entries, what the session needs
//     (gateway.Session.Environ), LIGHTSWARM_ROLLOUT and TASK; later entries override earlier ones. Nothing else of the
//     node's is inherited. Working folder, HOME and TMPDIR are empty folders that are removed after the rollout.
//  4. A program may not outlive its rollout. Its process group gets SIGTERM the grace before the context's deadline, or
//     half way to it if that is later, and SIGKILL at the deadline. When the context ends otherwise it gets SIGTERM
//     then, and SIGKILL a grace later. After every run all that the program has started and not ended is killed.
//
// How a program ends decides what its rollout is:
//
//	exit status 0                     Answered; an answer above the bound is an error. One that was asked to end has to
//	                                  say something: silence is then no answer
//	otherwise, the context has ended  the context's error (outcome timeout)
//	otherwise, a call was refused     Exhausted, or Cut if the conversation left the model no room (truncated); unless
//	                                  a call that began later was answered
//	otherwise                         an error with the exit status and the end of standard error (agent_error)
//
// A program that cannot be started, which is also one whose preloaded modules cannot be imported, is an
// agent.EnvironmentError (env_error): nothing follows from it about agent or policy. An evaluation counts an agent_error
// as a task that was not solved, and this as none.
//
// A failure of the engine is in the error as text alone: whoever records the calls knows whether one that failed was
// repeated, and with it whether the rollout is to be given up.
//
// # Preloaded modules
//
// An interpreter that starts anew for each rollout may spend most of the rollout with imports. With Command.Preload
// it has them behind it when a rollout begins. How depends on the interpreter.
//
// # Python
//
// One interpreter imports the modules and forks for each rollout, which takes milliseconds. The fork looks as if the
// interpreter had just been started with the script: sys.argv, sys.path, __main__, os.environ, standard streams,
// signal handlers, event loops and the seeds of random and numpy are its own, and so is all else that it changes.
// It differs in that modules have the state that importing them has led to, with the command's environment and what sessions'
// have in common (gateway.Environ); in that string hashes are seeded once for all; and in that threads which an import starts
// are missing, which the log warns of. At its end what is registered for the interpreter's exit runs and files are flushed, but
// no other object that still exists is finalized: Python promises no more, and it would write to all of the memory that forks
// share.
//
// Some libraries do much with their first call that later ones find done. Of those that were imported, openai (which
// LangChain, OpenAI's Agents SDK and AutoGen call too) makes one call of each API before the first fork, to a transport in
// memory. And SSL contexts read the certificates of the system when they are first needed: every client has a context, and
// none needs them to reach the gateway. Agents cannot tell either but by the time that it saves.
//
// An interpreter that dies is started again, with growing pauses while nothing comes of it. Agents that it had
// forked go on, and a rollout that it had not come to fork for begins again, once.
//
// # Node.js
//
// Node cannot fork. So processes are started ahead: each imports the modules and then waits, standing still, for the one
// rollout that it plays, in the folders and with the standard streams that are that rollout's. As many wait as there are
// processors, and no more than may run at once; when one is taken the next is started. A rollout begins in milliseconds
// where one is ready, and waits for the next where none is: a node whose processors have nothing else to do gains the time
// of the imports, one that is busy with them gains nothing. No two rollouts share a process, so there is nothing to clean.
//
// The script is run by Node itself, and modules are those that it would find itself, in the form that its own kind of module
// gets. Imports see the rollout's environment, for the access of its session is reserved when its process is started. A rollout
// differs from one whose process was just started in that its imports saw no TASK; in that what they put off, such as timers, may
// happen before the script's first line; in that the process has run for a while (process.uptime, performance.now); and in that a
// script in CommonJS has no module.parent, and its path for module.id.
//
// A process that dies while it waits is replaced; one that does not begin its rollout is killed, and the rollout begins again,
// once, with another. While imports fail, starts pause for longer and longer.
//
// # WebAssembly modules
//
// A program whose name ends in .wasm is a module of WASI preview 1. It is compiled once, in a process of its own, and each
// rollout is a process that runs what was compiled. Package module says what a module has: the contract's streams, variables
// and arguments, memory, clocks, random bytes, and connections to its session. It has no files, so that working folder, HOME
// and TMPDIR are of no use to it, no other connections and no processes, and nothing of it can escape.
//
// # What can escape
//
// Other programs are in no sandbox. A program may do all that the node's user may: read the node's files, use the network, fill memory
// and disk, kill processes. Of what it starts, after its end there is left:
//
//	Linux                   a process that has left the group and was started with an environment without
//	                        LIGHTSWARM_ROLLOUT, or lets nobody read it, or does not stop to fork for a hundred rounds
//	                        of search
//	Linux, Python, Preload  nothing, unless it does not stop to fork for 10 seconds, runs as another user, or the
//	                        program kills or stops its guard: a process between interpreter and agent whose children
//	                        all of its descendants become, and which is for one agent after the other
//	elsewhere               a process that has left the group; also with Preload in a Python without ctypes
//
// What the import of a module starts in a session of its own is left when its Python has ended.
//
// When the node itself is killed, programs die with it on Linux, but not what they have started. With Preload in Python a
// guard sees the end and kills all. Elsewhere programs that run on their own go on. Folders are left in Scratch.
package process
