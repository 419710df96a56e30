// Package discovery finds members of a network and keeps connections to them.
//
// A Source finds addresses; there are five, and a node works with any subset of them:
//
//	Bootstrap  addresses that the operator gave
//	Cached     addresses that worked before a restart
//	MDNS       the local network
//	Kademlia   a distributed table that only this network's members form; its rendezvous is the network id
//	Exchange   asking connected members, over /lightswarm/peers/1
//
// The Dialer turns what they find into connections: it keeps dialling learners and bootstraps for as long as it runs
// and dials others while the node has fewer connections than it wants, with back-off for each peer.
//
// Addresses are hints. A wrong one costs a failed dial and nothing else, because a connection proves the peer id it
// was dialled for.
package discovery
