package store

import (
	"encoding/binary"

	"github.com/lightswarm/lightswarm/wire"
)

// A key is a tag and what the table says. Integers are big-endian, so that keys sort as numbers do; a CID is its 36
// binary bytes; a peer is its length in one byte and its binary id; a set's name ends with a zero byte.
const (
	tagMeta         = 'A' // name                → see meta.go
	tagBlock        = 'B' // cid                 → the block's bytes
	tagBlockInfo    = 'C' // cid                 → order u64, bytes u32
	tagBlockOrder   = 'D' // order u64           → cid, for unpinned blocks only
	tagPin          = 'E' // cid, set            → nothing
	tagPinSet       = 'F' // set, cid            → nothing
	tagRelease      = 'G' // version u64         → signed bytes
	tagAnnouncement = 'H' // peer, sequence u64  → signed bytes
	tagArrival      = 'I' // arrival u64         → key of an announcement of another peer
	tagGroup        = 'J' // order u64           → record
	tagGroupOrder   = 'K' // cid                 → order u64
	tagCheckpoint   = 'L' //                     → checkpoint
	tagLedger       = 'M' // version u64         → checkpoint without its state
	tagDraw         = 'N' // counter u64         → policy version u64, for reserved draws that are not done
	tagCursor       = 'O' // peer                → sequence u64
	tagEvaluated    = 'P' // version u64         → checkpoint with those of the ledger's bundles alone that are evaluations
	tagPackage      = 'Q' // cid, peer           → signed bytes of the peer's statement about the environment package
)

// key joins a tag and fields to a database key.
func key(tag byte, fields ...[]byte) []byte {
	k := []byte{tag}
	for _, f := range fields {
		k = append(k, f...)
	}
	return k
}

// uint64Field is an integer in a key or a value.
func uint64Field(v uint64) []byte { return binary.BigEndian.AppendUint64(nil, v) }

// peerField is a peer in a key.
func peerField(p wire.PeerID) []byte { return append([]byte{byte(len(p))}, p...) }

// setField is a pinned set's name in a key.
func setField(name string) []byte { return append([]byte(name), 0) }

// after is the first key that does not have the prefix. A prefix here starts with a tag, so there is one.
func after(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; ; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
}
