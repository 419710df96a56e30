package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/lightswarm/lightswarm/learner"
	"github.com/lightswarm/lightswarm/p2p/block"
	"github.com/lightswarm/lightswarm/wire"
)

// acceptedSet pins the accepted bundles that are not consumed.
const acceptedSet = "accepted"

// Learner is the learner.Store of a Store. An accepted bundle's bytes are a pinned block, so that a bundle that was
// fetched is stored once and is served to others as well.
type Learner struct{ s *Store }

var _ learner.Store = Learner{}

// Learner returns the part of the store that a learner uses.
func (s *Store) Learner() Learner { return Learner{s} }

// Load implements learner.Store.
func (l Learner) Load(ctx context.Context) (learner.Recovery, error) {
	var r learner.Recovery
	encoded, ok, err := get(l.s.db, key(tagCheckpoint))
	if err != nil {
		return r, err
	}
	if ok {
		c, err := learner.DecodeCheckpoint(encoded)
		if err != nil {
			return r, err
		}
		r.Checkpoint = &c
	}
	err = scanPrefix(l.s.db, key(tagGroup), func(_, v []byte) (bool, error) {
		record, err := learner.DecodeRecord(v)
		if err != nil {
			return false, err
		}
		r.Records = append(r.Records, record)
		return true, ctx.Err()
	})
	if err != nil {
		return learner.Recovery{}, fmt.Errorf("load learner's state: %w", err)
	}
	return r, nil
}

// Accept implements learner.Store. It fails with ErrFull if bundles that wait to be consumed fill the store.
func (l Learner) Accept(ctx context.Context, batch []learner.Accepted) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := l.s.update(durable, func(t *transaction) error {
		for _, a := range batch {
			if err := t.accept(a); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("accept bundles: %w", err)
	}
	return nil
}

func (t *transaction) accept(a learner.Accepted) error {
	orderKey := key(tagGroupOrder, a.Record.CID.Bytes())
	if there, err := has(t, orderKey); err != nil || there {
		return err
	}
	encoded, err := a.Record.Encode()
	if err != nil {
		return err
	}
	t.put(orderKey, uint64Field(a.Record.Order))
	t.put(key(tagGroup, uint64Field(a.Record.Order)), encoded)
	if err := t.pin(acceptedSet, a.Record.CID); err != nil {
		return err
	}
	return t.putBlock(a.Record.CID, a.Bundle)
}

// Bundle implements learner.Store.
func (l Learner) Bundle(_ context.Context, cid wire.CID) ([]byte, error) {
	record, ok, err := record(l.s.db, cid)
	if err != nil {
		return nil, err
	}
	if !ok || record.Consumed {
		return nil, fmt.Errorf("%s: %w", cid, learner.ErrNotStored)
	}
	data, err := l.s.Get(cid)
	if errors.Is(err, block.ErrNotFound) {
		return nil, fmt.Errorf("%s: %w", cid, learner.ErrNotStored)
	}
	return data, err
}

// Commit implements learner.Store. The checkpoint's release becomes the version's release, and the ledger gets an
// entry.
func (l Learner) Commit(ctx context.Context, c learner.Checkpoint) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := l.s.update(durable, func(t *transaction) error {
		evaluated, err := t.consume(c.Consumed)
		if err != nil {
			return err
		}
		if err := t.forgetRecords(c.Oldest); err != nil {
			return err
		}
		if err := t.putRelease(c.Version, c.Release); err != nil {
			return err
		}
		entry, err := learner.Checkpoint{Version: c.Version, Release: c.Release, Consumed: c.Consumed}.Encode()
		if err != nil {
			return err
		}
		t.put(key(tagLedger, uint64Field(c.Version)), entry)
		if entry, err = (learner.Checkpoint{Version: c.Version, Consumed: evaluated}).Encode(); err != nil {
			return err
		}
		t.put(key(tagEvaluated, uint64Field(c.Version)), entry)
		// The marks are on the records; the checkpoint need not repeat them.
		c.Consumed = nil
		checkpoint, err := c.Encode()
		if err != nil {
			return err
		}
		t.put(key(tagCheckpoint), checkpoint)
		return nil
	})
	if err != nil {
		return fmt.Errorf("commit version %d: %w", c.Version, err)
	}
	return nil
}

// consume marks the records of bundles and unpins their bytes. It returns the bundles that are evaluations.
func (t *transaction) consume(cids []wire.CID) (evaluated []wire.CID, err error) {
	for _, cid := range cids {
		r, ok, err := record(t, cid)
		if err != nil {
			return nil, err
		}
		if ok && r.Purpose != wire.PurposeTrain {
			evaluated = append(evaluated, cid)
		}
		if !ok || r.Consumed {
			continue
		}
		r.Consumed = true
		encoded, err := r.Encode()
		if err != nil {
			return nil, err
		}
		t.put(key(tagGroup, uint64Field(r.Order)), encoded)
		if err := t.unpin(acceptedSet, cid); err != nil {
			return nil, err
		}
	}
	return evaluated, nil
}

// forgetRecords removes the consumed records of versions before oldest.
func (t *transaction) forgetRecords(oldest uint64) error {
	var old []learner.Record
	err := scanPrefix(t, key(tagGroup), func(_, v []byte) (bool, error) {
		r, err := learner.DecodeRecord(v)
		if err != nil {
			return false, err
		}
		if r.Consumed && r.Version < oldest {
			old = append(old, r)
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	for _, r := range old {
		t.remove(key(tagGroup, uint64Field(r.Order)))
		t.remove(key(tagGroupOrder, r.CID.Bytes()))
	}
	return nil
}

// record finds the record of a bundle.
func record(r pebble.Reader, cid wire.CID) (learner.Record, bool, error) {
	order, ok, err := get(r, key(tagGroupOrder, cid.Bytes()))
	if err != nil || !ok {
		return learner.Record{}, false, err
	}
	encoded, ok, err := get(r, key(tagGroup, order))
	if err != nil || !ok {
		return learner.Record{}, false, err
	}
	found, err := learner.DecodeRecord(encoded)
	return found, err == nil, err
}

// LedgerEntry says what one version was trained on.
type LedgerEntry struct {
	Version uint64
	// Release is the CID of the version's signed release.
	Release wire.CID
	// Trained are the groups that the step used up: trained on, or dropped as too old or of no use.
	Trained []wire.CID
	// Evaluated are the evaluation blocks whose results were counted; they are never trained on.
	Evaluated []wire.CID
}

// Ledger returns up to limit entries of version from or above, ascending. Only a learner's store has any.
func (s *Store) Ledger(from uint64, limit int) ([]LedgerEntry, error) {
	if limit <= 0 {
		return nil, nil
	}
	var list []LedgerEntry
	err := scan(s.db, key(tagLedger, uint64Field(from)), after(key(tagLedger)), func(k, v []byte) (bool, error) {
		c, err := learner.DecodeCheckpoint(v)
		if err != nil {
			return false, err
		}
		encoded, ok, err := get(s.db, key(tagEvaluated, k[1:]))
		if err != nil {
			return false, err
		}
		var evaluations learner.Checkpoint
		if ok {
			if evaluations, err = learner.DecodeCheckpoint(encoded); err != nil {
				return false, err
			}
		}
		e := LedgerEntry{Version: binary.BigEndian.Uint64(k[1:]), Release: wire.SumCID(c.Release), Evaluated: evaluations.Consumed}
		for _, cid := range c.Consumed {
			if !slices.Contains(e.Evaluated, cid) {
				e.Trained = append(e.Trained, cid)
			}
		}
		list = append(list, e)
		return len(list) < limit, nil
	})
	return list, err
}
