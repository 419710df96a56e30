package tokenizer

import (
	"hash/maphash"
	"sync/atomic"
)

// Encode is the token ids of text, which may be any bytes. It never yields a special token.
func (t *Tokenizer) Encode(text string) []int32 { return t.AppendEncode(nil, text) }

// AppendEncode appends the token ids of text to dst.
func (t *Tokenizer) AppendEncode(dst []int32, text string) []int32 {
	var m merger
	for text != "" {
		n := next(text)
		dst = t.appendPiece(dst, text[:n], &m)
		text = text[n:]
	}
	return dst
}

// appendPiece appends the token ids of one piece.
func (t *Tokenizer) appendPiece(dst []int32, piece string, m *merger) []int32 {
	if len(piece) == 1 {
		return append(dst, t.bytes[piece[0]])
	}
	if ids, ok := t.cache.get(piece); ok {
		return append(dst, ids...)
	}
	from := len(dst)
	dst = m.encode(t, dst, piece)
	t.cache.put(piece, dst[from:])
	return dst
}

// merger merges the bytes of a piece; its memory is used again for the next piece. A piece of n bytes takes
// O(n log n): nobody can make a tokenizer slow with one long word.
type merger struct {
	symbols []symbol
	queue   []uint64 // min-heap of rank<<32 | position of the left symbol
}

// symbol is a token in a doubly linked list over the piece; prev and next are positions, -1 for none.
type symbol struct{ id, prev, next int32 }

// dead marks a symbol that was merged into the one on its left.
const dead = -1

func (m *merger) encode(t *Tokenizer, dst []int32, piece string) []int32 {
	m.symbols, m.queue = m.symbols[:0], m.queue[:0]
	for i := range len(piece) {
		m.symbols = append(m.symbols, symbol{t.bytes[piece[i]], int32(i - 1), int32(i + 1)})
	}
	m.symbols[len(piece)-1].next = -1
	for i := range len(piece) - 1 {
		m.consider(t, int32(i))
	}
	for len(m.queue) > 0 {
		top := m.pop()
		at := int32(uint32(top))
		s := &m.symbols[at]
		if s.id == dead || s.next < 0 {
			continue
		}
		right := m.symbols[s.next]
		join, ok := t.merges[pair{s.id, right.id}]
		if !ok || uint64(join.rank) != top>>32 {
			continue // the pair that was queued is gone
		}
		m.symbols[s.next].id = dead
		s.id, s.next = join.id, right.next
		if right.next >= 0 {
			m.symbols[right.next].prev = at
			m.consider(t, at)
		}
		if s.prev >= 0 {
			m.consider(t, s.prev)
		}
	}
	for at := int32(0); at >= 0; at = m.symbols[at].next {
		dst = append(dst, m.symbols[at].id)
	}
	return dst
}

// consider queues the pair whose left symbol is at a position, if it merges.
func (m *merger) consider(t *Tokenizer, at int32) {
	s := m.symbols[at]
	if join, ok := t.merges[pair{s.id, m.symbols[s.next].id}]; ok {
		m.push(uint64(join.rank)<<32 | uint64(uint32(at)))
	}
}

func (m *merger) push(v uint64) {
	q := append(m.queue, v)
	i := len(q) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if q[parent] <= v {
			break
		}
		q[i] = q[parent]
		i = parent
	}
	q[i] = v
	m.queue = q
}

func (m *merger) pop() uint64 {
	q := m.queue
	top, v := q[0], q[len(q)-1]
	q = q[:len(q)-1]
	i := 0
	for {
		child := 2*i + 1
		if child >= len(q) {
			break
		}
		if child+1 < len(q) && q[child+1] < q[child] {
			child++
		}
		if q[child] >= v {
			break
		}
		q[i] = q[child]
		i = child
	}
	if len(q) > 0 {
		q[i] = v
	}
	m.queue = q
	return top
}

// cacheSlots and cachePiece bound the cache: pieces that are longer are rare and not worth keeping.
const (
	cacheSlots = 1 << 11
	cachePiece = 32
)

// cache remembers the encodings of short pieces. Each piece has one slot, which the newest takes, so that its size
// is fixed and nobody waits for anybody.
type cache struct {
	slots [cacheSlots]atomic.Pointer[cached]
}

type cached struct {
	piece string
	ids   []int32
}

var cacheSeed = maphash.MakeSeed()

func (c *cache) slot(piece string) *atomic.Pointer[cached] {
	return &c.slots[maphash.String(cacheSeed, piece)%cacheSlots]
}

func (c *cache) get(piece string) ([]int32, bool) {
	if len(piece) > cachePiece {
		return nil, false
	}
	e := c.slot(piece).Load()
	if e == nil || e.piece != piece {
		return nil, false
	}
	return e.ids, true
}

func (c *cache) put(piece string, ids []int32) {
	if len(piece) > cachePiece {
		return
	}
	// The piece is a part of the caller's text, which the cache must not keep alive.
	c.slot(piece).Store(&cached{string([]byte(piece)), append([]int32(nil), ids...)})
}
