package transformer

import "github.com/lightswarm/lightswarm/policy/kernel"

// Model is a policy's weights in the form in which kernels read them fastest. It is immutable and safe for concurrent
// use; any number of decoders share one.
type Model struct {
	config  Config
	embed   []float32 // [Vocab][Hidden]
	layers  []modelLayer
	norm    []float32
	head    kernel.Packed // [Hidden, Vocab]
	rotary  rotary
	epsilon float32
	scale   float32 // of attention scores
}

// modelLayer is one layer; each matrix maps a row of activations to the next.
type modelLayer struct {
	attentionNorm, mlpNorm    []float32
	qkv, output, gateUp, down kernel.Packed
}

// NewModel packs p, rounded to bf16, for inference. The model does not refer to p afterwards.
func NewModel(p *Parameters) *Model {
	p = p.Clone()
	p.RoundBF16()
	m := newModel(p.Config)
	m.pack(p, (*kernel.Packed).PackBF16)
	// What is not packed gets memory of its own, so that the clone can go.
	clone := func(s *[]float32) { *s = append([]float32(nil), *s...) }
	clone(&m.embed)
	clone(&m.norm)
	for i := range m.layers {
		clone(&m.layers[i].attentionNorm)
		clone(&m.layers[i].mlpNorm)
	}
	return m
}

func newModel(c Config) *Model {
	return &Model{
		config:  c,
		layers:  make([]modelLayer, c.Layers),
		rotary:  newRotary(c),
		epsilon: float32(c.NormEpsilon),
		scale:   c.scale(),
	}
}

// pack takes over the weights p. Matrices are copied by packMatrix, a method of kernel.Packed; the embedding and the
// gains are p's own.
func (m *Model) pack(p *Parameters, packMatrix func(p *kernel.Packed, trans bool, n, k int, b []float32, ldb int)) {
	c := m.config
	m.embed, m.norm = p.embed, p.norm
	for i := range m.layers {
		l, w := &m.layers[i], &p.layers[i]
		l.attentionNorm, l.mlpNorm = w.attentionNorm, w.mlpNorm
		packMatrix(&l.qkv, true, c.qkvWidth(), c.Hidden, w.qkv, c.Hidden)
		packMatrix(&l.output, true, c.Hidden, c.queryWidth(), w.output, c.queryWidth())
		packMatrix(&l.gateUp, true, 2*c.Intermediate, c.Hidden, w.gateUp, c.Hidden)
		packMatrix(&l.down, true, c.Hidden, c.Intermediate, w.down, c.Intermediate)
	}
	packMatrix(&m.head, true, c.Vocab, c.Hidden, p.head, c.Hidden)
}

// Config is the model's shape.
func (m *Model) Config() Config { return m.config }

// activations are what one layer computes for some rows (tokens), each slice [rows][width]. Training keeps one of them
// a layer for the backward pass; decoding uses one for all layers.
type activations struct {
	in        []float32 // Hidden: the residual stream that enters the layer
	inNormed  []float32 // Hidden
	inRstd    []float32 // 1: the reciprocal deviation that RMSNorm divided by
	qkv       []float32 // qkvWidth, queries and keys rotated
	attended  []float32 // queryWidth
	mid       []float32 // Hidden: the residual stream after attention
	midNormed []float32 // Hidden
	midRstd   []float32 // 1
	gateUp    []float32 // 2*Intermediate
	gated     []float32 // Intermediate
	out       []float32 // Hidden: the residual stream that leaves the layer
}

// grow makes room for n rows, reusing memory, and keeps nothing. The residual stream on both ends is the caller's.
func (a *activations) grow(c *Config, n int) {
	a.inNormed = resize(a.inNormed, n*c.Hidden)
	a.inRstd = resize(a.inRstd, n)
	a.qkv = resize(a.qkv, n*c.qkvWidth())
	a.attended = resize(a.attended, n*c.queryWidth())
	a.mid = resize(a.mid, n*c.Hidden)
	a.midNormed = resize(a.midNormed, n*c.Hidden)
	a.midRstd = resize(a.midRstd, n)
	a.gateUp = resize(a.gateUp, n*2*c.Intermediate)
	a.gated = resize(a.gated, n*c.Intermediate)
}

// resize returns a slice of n elements with arbitrary values, s's memory if that suffices.
func resize(s []float32, n int) []float32 {
	if cap(s) < n {
		return kernel.Alloc(n)
	}
	return s[:n]
}

// lookUp starts the residual stream of tokens: x is [len(tokens)][Hidden].
func (m *Model) lookUp(x []float32, tokens []int32) {
	d := m.config.Hidden
	for i, token := range tokens {
		copy(x[i*d:(i+1)*d], m.embed[int(token)*d:])
	}
}

// normalise writes RMSNorm of the rows [from, to) of x to y, and their reciprocal deviations to rstd.
func (m *Model) normalise(y, rstd, x, gain []float32, from, to int) {
	d := m.config.Hidden
	for i := from; i < to; i++ {
		rstd[i] = kernel.RMSNorm(y[i*d:(i+1)*d], x[i*d:(i+1)*d], gain, m.epsilon)
	}
}

// project runs the first half of a layer on the rows [from, to): from a.in to rotated queries, keys and values in
// a.qkv. positions[i] is the place of row i in its sequence.
func (m *Model) project(layer int, a *activations, positions []int32, from, to int) {
	c, l := &m.config, &m.layers[layer]
	d, width := c.Hidden, c.qkvWidth()
	m.normalise(a.inNormed, a.inRstd, a.in, l.attentionNorm, from, to)
	kernel.MatMul(false, to-from, width, d, a.inNormed[from*d:], d, &l.qkv, a.qkv[from*width:], width, false)
	for i := from; i < to; i++ {
		m.rotate(a.qkv[i*width:], int(positions[i]), false)
	}
}

// rotate turns the queries and keys at the start of qkv to a position, or back.
func (m *Model) rotate(qkv []float32, position int, inverse bool) {
	cos, sin := m.rotary.at(position)
	h := m.config.HeadDim
	for j := range m.config.Heads + m.config.KVHeads {
		kernel.Rotate(qkv[j*h:(j+1)*h], cos, sin, inverse)
	}
}

// finish runs the second half of a layer on the rows [from, to): from a.in and a.attended to a.out.
func (m *Model) finish(layer int, a *activations, from, to int) {
	c, l := &m.config, &m.layers[layer]
	d, w, f, n := c.Hidden, c.queryWidth(), c.Intermediate, to-from
	copy(a.mid[from*d:to*d], a.in[from*d:to*d])
	kernel.MatMul(false, n, d, w, a.attended[from*w:], w, &l.output, a.mid[from*d:], d, true)
	m.normalise(a.midNormed, a.midRstd, a.mid, l.mlpNorm, from, to)
	kernel.MatMul(false, n, 2*f, d, a.midNormed[from*d:], d, &l.gateUp, a.gateUp[from*2*f:], 2*f, false)
	for i := from; i < to; i++ {
		gate, up := a.gateUp[i*2*f:i*2*f+f], a.gateUp[i*2*f+f:(i+1)*2*f]
		kernel.SiLUMul(a.gated[i*f:(i+1)*f], gate, up)
	}
	copy(a.out[from*d:to*d], a.mid[from*d:to*d])
	kernel.MatMul(false, n, d, f, a.gated[from*f:], f, &l.down, a.out[from*d:], d, true)
}
