package warmstart

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"

	"github.com/lightswarm/lightswarm/wire"
)

// stream is a counter-based random generator: number i is a mixed function of the key and i (SplitMix64, Steele, Lea
// and Flood, OOPSLA 2014).
type stream struct{ key, n uint64 }

// newStream returns the stream of one of an environment's demonstrations. The built-in policy was made from these very
// bytes.
func newStream(m wire.EnvironmentManifest, purpose string, seed, n uint64) *stream {
	b := []byte("lightswarm/" + m.Name + "/" + m.Version + "\x00" + purpose + "\x00\x00")
	b = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, seed), n)
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

// below returns a number in [0, n). Its bias, at most n/2^64, does not matter here.
func (s *stream) below(n uint64) uint64 {
	hi, _ := bits.Mul64(s.next(), n)
	return hi
}
