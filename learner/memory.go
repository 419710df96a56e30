package learner

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/lightswarm/lightswarm/wire"
)

// Memory is a Store without a disk: for experiments, and as the model that durable stores are tested against. It is
// as durable as the value itself.
type Memory struct {
	mu         sync.Mutex
	checkpoint *Checkpoint         // guarded by mu
	records    map[wire.CID]Record // guarded by mu
	bundles    map[wire.CID][]byte // guarded by mu; of unconsumed records
}

var _ Store = (*Memory)(nil)

// NewMemory returns an empty store.
func NewMemory() *Memory {
	return &Memory{records: make(map[wire.CID]Record), bundles: make(map[wire.CID][]byte)}
}

// Load implements Store.
func (m *Memory) Load(ctx context.Context) (Recovery, error) {
	if err := ctx.Err(); err != nil {
		return Recovery{}, fmt.Errorf("loading: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var r Recovery
	if m.checkpoint != nil {
		c := *m.checkpoint
		r.Checkpoint = &c
	}
	for _, record := range m.records {
		r.Records = append(r.Records, record)
	}
	slices.SortFunc(r.Records, func(a, b Record) int { return cmp.Compare(a.Order, b.Order) })
	return r, nil
}

// Accept implements Store.
func (m *Memory) Accept(ctx context.Context, batch []Accepted) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("accepting %d bundles: %w", len(batch), err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range batch {
		if _, ok := m.records[a.Record.CID]; ok {
			continue
		}
		m.records[a.Record.CID] = a.Record
		m.bundles[a.Record.CID] = slices.Clone(a.Bundle)
	}
	return nil
}

// Bundle implements Store.
func (m *Memory) Bundle(_ context.Context, cid wire.CID) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b, ok := m.bundles[cid]
	if !ok {
		return nil, fmt.Errorf("bundle %s: %w", cid, ErrNotStored)
	}
	return b, nil
}

// Commit implements Store.
func (m *Memory) Commit(ctx context.Context, c Checkpoint) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("committing version %d: %w", c.Version, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.checkpoint = &c
	for _, cid := range c.Consumed {
		if r, ok := m.records[cid]; ok {
			r.Consumed = true
			m.records[cid] = r
			delete(m.bundles, cid)
		}
	}
	for cid, r := range m.records {
		if r.Consumed && r.Version < c.Oldest {
			delete(m.records, cid)
		}
	}
	return nil
}
