package store

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/lightswarm/lightswarm/p2p/block"
	"github.com/lightswarm/lightswarm/wire"
)

// ErrFull says that pinned blocks take up all the room.
var ErrFull = errors.New("no room for blocks")

var _ block.Store = (*Store)(nil)

// blockInfo describes a stored block.
type blockInfo struct {
	order uint64 // blocks were stored in this order
	bytes uint32
}

func (i blockInfo) encode() []byte {
	return binary.BigEndian.AppendUint32(uint64Field(i.order), i.bytes)
}

func decodeBlockInfo(b []byte) (blockInfo, error) {
	if len(b) != 12 {
		return blockInfo{}, errors.New("damaged block entry in the database")
	}
	return blockInfo{binary.BigEndian.Uint64(b), binary.BigEndian.Uint32(b[8:])}, nil
}

// loadBlocks adds up the blocks.
func (s *Store) loadBlocks() error {
	return scanPrefix(s.db, key(tagBlockInfo), func(_, v []byte) (bool, error) {
		info, err := decodeBlockInfo(v)
		if err != nil {
			return false, err
		}
		s.blockBytes += int64(info.bytes)
		s.nextOrder = max(s.nextOrder, info.order+1)
		return true, nil
	})
}

// Get returns a block, or an error that wraps block.ErrNotFound.
func (s *Store) Get(cid wire.CID) ([]byte, error) {
	data, ok, err := get(s.db, key(tagBlock, cid.Bytes()))
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("%s: %w", cid, block.ErrNotFound)
	}
	return data, nil
}

// Has reports whether Get would find the block.
func (s *Store) Has(cid wire.CID) (bool, error) {
	return has(s.db, key(tagBlockInfo, cid.Bytes()))
}

// Put keeps a block, lazily: one that a crash undoes can be fetched again. It removes old unpinned blocks to make
// room; ErrFull if that is not enough. The bytes must be those of cid.
func (s *Store) Put(cid wire.CID, data []byte) error {
	return s.update(lazy, func(t *transaction) error { return t.putBlock(cid, data) })
}

// PutPinned keeps blocks durably and pins them in the set, in one change.
func (s *Store) PutPinned(set string, blocks map[wire.CID][]byte) error {
	return s.update(durable, func(t *transaction) error { return t.putPinned(set, blocks) })
}

// BlockBytes is the sum of all blocks' bytes.
func (s *Store) BlockBytes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.blockBytes
}

func (t *transaction) putPinned(set string, blocks map[wire.CID][]byte) error {
	for cid, data := range blocks {
		if err := t.pin(set, cid); err != nil {
			return err
		}
		if err := t.putBlock(cid, data); err != nil {
			return err
		}
	}
	return nil
}

// putBlock adds a block if it is new.
func (t *transaction) putBlock(cid wire.CID, data []byte) error {
	infoKey := key(tagBlockInfo, cid.Bytes())
	if there, err := has(t, infoKey); err != nil || there {
		return err
	}
	if err := t.makeRoom(int64(len(data))); err != nil {
		return err
	}
	info := blockInfo{order: t.nextOrder, bytes: uint32(len(data))}
	t.nextOrder++
	t.blockBytes += int64(len(data))
	t.put(key(tagBlock, cid.Bytes()), data)
	t.put(infoKey, info.encode())
	pinned, err := t.pinned(cid)
	if err != nil {
		return err
	}
	if !pinned {
		t.put(key(tagBlockOrder, uint64Field(info.order)), cid.Bytes())
	}
	return nil
}

// makeRoom removes the oldest unpinned blocks until bytes more fit.
func (t *transaction) makeRoom(bytes int64) error {
	if t.blockBytes+bytes <= t.maxBytes {
		return nil
	}
	var old []wire.CID
	room := t.maxBytes - t.blockBytes
	err := scanPrefix(t, key(tagBlockOrder), func(_, v []byte) (bool, error) {
		cid, err := wire.ParseCID(v)
		if err != nil {
			return false, fmt.Errorf("damaged block order in the database: %w", err)
		}
		info, err := t.blockInfo(cid)
		if err != nil {
			return false, err
		}
		old = append(old, cid)
		room += int64(info.bytes)
		return room < bytes, nil
	})
	if err != nil {
		return err
	}
	if room < bytes {
		return fmt.Errorf("%w: %d bytes of blocks in use fill the limit of %d; raise store.max_block_bytes", ErrFull, t.blockBytes, t.maxBytes)
	}
	for _, cid := range old {
		if err := t.removeBlock(cid); err != nil {
			return err
		}
	}
	return nil
}

// removeBlock removes an unpinned block.
func (t *transaction) removeBlock(cid wire.CID) error {
	info, err := t.blockInfo(cid)
	if err != nil {
		return err
	}
	t.blockBytes -= int64(info.bytes)
	t.remove(key(tagBlock, cid.Bytes()))
	t.remove(key(tagBlockInfo, cid.Bytes()))
	t.remove(key(tagBlockOrder, uint64Field(info.order)))
	return nil
}

// blockInfo describes a block that must be there.
func (t *transaction) blockInfo(cid wire.CID) (blockInfo, error) {
	v, _, err := get(t, key(tagBlockInfo, cid.Bytes()))
	if err != nil {
		return blockInfo{}, err
	}
	return decodeBlockInfo(v)
}
