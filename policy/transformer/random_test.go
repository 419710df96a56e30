package transformer

import (
	"math/rand/v2"

	"pgregory.net/rapid"
)

// drawConfig is a small model of any shape: widths that fill no vector register, grouped heads, tied or not.
func drawConfig(t *rapid.T) Config {
	kv := rapid.IntRange(1, 3).Draw(t, "kv heads")
	return Config{
		Hidden:        rapid.IntRange(1, 40).Draw(t, "hidden"),
		Layers:        rapid.IntRange(1, 3).Draw(t, "layers"),
		Heads:         kv * rapid.IntRange(1, 3).Draw(t, "group"),
		KVHeads:       kv,
		HeadDim:       2 * rapid.IntRange(1, 10).Draw(t, "head dim / 2"),
		Intermediate:  rapid.IntRange(1, 40).Draw(t, "intermediate"),
		Vocab:         rapid.IntRange(2, 70).Draw(t, "vocab"),
		Context:       rapid.IntRange(4, 130).Draw(t, "context"),
		RopeTheta:     rapid.SampledFrom([]float64{100, 10000, 500000}).Draw(t, "theta"),
		NormEpsilon:   1e-6,
		TieEmbeddings: rapid.Bool().Draw(t, "tied"),
	}
}

// lively returns weights far enough from Init's for attention and gains to matter.
func lively(c Config, seed uint64) *Parameters {
	p := Init(c, seed)
	random := rand.New(rand.NewPCG(seed, 1))
	for _, n := range p.Named {
		for i := range n.Values {
			if n.Rows == 0 {
				n.Values[i] += random.Float32() - 0.5
			} else {
				n.Values[i] *= 3
			}
		}
	}
	p.RoundBF16()
	return p
}

// randomSequence has 2 to most tokens, about half of them trained.
func randomSequence(c Config, random *rand.Rand, most int) Sequence {
	s := Sequence{Tokens: make([]int32, 2+random.IntN(most-1))}
	for i := range s.Tokens {
		s.Tokens[i] = int32(random.IntN(c.Vocab))
		if i > 0 && random.IntN(2) == 0 {
			s.Train = append(s.Train, int32(i))
		}
	}
	return s
}

// restrict lets about half of the trained tokens of s be chosen from some of the vocabulary only.
func restrict(c Config, random *rand.Rand, s Sequence) Sequence {
	s.Allowed = make([][]uint64, len(s.Train))
	for i, position := range s.Train {
		if random.IntN(2) == 0 {
			continue
		}
		set := make([]uint64, (c.Vocab+63)/64)
		for j := range set {
			set[j] = random.Uint64() & random.Uint64()
		}
		token := s.Tokens[position]
		set[token/64] |= 1 << (token % 64)
		s.Allowed[i] = set
	}
	return s
}
