// Package block moves content-addressed blocks between peers by pulling them, over /lightswarm/block/1.
//
// # Protocol
//
// A stream carries requests one way and answers the other, each a varint length followed by a protobuf message.
// The client sends BlockRequest messages, each with 1 to wire.MaxBlockRequestCIDs CIDs, without waiting for answers: requests
// are pipelined. The server answers every CID of every request in the order asked: a BlockHeader with the CID's
// index in its request and, when found, exactly that many bytes of block. Either side may close or reset the stream
// at any time; a client that still waits asks another peer.
//
// # What holds
//
//  1. A block is at most wire.MaxBlockBytes. Its size is checked before memory is set aside for it.
//  2. A block's bytes are hashed and compared with its CID before anybody sees them: the caller, the store, other
//     peers. A peer that sends other bytes is reported through Options.Misbehaved.
//  3. A peer that lacks the block or fails costs the time until then, and one that is silent a few seconds, after which
//     the next candidate is asked besides. Candidates are the caller's hints, then other members in random order; a peer
//     that was silent or failed comes after the others for a while, so that many fetches do not wait for it one by one.
//  4. One CID is fetched once however many callers ask for it at the same time.
//  5. A server holds a bounded number of blocks in memory, whatever its peers ask for.
//
// A Store must be safe for concurrent use. An Exchange owns its goroutines; Close waits for them.
package block
