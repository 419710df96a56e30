package draw

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/lightswarm/lightswarm/wire"
)

// Task is what a draw chose.
type Task struct {
	Environment wire.CID
	// EnvironmentIndex is the environment's position in the charter.
	EnvironmentIndex int
	// Split is wire.SplitTrain.
	Split string
	// Index is the task's number in the split.
	Index uint64
}

// Train returns the task of a peer's training draw. A peer's counters are consecutive. The charter
// must be valid.
func Train(network wire.CID, c *wire.Charter, version uint64, peer wire.PeerID, counter uint64) Task {
	s := newStream(newKey("lightswarm/draw/task/1").cid(network).uint64(version).peer(peer).uint64(counter).sum())
	var total uint64
	for _, e := range c.Environments {
		total += uint64(e.Weight)
	}
	r := s.below(total)
	for i, e := range c.Environments {
		if r < uint64(e.Weight) {
			return Task{
				Environment:      e.Manifest,
				EnvironmentIndex: i,
				Split:            wire.SplitTrain,
				Index:            s.below(e.TrainTasks),
			}
		}
		r -= uint64(e.Weight)
	}
	panic("draw: a charter without environments")
}

// TrainKey returns the key of the stream that samples one call of one member of a training group; call counts the
// rollout's calls from 0.
func TrainKey(network wire.CID, version uint64, peer wire.PeerID, counter uint64, member, call uint32) [32]byte {
	return newKey("lightswarm/draw/sample/train/1").
		cid(network).uint64(version).peer(peer).uint64(counter).uint32(member).uint32(call).sum()
}

// EvaluateKey returns the key of the stream that samples one call of a held-out task. It does not depend on the peer:
// whoever measures a version gets the same rollouts.
func EvaluateKey(network wire.CID, version uint64, environment wire.CID, task uint64, call uint32) [32]byte {
	return newKey("lightswarm/draw/sample/evaluate/1").
		cid(network).uint64(version).cid(environment).uint64(task).uint32(call).sum()
}

// keyHash collects the fields of a key; doc.go has the encoding.
type keyHash struct{ input []byte }

func newKey(label string) *keyHash { return &keyHash{append([]byte(label), 0)} }

func (k *keyHash) cid(c wire.CID) *keyHash {
	k.input = append(k.input, c.Bytes()...)
	return k
}

func (k *keyHash) peer(p wire.PeerID) *keyHash {
	k.input = append(k.input, p...)
	return k
}

func (k *keyHash) uint64(v uint64) *keyHash {
	k.input = binary.BigEndian.AppendUint64(k.input, v)
	return k
}

func (k *keyHash) uint32(v uint32) *keyHash {
	k.input = binary.BigEndian.AppendUint32(k.input, v)
	return k
}

func (k *keyHash) sum() [32]byte { return sha256.Sum256(k.input) }
