// Package node is one peer of a network: it wires identity, store, p2p, policy engine, rollout worker and learner
// together. It is the only package that knows them all; what decides anything lives in theirs, or in a pure state
// machine of this one (chain, evaluations).
//
// # What flows where
//
//	release        p2p handler → chain (is it the network's next?) → store → policies (fetch, verify, load, swap)
//	policy         policies → engine session → worker; a release that was missed is jumped over, never replayed
//	bundle         worker → announcer (store, sign, one durable step) → gossip, and to the node's own learner
//	announcement   p2p handler → store (kept for others) → evaluations (claims, so that few measure twice) → learner
//	presence       learner (which blocks have their results) → gossip → evaluations (settled)
//	checkpoint     learner → store (durable) → publisher (blocks, gossip) → policies
//
// # Life of a node
//
// [New] opens the data folder or a store in memory, finds or makes the charter (asking bootstraps for it if it has to),
// opens the engine and listens. [Node.Run] starts, in this order: network, policies, outgoing announcements, presence,
// learner, worker, monitor. It ends when its context does, after [Node.Shutdown], or when a part fails that the node
// cannot go on without. Parts then stop in the reverse order of who feeds whom: worker and learner first, so that what
// they finished still goes out, then the rest. Run returns after everything it started has ended. [Node.Close], which
// every New needs, closes network, API, engine, store and data folder.
//
// Who plays the rollouts is the operator's choice: the built-in agent, or a program that reaches the policy through the
// node's gateway (settings rollout.agent). The player holds both; it is opened before the worker and closed after it.
//
// What it plays, the charter says, within what the operator lets the node run (setting rollout.environments.kinds). A
// rollout node gets the environments that come as packages from members in New, by CID, and Close closes them.
//
// Several nodes live in one process without knowing of one another: the package has no state of its own.
package node
