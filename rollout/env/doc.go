// Package env defines what an environment is: a package of tasks, tools and scoring.
//
// The contract, for those who write an environment and those who run one:
//
//  1. An environment is identified by the CID of its manifest. Its tasks are numbered within splits; a task is a pure
//     function of split and index, so any peer can run the same problem again.
//  2. Reset starts one execution, an Episode. Episodes are independent: many run at once, each used by one goroutine.
//  3. A tool that dislikes its arguments answers with text, which the policy gets to read. An error from an Episode
//     means that the environment itself failed: the rollout's outcome is then env_error and it is never trained on.
//  4. Score is asked once, when the agent has ended. It gets the empty answer if the agent did not come to one, and
//     judges what was reached. Rewards are finite and within the manifest's range.
//  5. Where the manifest says that determinism is exact, the same actions give the same bytes on every machine.
//
// Check tests these promises with an oracle and a null player.
//
// An episode may say how its task is solved (Solver), and how it would be done by a wrong habit (Habitual), or what a policy
// should answer to each call of whatever agent (Replier). Nobody asks that in a rollout: it is for checks, and for
// demonstrations from which a first policy learns.
//
// # Packages
//
// Anybody can contribute an environment: a Package is a manifest and files, all named by the manifest's CID. A Driver
// runs packages of one kind; Drivers choose by kind. Those built into the program are behind the same interface
// (Builtin). An environment that comes as a package says itself how its tasks are solved (Solver), so that whoever is to
// run it can check it first; but for those that are servers, which existed before.
package env
