// Package gossip spreads a network's signed records: releases, announcements and presence, each on a topic of its own,
// /lightswarm/<network id>/<kind>/1, by GossipSub.
//
// # What holds
//
//  1. A record is passed on only after it was opened: size, encoding, signature, network, and for releases that a
//     learner of the charter signed it. What fails is rejected, and the peer that passed it on loses score, because an
//     honest peer checks the same before it passes anything on.
//  2. What depends on the state of this node (seen before, stale, a version that is not known here yet, too much at
//     once, a newer format) is ignored: not passed on, not handed over, and held against nobody.
//  3. Every verdict is counted by kind and reason.
//  4. Gossip loses messages. Memory remembers what each peer is known to have announced, so that what was lost can be
//     pulled.
//
// GossipSub's own signatures are off: a record carries its author's signature inside, which outlives the hop, so
// another one would cost a hundred bytes and a verification per hop and prove less. The message id is
// sha256(topic || data), so that the same record from two peers is one message.
package gossip
