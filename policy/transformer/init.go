package transformer

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
)

// Init returns fresh weights of a model of shape c, bf16 values that are the same on every machine for the same seed.
// Matrices are uniform with mean 0 and standard deviation 1/sqrt(inputs); those that write to the residual stream are
// smaller by sqrt(2*Layers) (GPT-2's rule), so that its variance does not grow with depth; the embedding's is 0.02;
// gains are 1. It panics if c is not valid.
func Init(c Config, seed uint64) *Parameters {
	p := NewParameters(c)
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	random := rand.NewChaCha8(key)
	uniform := func(values []float32, deviation float64) {
		// A uniform distribution over [-a, a) has standard deviation a/sqrt(3). Scaling an integer keeps this to one
		// rounding; a normal distribution would need logarithms that differ between machines.
		scale := deviation * math.Sqrt(3) / (1 << 23)
		for i := range values {
			k := int64(random.Uint64()>>40) - 1<<23
			values[i] = float32(float64(k) * scale)
		}
	}
	ones := func(values []float32) {
		for i := range values {
			values[i] = 1
		}
	}
	inverseRoot := func(n int) float64 { return 1 / math.Sqrt(float64(n)) }
	residual := inverseRoot(2 * c.Layers)

	uniform(p.embed, 0.02)
	for i := range p.layers {
		l := &p.layers[i]
		ones(l.attentionNorm)
		uniform(l.qkv, inverseRoot(c.Hidden))
		uniform(l.output, residual*inverseRoot(c.queryWidth()))
		ones(l.mlpNorm)
		uniform(l.gateUp, inverseRoot(c.Hidden))
		uniform(l.down, residual*inverseRoot(c.Intermediate))
	}
	ones(p.norm)
	if !c.TieEmbeddings {
		uniform(p.head, inverseRoot(c.Hidden))
	}
	p.RoundBF16()
	return p
}
