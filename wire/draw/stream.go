package draw

import (
	"encoding/binary"
	"math/bits"
)

// rounds is enough mixing for numbers that need to be uniform and unrelated, not secret.
const rounds = 8

// blockWords is the number of 32-bit words in one ChaCha block.
const blockWords = 16

// Float32 returns number position of the key's stream, uniform in [0, 1) with 24 bits: every value is a multiple of
// 2^-24 and is exact. Positions are independent of one another and cost the same in any order.
func Float32(key [32]byte, position uint64) float32 {
	words := block(key, position/blockWords)
	return float32(words[position%blockWords]>>8) * (1.0 / (1 << 24))
}

// stream reads a key's stream from the start, two words at a time.
type stream struct {
	key   [32]byte
	words [blockWords]uint32
	next  uint64 // position of the next word; even
}

func newStream(key [32]byte) *stream { return &stream{key: key} }

func (s *stream) uint64() uint64 {
	if s.next%blockWords == 0 {
		s.words = block(s.key, s.next/blockWords)
	}
	i := s.next % blockWords
	s.next += 2
	return uint64(s.words[i]) | uint64(s.words[i+1])<<32
}

// below returns a uniform number in [0, n). It skips the incomplete last cycle of n within 2^64, so no remainder is
// likelier than another. n is at least 1.
func (s *stream) below(n uint64) uint64 {
	excess := -n % n // 2^64 mod n
	for {
		if x := s.uint64(); x <= ^excess {
			return x % n
		}
	}
}

// block returns one block of ChaCha8 under a zero nonce.
func block(key [32]byte, counter uint64) [blockWords]uint32 {
	initial := [blockWords]uint32{0: 0x61707865, 1: 0x3320646e, 2: 0x79622d32, 3: 0x6b206574} // "expand 32-byte k"
	for i := range 8 {
		initial[4+i] = binary.LittleEndian.Uint32(key[4*i:])
	}
	initial[12], initial[13] = uint32(counter), uint32(counter>>32)
	x := initial
	for range rounds / 2 {
		quarter(&x[0], &x[4], &x[8], &x[12])
		quarter(&x[1], &x[5], &x[9], &x[13])
		quarter(&x[2], &x[6], &x[10], &x[14])
		quarter(&x[3], &x[7], &x[11], &x[15])
		quarter(&x[0], &x[5], &x[10], &x[15])
		quarter(&x[1], &x[6], &x[11], &x[12])
		quarter(&x[2], &x[7], &x[8], &x[13])
		quarter(&x[3], &x[4], &x[9], &x[14])
	}
	for i := range x {
		x[i] += initial[i]
	}
	return x
}

func quarter(a, b, c, d *uint32) {
	*a += *b
	*d = bits.RotateLeft32(*d^*a, 16)
	*c += *d
	*b = bits.RotateLeft32(*b^*c, 12)
	*a += *b
	*d = bits.RotateLeft32(*d^*a, 8)
	*c += *d
	*b = bits.RotateLeft32(*b^*c, 7)
}
