package learner

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/lightswarm/lightswarm/learner/learnerpb"
	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/wire"
)

// Record describes one accepted bundle.
type Record struct {
	CID         wire.CID
	Purpose     wire.Purpose
	Environment wire.CID
	// Peer announced the bundle.
	Peer wire.PeerID
	// Counter is the announcement's: a draw counter for training, a block number for evaluation.
	Counter uint64
	// Version is the policy version that sampled the bundle.
	Version uint64
	// Order numbers acceptances: it is unique, and of two groups of one version the lower is trained on first.
	Order uint64
	// Consumed says that a checkpoint holds what was made of the bundle. The record stays as a mark against
	// duplicates; the bundle's bytes may be gone.
	Consumed bool
}

// Accepted is a bundle on its way into a Store.
type Accepted struct {
	Record Record
	// Bundle is the encoded bundle whose CID the record names. The store does not change it.
	Bundle []byte
}

// Checkpoint is everything that a learner continues from. Committing one is the instant at which a version exists.
type Checkpoint struct {
	Version uint64
	// Release is the encoded signed release of this version.
	Release []byte
	// Trainer is the float32 masters and the optimiser, opaque to the store.
	Trainer []byte
	// Progress is the learner's counters and evaluations, opaque to the store.
	Progress []byte
	// Consumed lists the bundles that this checkpoint used up: those trained on, those dropped, and those whose
	// evaluation results it holds.
	Consumed []wire.CID
	// Oldest is the first version whose records are still needed; a store may forget consumed records of earlier
	// ones.
	Oldest uint64
}

// Recovery is what a Store holds when a learner starts.
type Recovery struct {
	// Checkpoint is the newest committed one; nil before the first. Consumed may be empty in it.
	Checkpoint *Checkpoint
	// Records are in increasing Order: all that are not consumed, and the consumed ones from the checkpoint's
	// Oldest version on. Consumed ones of earlier versions may be among them.
	Records []Record
}

// ErrNotStored says that a store does not hold a bundle: it was never accepted, or it is consumed.
var ErrNotStored = errors.New("bundle not stored")

// Store keeps what a learner accepted and the checkpoints that consumed it. A method that returned nil has made its
// change durable: it survives a kill or a power cut at any later moment; one that returned an error, or did not
// return, has made its change either wholly or not at all. Accept and Bundle may run at the same time as any method;
// Load and Commit are called by one goroutine. Package storetest checks an implementation.
type Store interface {
	// Load reads what is stored. It is called once, before all other methods.
	Load(ctx context.Context) (Recovery, error)
	// Accept adds bundles in one atomic, synced batch. A bundle that is already recorded, consumed or not, is left
	// as it is. The store keeps no reference to the slices.
	Accept(ctx context.Context, batch []Accepted) error
	// Bundle returns the bytes of an accepted bundle that is not consumed, else ErrNotStored. The caller may keep
	// them and does not change them.
	Bundle(ctx context.Context, cid wire.CID) ([]byte, error)
	// Commit replaces the checkpoint and marks its Consumed bundles, in one atomic, synced batch. A CID without a
	// record is ignored.
	Commit(ctx context.Context, c Checkpoint) error
}

// Fetcher gets bundles. It is safe for concurrent use.
type Fetcher interface {
	// Fetch returns the bytes behind a CID, at most limit of them, asking the announcing peer first. The learner
	// verifies them against the CID again. It returns when ctx ends.
	Fetch(ctx context.Context, cid wire.CID, from wire.PeerID, limit int) ([]byte, error)
}

// Publisher makes a release known.
type Publisher interface {
	// Publish stores the policy's blocks where peers can fetch them and then announces the release. It is called
	// only after the release is durable, by one goroutine, in the order of versions, and again with the same
	// release after a restart, so it must be idempotent. An error stops the learner; a failure that later attempts
	// or the pull side will mend is not one.
	Publish(ctx context.Context, r wire.SignedRelease, s *policy.Snapshot) error
}

// Encode returns the record's stored form.
func (r Record) Encode() ([]byte, error) {
	b, err := proto.Marshal(&learnerpb.Record{
		Cid:         r.CID.Bytes(),
		Purpose:     uint32(r.Purpose),
		Environment: r.Environment.Bytes(),
		Peer:        []byte(r.Peer),
		Counter:     r.Counter,
		Version:     r.Version,
		Order:       r.Order,
		Consumed:    r.Consumed,
	})
	if err != nil {
		return nil, fmt.Errorf("encoding a record: %w", err)
	}
	return b, nil
}

// DecodeRecord reads what Record.Encode wrote.
func DecodeRecord(b []byte) (Record, error) {
	var m learnerpb.Record
	if err := proto.Unmarshal(b, &m); err != nil {
		return Record{}, fmt.Errorf("decoding a record: %w", err)
	}
	cid, err := wire.ParseCID(m.Cid)
	if err != nil {
		return Record{}, fmt.Errorf("decoding a record: bundle: %w", err)
	}
	environment, err := wire.ParseCID(m.Environment)
	if err != nil {
		return Record{}, fmt.Errorf("decoding a record: environment: %w", err)
	}
	return Record{
		CID:         cid,
		Purpose:     wire.Purpose(m.Purpose),
		Environment: environment,
		Peer:        wire.PeerID(m.Peer),
		Counter:     m.Counter,
		Version:     m.Version,
		Order:       m.Order,
		Consumed:    m.Consumed,
	}, nil
}

// Encode returns the checkpoint's stored form.
func (c Checkpoint) Encode() ([]byte, error) {
	m := &learnerpb.Checkpoint{
		Version:  c.Version,
		Release:  c.Release,
		Trainer:  c.Trainer,
		Progress: c.Progress,
		Oldest:   c.Oldest,
	}
	for _, cid := range c.Consumed {
		m.Consumed = append(m.Consumed, cid.Bytes())
	}
	b, err := proto.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encoding the checkpoint of version %d: %w", c.Version, err)
	}
	return b, nil
}

// DecodeCheckpoint reads what Checkpoint.Encode wrote.
func DecodeCheckpoint(b []byte) (Checkpoint, error) {
	var m learnerpb.Checkpoint
	if err := proto.Unmarshal(b, &m); err != nil {
		return Checkpoint{}, fmt.Errorf("decoding a checkpoint: %w", err)
	}
	c := Checkpoint{
		Version:  m.Version,
		Release:  m.Release,
		Trainer:  m.Trainer,
		Progress: m.Progress,
		Oldest:   m.Oldest,
	}
	for _, b := range m.Consumed {
		cid, err := wire.ParseCID(b)
		if err != nil {
			return Checkpoint{}, fmt.Errorf("decoding the checkpoint of version %d: consumed bundle: %w", m.Version, err)
		}
		c.Consumed = append(c.Consumed, cid)
	}
	return c, nil
}
