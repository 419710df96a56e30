// Package p2p connects a node with the other members of its network: it finds and keeps peers, spreads signed records
// and pulls those that were lost, and moves blocks.
//
// A Network is made of five parts, each a package of its own:
//
//	discovery  finds members and keeps connections to them
//	gossip     spreads releases, announcements and presence, and judges every record
//	head       answers what a node knows beyond a cursor, so that nothing that gossip lost stays lost
//	block      fetches and serves blocks by CID
//	packages   asks who keeps which environment packages
//
// This package builds the libp2p host, decides whom to pull from and when, and hands what passed every check to the
// node's handlers.
//
// # What a node can rely on
//
//  1. Handlers only see records of this network that were opened and verified; releases are signed by a learner of
//     the charter. They see a record once. Two exceptions: a release again until Head covers its version, and an
//     announcement again after a restart, or after thousands of other peers were heard of, unless Cursor covers it.
//  2. With Collect, every announcement that any connected member keeps arrives, whatever gossip loses: gaps are seen
//     by the sequence numbers in announcements and signs of life, and pulled from their author or from others.
//  3. A block is verified before it is stored, served or returned.
//  4. Nothing that a peer sends makes this node use unbounded memory, and nothing it withholds makes it wait without
//     a deadline. Whatever is refused is counted under a reason.
//  5. Close returns after every goroutine of this module has ended.
//
// # What it relies on
//
//  1. Head and Blocks answer quickly and reflect what the handlers were given once these returned: a node that keeps
//     a release only later is handed it again.
//  2. A node publishes presence now and then (every 30 s or so) with the sequence of its next announcement.
package p2p
