package block

import (
	"container/list"
	"errors"
	"fmt"
	"sync"

	"github.com/lightswarm/lightswarm/wire"
)

// ErrNotFound means that a block is not where it was looked for.
var ErrNotFound = errors.New("block not found")

// Store keeps blocks by CID. Its methods are safe for concurrent use. Callers never change bytes that they passed in
// or got back.
type Store interface {
	// Get returns the block, or an error that wraps ErrNotFound.
	Get(cid wire.CID) ([]byte, error)
	// Put stores a block whose bytes the caller has verified against cid. Storing it again is no error.
	Put(cid wire.CID, data []byte) error
	// Has reports whether Get would find the block.
	Has(cid wire.CID) (bool, error)
}

// MemoryStore is a Store in memory that forgets the least recently used blocks beyond a number of bytes.
type MemoryStore struct {
	capacity int

	mu     sync.Mutex
	bytes  int                        // guarded by mu
	recent *list.List                 // of memoryBlock, the most recently used first; guarded by mu
	byCID  map[wire.CID]*list.Element // guarded by mu
}

type memoryBlock struct {
	cid  wire.CID
	data []byte
}

// NewMemoryStore returns an empty store that keeps at most capacity bytes of blocks.
func NewMemoryStore(capacity int) *MemoryStore {
	return &MemoryStore{capacity: capacity, recent: list.New(), byCID: make(map[wire.CID]*list.Element)}
}

// Get returns a block and marks it as used.
func (m *MemoryStore) Get(cid wire.CID) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.byCID[cid]
	if !ok {
		return nil, fmt.Errorf("%s: %w", cid, ErrNotFound)
	}
	m.recent.MoveToFront(e)
	return e.Value.(memoryBlock).data, nil
}

// Put stores a block and forgets old ones until all fit. A block larger than the capacity is an error.
func (m *MemoryStore) Put(cid wire.CID, data []byte) error {
	if len(data) > m.capacity {
		return fmt.Errorf("block %s has %d bytes and the store keeps %d", cid, len(data), m.capacity)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.byCID[cid]; ok {
		m.recent.MoveToFront(e)
		return nil
	}
	for m.bytes+len(data) > m.capacity {
		oldest := m.recent.Remove(m.recent.Back()).(memoryBlock)
		delete(m.byCID, oldest.cid)
		m.bytes -= len(oldest.data)
	}
	m.byCID[cid] = m.recent.PushFront(memoryBlock{cid, data})
	m.bytes += len(data)
	return nil
}

// Has reports whether the store keeps the block, without marking it as used.
func (m *MemoryStore) Has(cid wire.CID) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.byCID[cid]
	return ok, nil
}
