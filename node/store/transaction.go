package store

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// transaction is one atomic change. Its reads see its own writes. It works on a copy of the store's state, which
// becomes the store's when the change is applied.
type transaction struct {
	*pebble.Batch
	state
	bounds
}

// durability says whether a change is safe when update returns.
type durability bool

const (
	// lazy changes are kept by the next durable change, or soon; a crash before may undo them.
	lazy durability = false
	// durable changes survive a crash once update returned nil.
	durable durability = true
)

// update builds a change and applies it, one change after the other, and then waits until it is durable, many changes
// together: the log is synced once for all that were applied while the previous sync ran. If build returns an error
// nothing changes.
func (s *Store) update(d durability, build func(*transaction) error) (err error) {
	t, err := s.apply(d, build)
	if t == nil {
		return err
	}
	if d == durable {
		if err = t.SyncWait(); err != nil {
			err = s.fail(fmt.Errorf("sync database: %w", err))
		} else {
			s.show(t.records)
		}
	}
	return errors.Join(err, t.Close())
}

// show lets readers see the node's own records up to those of a change that is durable. What was applied before it is
// durable as well, since the log is written in order.
func (s *Store) show(r records) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shown = records{max(s.shown.nextSequence, r.nextSequence), max(s.shown.nextVersion, r.nextVersion)}
}

// visible is what readers may see.
func (s *Store) visible() records {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown
}

// fail makes the store refuse every later change.
func (s *Store) fail(err error) error {
	err = fmt.Errorf("%w: %w", ErrFailed, err)
	s.failed.set(err)
	return err
}

// apply does the part of update that changes take turns for. It returns a nil transaction if nothing was written.
func (s *Store) apply(d durability, build func(*transaction) error) (*transaction, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.failed.why(); err != nil {
		return nil, err
	}
	t := &transaction{Batch: s.db.NewIndexedBatch(), state: s.state, bounds: s.bounds}
	if err := build(t); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	if t.Empty() {
		return nil, t.Close()
	}
	if err := s.write(d, t); err != nil {
		return nil, s.fail(fmt.Errorf("write database: %w", err))
	}
	s.state = t.state
	return t, nil
}

// write hands a batch to the database. What the database calls fatal is an error here.
func (s *Store) write(d durability, t *transaction) (err error) {
	defer func() {
		if p := recover(); p != nil {
			fatal, ok := p.(fatalError)
			if !ok {
				panic(p)
			}
			err = fatal
		}
	}()
	if d == durable {
		return s.db.ApplyNoSyncWait(t.Batch, pebble.Sync)
	}
	return s.db.Apply(t.Batch, pebble.NoSync)
}

// put sets a key. A batch is memory: it fails only if it is used wrongly, which is this package's mistake.
func (t *transaction) put(k, v []byte) {
	if err := t.Set(k, v, nil); err != nil {
		panic("store: " + err.Error())
	}
}

// remove deletes a key.
func (t *transaction) remove(k []byte) {
	if err := t.Delete(k, nil); err != nil {
		panic("store: " + err.Error())
	}
}
