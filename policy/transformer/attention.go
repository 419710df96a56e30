package transformer

import "github.com/lightswarm/lightswarm/policy/kernel"

// attentionRows is how many queries are scored at a time. The scores above the diagonal of such a block are computed
// in vain, so it is small; it is a multiple of the kernels' tile heights.
const attentionRows = 48

// attentionScratch is the memory of one thread that works on whole sequences' attention. Nothing in it outlives a call.
type attentionScratch struct {
	keysT, values, keys, valuesT, block kernel.Packed
	probabilities, gradients            []float32
}

// A span is one sequence's rows in a packed batch.
type span struct{ from, to int }

// attend computes a.attended for the query heads that share key head g, on one sequence. Its sums run in the same
// order as those of decoding: what lies behind the diagonal adds zeros at their ends.
func (s *attentionScratch) attend(m *Model, a *activations, rows span, g int) {
	c := &m.config
	n, h, width := rows.to-rows.from, c.HeadDim, c.qkvWidth()
	qkv := a.qkv[rows.from*width : rows.to*width]
	out := a.attended[rows.from*c.queryWidth() : rows.to*c.queryWidth()]
	s.keysT.Pack(true, n, h, qkv[c.keyColumn(g):], width)
	s.values.Pack(false, h, n, qkv[c.valueColumn(g):], width)
	group := c.Heads / c.KVHeads
	for j := g * group; j < (g+1)*group; j++ {
		for from := 0; from < n; from += attentionRows {
			to := min(n, from+attentionRows)
			ld := s.score(m, qkv, j, from, to)
			kernel.MatMul(false, to-from, h, to, s.probabilities, ld, &s.values, out[from*c.queryWidth()+j*h:], c.queryWidth(), false)
		}
	}
}

// score sets s.probabilities to the attention of the queries [from, to) of head j over the positions [0, to), and
// returns the distance of its rows. s.keysT holds the keys.
func (s *attentionScratch) score(m *Model, qkv []float32, j, from, to int) (ld int) {
	h, width := m.config.HeadDim, m.config.qkvWidth()
	ld = (to + 15) &^ 15
	s.probabilities = resize(s.probabilities, (to-from)*ld)
	kernel.MatMul(false, to-from, to, h, qkv[from*width+j*h:], width, &s.keysT, s.probabilities, ld, false)
	for t := from; t < to; t++ {
		row := s.probabilities[(t-from)*ld:][:to]
		kernel.SoftmaxScaled(row[:t+1], m.scale)
		clear(row[t+1:])
	}
	return ld
}

// backward computes, from the gradient dOut of a.attended, the gradients of the queries that share key head g, of
// its keys and of its values in dQKV, all for the rotated values. Probabilities are computed again instead of kept, so
// that memory grows with the length of a sequence and not with its square.
func (s *attentionScratch) backward(m *Model, a *activations, dOut, dQKV []float32, rows span, g int) {
	c := &m.config
	n, h, width, outWidth := rows.to-rows.from, c.HeadDim, c.qkvWidth(), c.queryWidth()
	qkv := a.qkv[rows.from*width : rows.to*width]
	dOut = dOut[rows.from*outWidth : rows.to*outWidth]
	dQKV = dQKV[rows.from*width : rows.to*width]
	k, v := c.keyColumn(g), c.valueColumn(g)
	s.keysT.Pack(true, n, h, qkv[k:], width)
	s.valuesT.Pack(true, n, h, qkv[v:], width)
	s.keys.Pack(false, h, n, qkv[k:], width)
	// The last block reaches every position, so it comes first and sets what the others add to.
	started := false
	last := (n - 1) / attentionRows * attentionRows
	group := c.Heads / c.KVHeads
	for j := g * group; j < (g+1)*group; j++ {
		for from := last; from >= 0; from -= attentionRows {
			to := min(n, from+attentionRows)
			ld := s.score(m, qkv, j, from, to)
			q, d := qkv[from*width+j*h:], dOut[from*outWidth+j*h:]

			s.block.Pack(false, h, to-from, d, outWidth)
			kernel.MatMul(true, to, h, to-from, s.probabilities, ld, &s.block, dQKV[v:], width, started)

			s.gradients = resize(s.gradients, (to-from)*ld)
			kernel.MatMul(false, to-from, to, h, d, outWidth, &s.valuesT, s.gradients, ld, false)
			for t := from; t < to; t++ {
				row := (t - from) * ld
				kernel.SoftmaxBackward(s.gradients[row:row+t+1], s.probabilities[row:row+t+1], m.scale)
				clear(s.gradients[row+t+1 : row+to])
			}
			kernel.MatMul(false, to-from, h, to, s.gradients, ld, &s.keys, dQKV[from*width+j*h:], width, false)

			s.block.Pack(false, h, to-from, q, width)
			kernel.MatMul(true, to, h, to-from, s.gradients, ld, &s.block, dQKV[k:], width, started)
			started = true
		}
	}
}

// keyColumn and valueColumn are where the key and the value of head g begin in a row of qkv.
func (c *Config) keyColumn(g int) int   { return c.queryWidth() + g*c.HeadDim }
func (c *Config) valueColumn(g int) int { return c.queryWidth() + c.kvWidth() + g*c.HeadDim }
