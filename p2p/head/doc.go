// Package head pulls what gossip may have lost, over /lightswarm/head/1: a network's releases from a version on, and
// the announcements of named peers from a sequence on.
//
// # Protocol
//
// A stream carries HeadRequest messages one way and one HeadResponse for each the other way, every message a varint
// length followed by its protobuf encoding, at most MaxRequests per stream. A response holds Signed bytes exactly as
// they were stored, within the limits of the request and of this package. A peer of another network answers
// known_network = false and nothing else.
//
// The package moves bytes within bounds and does not open them: whoever pulls verifies every record with the same
// rules as a gossiped one.
package head
