// Package store is a node's durable state: one database that holds everything a node must not lose, and the blocks
// that it keeps for itself and for others.
//
// # What it holds
//
//	blocks         bytes by CID, bounded: unpinned ones make room for new ones, oldest first
//	pins           named sets of CIDs whose blocks are never removed
//	releases       signed bytes by version, and the head
//	announcements  signed bytes by peer and sequence: the node's own and, bounded, other peers'
//	draws          the rollout worker's draw counters: the next, and the reserved ones with their versions
//	groups         a learner's accepted bundles, in order, and the marks of those that were consumed
//	checkpoint     what a learner continues from, with its release, and a ledger entry for every step
//	peers          addresses of members, for the next start
//	packages       signed statements about the environment packages that the node keeps for others
//
// # What callers rely on
//
//  1. A method that returned nil has made its change durable, except where its comment says that the change is kept
//     lazily: then a crash may undo it, together with the lazy changes after it, but never a durable change.
//  2. A change is made wholly or not at all, also across the kinds above: [Store.Announce] stores a bundle, pins it,
//     and takes the announcement's sequence number in one batch; [Learner.Commit] replaces the checkpoint, marks what
//     was consumed and adds the release in one batch.
//  3. What members are told of is durable: [Store.Head], [Store.Releases], [Store.NextSequence], and [Store.Announcements]
//     of the node itself, leave out a record until it is. So no crash makes a node forget one that others have.
//  4. Concurrent durable changes share a sync of the log.
//  5. Once the disk fails a write, the store takes no more changes ([ErrFailed]): nothing is confirmed that might be lost.
//     So it is once it meets damage ([ErrCorrupt]), which is an error for whoever reads what is damaged;
//     a file that is missing or cut short is an error of Open.
//  6. Every method is safe for concurrent use, and none may be called after Close.
//
// A database belongs to one network (see [Store.Bind]) and has a schema number; a newer one is refused with
// [SchemaError], never misread.
package store
