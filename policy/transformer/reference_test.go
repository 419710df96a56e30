package transformer

import "math"

// reference is the model written down once more, plainly and in float64. It shares nothing with the code under test
// but the layout of the parameters. One goroutine computes with it alone, tens of thousands of passes in one test, so that
// its loops are marked go:norace.
type reference struct {
	c    Config
	flat []float64
	at   map[string]int // offset of each named weight in flat
}

func newReference(p *Parameters) *reference {
	r := &reference{c: p.Config, at: map[string]int{}}
	for _, n := range p.Named {
		r.at[n.Name] = len(r.flat)
		for _, v := range n.Values {
			r.flat = append(r.flat, float64(v))
		}
	}
	return r
}

// linear is W·x for the named matrix with outs rows.
//
//go:norace
func (r *reference) linear(name string, outs int, x []float64) []float64 {
	w, y := r.flat[r.at[name]:], make([]float64, outs)
	for o := range y {
		for i, v := range x {
			y[o] += w[o*len(x)+i] * v
		}
	}
	return y
}

//go:norace
func (r *reference) norm(name string, x []float64) []float64 {
	gain, y, sum := r.flat[r.at[name]:], make([]float64, len(x)), 0.0
	for _, v := range x {
		sum += v * v
	}
	for i, v := range x {
		y[i] = v / math.Sqrt(sum/float64(len(x))+r.c.NormEpsilon) * gain[i]
	}
	return y
}

// rotate turns every head in x to a position.
//
//go:norace
func (r *reference) rotate(x []float64, position int) {
	h := r.c.HeadDim
	for ; len(x) > 0; x = x[h:] {
		for i := range h / 2 {
			angle := float64(position) * math.Pow(r.c.RopeTheta, -2*float64(i)/float64(h))
			z := complex(x[i], x[i+h/2]) * complex(math.Cos(angle), math.Sin(angle))
			x[i], x[i+h/2] = real(z), imag(z)
		}
	}
}

//go:norace
func addTo(x, y []float64) {
	for i := range x {
		x[i] += y[i]
	}
}

//go:norace
func softmax(x []float64) []float64 {
	y, sum := make([]float64, len(x)), 0.0
	for i, v := range x {
		y[i] = math.Exp(v)
		sum += y[i]
	}
	for i := range y {
		y[i] /= sum
	}
	return y
}

// distributions returns the distribution of the token after each of tokens.
//
//go:norace
func (r *reference) distributions(tokens []int32) [][]float64 {
	c, h := r.c, r.c.HeadDim
	stream := make([][]float64, len(tokens))
	for t, token := range tokens {
		embed := r.flat[r.at["model.embed_tokens.weight"]+int(token)*c.Hidden:]
		stream[t] = append([]float64{}, embed[:c.Hidden]...)
	}
	for l := range c.Layers {
		prefix := "model.layers." + string(rune('0'+l)) + "."
		var keys, values [][]float64
		for t, x := range stream {
			n := r.norm(prefix+"input_layernorm.weight", x)
			q := r.linear(prefix+"self_attn.q_proj.weight", c.Heads*h, n)
			k := r.linear(prefix+"self_attn.k_proj.weight", c.KVHeads*h, n)
			r.rotate(q, t)
			r.rotate(k, t)
			keys = append(keys, k)
			values = append(values, r.linear(prefix+"self_attn.v_proj.weight", c.KVHeads*h, n))
			attended := make([]float64, c.Heads*h)
			for j := range c.Heads {
				g := j / (c.Heads / c.KVHeads)
				scores := make([]float64, t+1)
				for s := range scores {
					for i := range h {
						scores[s] += q[j*h+i] * keys[s][g*h+i] / math.Sqrt(float64(h))
					}
				}
				for s, p := range softmax(scores) {
					for i := range h {
						attended[j*h+i] += p * values[s][g*h+i]
					}
				}
			}
			addTo(x, r.linear(prefix+"self_attn.o_proj.weight", c.Hidden, attended))
		}
		for _, x := range stream {
			n := r.norm(prefix+"post_attention_layernorm.weight", x)
			gate := r.linear(prefix+"mlp.gate_proj.weight", c.Intermediate, n)
			up := r.linear(prefix+"mlp.up_proj.weight", c.Intermediate, n)
			for i, v := range gate {
				up[i] *= v / (1 + math.Exp(-v))
			}
			addTo(x, r.linear(prefix+"mlp.down_proj.weight", c.Hidden, up))
		}
	}
	head := "lm_head.weight"
	if c.TieEmbeddings {
		head = "model.embed_tokens.weight"
	}
	out := make([][]float64, len(tokens))
	for t, x := range stream {
		out[t] = softmax(r.linear(head, c.Vocab, r.norm("model.norm.weight", x)))
	}
	return out
}

// logProbs are those of the trained tokens of s, and the entropies of their distributions.
//
//go:norace
func (r *reference) logProbs(s Sequence) (logProbs, entropies []float64) {
	distributions := r.distributions(s.Tokens)
	for i, position := range s.Train {
		p := distributions[position-1]
		if s.Allowed != nil && s.Allowed[i] != nil {
			p = within(p, s.Allowed[i])
		}
		logProbs = append(logProbs, math.Log(p[s.Tokens[position]]))
		entropy := 0.0
		for _, v := range p {
			if v > 0 {
				entropy -= v * math.Log(v)
			}
		}
		entropies = append(entropies, entropy)
	}
	return logProbs, entropies
}

// within is a distribution given that the token is in a set.
//
//go:norace
func within(p []float64, allowed []uint64) []float64 {
	q, sum := make([]float64, len(p)), 0.0
	for i, v := range p {
		if allowed[i/64]>>(i%64)&1 != 0 {
			q[i] = v
			sum += v
		}
	}
	for i := range q {
		q[i] /= sum
	}
	return q
}
