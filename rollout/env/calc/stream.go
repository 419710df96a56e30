package calc

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
)

// stream is a counter-based random generator: number i is a mixed function of the key and i (SplitMix64, Steele, Lea
// and Flood, OOPSLA 2014).
type stream struct{ key, n uint64 }

// newStream returns the stream of a purpose, a name and numbers within it.
func newStream(purpose, name string, numbers ...uint64) *stream {
	b := make([]byte, 0, 64)
	b = append(b, "lightswarm/calc/1\x00"...)
	b = append(b, purpose...)
	b = append(b, 0)
	b = append(b, name...)
	b = append(b, 0)
	for _, v := range numbers {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	sum := sha256.Sum256(b)
	return &stream{key: binary.BigEndian.Uint64(sum[:])}
}

func (s *stream) next() uint64 {
	s.n++
	z := s.key + s.n*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// between returns a number in [low, high]. Its bias, at most (high-low)/2^64, does not matter here.
func (s *stream) between(low, high int) int {
	hi, _ := bits.Mul64(s.next(), uint64(high-low+1))
	return low + int(hi)
}

// pick returns one element of a non-empty list.
func pick[T any](s *stream, list []T) T { return list[s.between(0, len(list)-1)] }
