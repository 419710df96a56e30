package transformer

import (
	"fmt"

	"github.com/lightswarm/lightswarm/policy/kernel"
)

// Segment is one sequence's share of a decoding step: some tokens that follow those in its cache.
type Segment struct {
	Cache *Cache
	// Tokens are appended to the cache; there is at least one.
	Tokens []int32
	// Wanted is how many of the last Tokens need the logits of their successor.
	Wanted int
}

// Decoder runs decoding steps. It holds scratch memory only and serves any number of models, one step at a time.
type Decoder struct {
	team    team
	workers []decodeWorker
}

// NewDecoder returns a decoder that divides a step among threads goroutines, which end with the step.
func NewDecoder(threads int) *Decoder {
	threads = max(threads, 1)
	return &Decoder{team(threads), make([]decodeWorker, threads)}
}

// Step appends every segment's tokens to its cache, and calls visit with the logits of each wanted successor: token
// counts the segment's wanted tokens from 0. visit owns the logits until it returns and may overwrite them; calls for
// different segments may happen at the same time, those for one segment come in order.
//
// A segment's logits have the bits of Trainer.Forward on the whole sequence, whatever else is in the batch, however the
// sequence was cut into steps and however many threads run. Each segment needs its own cache. Step panics if a
// token is not in the vocabulary or a sequence outgrows the context.
func (d *Decoder) Step(m *Model, batch []Segment, visit func(segment, token int, logits []float32)) {
	rows := 0
	for i := range batch {
		s := &batch[i]
		s.check(m)
		s.Cache.reserve(s.Cache.length + len(s.Tokens))
		rows += len(s.Tokens)
	}
	if rows == 0 {
		return
	}
	// A thread runs whole segments, so that the rows of one never wait for another thread.
	starts := d.share(batch, rows)
	d.team.do(len(starts)-1, func(worker, run int) {
		d.workers[worker].step(m, batch, starts[run], starts[run+1], visit)
	})
	for i := range batch {
		batch[i].Cache.length += len(batch[i].Tokens)
	}
}

func (s *Segment) check(m *Model) {
	if s.Cache.config != m.config {
		panic("transformer: Step: a cache of another model's shape")
	}
	if len(s.Tokens) == 0 || s.Wanted < 0 || s.Wanted > len(s.Tokens) {
		panic(fmt.Sprintf("transformer: Step: %d of %d tokens wanted", s.Wanted, len(s.Tokens)))
	}
	for _, token := range s.Tokens {
		if token < 0 || int(token) >= m.config.Vocab {
			panic(fmt.Sprintf("transformer: Step: token %d is not one of %d", token, m.config.Vocab))
		}
	}
}

// share cuts the batch into runs of segments with about equally many rows, one for each thread that gets any: run w is
// [starts[w], starts[w+1]).
func (d *Decoder) share(batch []Segment, rows int) (starts []int) {
	threads, done, last := int(d.team), 0, -1
	for i := range batch {
		// The run that the middle of segment i falls into, if runs were cut at exact shares of the rows.
		if w := (2*done + len(batch[i].Tokens)) * threads / (2 * rows); w > last {
			starts, last = append(starts, i), w
		}
		done += len(batch[i].Tokens)
	}
	return append(starts, len(batch))
}

// decodeWorker is the scratch memory of one thread.
type decodeWorker struct {
	tokens, positions []int32
	stream, other     []float32 // the residual stream on the two ends of a layer
	a                 activations
	scores            []float32
	normed            []float32
	logits            []float32
}

func (w *decodeWorker) step(m *Model, batch []Segment, first, end int, visit func(segment, token int, logits []float32)) {
	w.tokens, w.positions = w.tokens[:0], w.positions[:0]
	for i := first; i < end; i++ {
		s := &batch[i]
		w.tokens = append(w.tokens, s.Tokens...)
		for t := range s.Tokens {
			w.positions = append(w.positions, int32(s.Cache.length+t))
		}
	}
	n := len(w.tokens)
	w.a.grow(&m.config, n)
	w.stream = resize(w.stream, n*m.config.Hidden)
	w.other = resize(w.other, n*m.config.Hidden)
	m.lookUp(w.stream, w.tokens)
	for l := range m.layers {
		w.a.in, w.a.out = w.stream, w.other
		m.project(l, &w.a, w.positions, 0, n)
		row := 0
		for i := first; i < end; i++ {
			for range batch[i].Tokens {
				w.attend(m, batch[i].Cache, l, row)
				row++
			}
		}
		m.finish(l, &w.a, 0, n)
		w.stream, w.other = w.other, w.stream
	}
	w.visit(m, batch, first, end, visit)
}

// attend computes one row's attention over the positions before it and its own, and then appends its key and value to
// the cache. Storing comes last because what it writes lies in cache lines that the scores have just read.
func (w *decodeWorker) attend(m *Model, cache *Cache, layer, row int) {
	c, position := &m.config, int(w.positions[row])
	h, group := c.HeadDim, c.Heads/c.KVHeads
	qkv := w.a.qkv[row*c.qkvWidth() : (row+1)*c.qkvWidth()]
	out := w.a.attended[row*c.queryWidth() : (row+1)*c.queryWidth()]
	w.scores = resize(w.scores, position+1)
	before, own := w.scores[:position], w.scores[position:]
	for g := range c.KVHeads {
		keys, values := cache.keys(layer, g), cache.values(layer, g)
		key, value := qkv[c.keyColumn(g):][:h], qkv[c.valueColumn(g):][:h]
		for j := g * group; j < (g+1)*group; j++ {
			query, sum := qkv[j*h:(j+1)*h], out[j*h:(j+1)*h]
			kernel.VecMat(h, position, query, keys, cache.capacity, before, false)
			kernel.VecMat(h, 1, query, key, 1, own, false)
			kernel.SoftmaxScaled(w.scores, m.scale)
			kernel.VecMat(position, h, before, values, h, sum, false)
			kernel.VecMat(1, h, own, value, h, sum, true)
		}
		cache.store(layer, g, position, key, value)
	}
}

// headRows is how many rows of logits exist at a time.
const headRows = 96

// visit computes the wanted logits and hands them out.
func (w *decodeWorker) visit(m *Model, batch []Segment, first, end int, visit func(segment, token int, logits []float32)) {
	d, vocab := m.config.Hidden, m.config.Vocab
	type place struct{ segment, token int }
	var places [headRows]place
	n := 0
	w.normed = resize(w.normed, headRows*d)
	flush := func() {
		if n == 0 {
			return
		}
		w.logits = resize(w.logits, n*vocab)
		kernel.MatMul(false, n, vocab, d, w.normed, d, &m.head, w.logits, vocab, false)
		for i, p := range places[:n] {
			visit(p.segment, p.token, w.logits[i*vocab:(i+1)*vocab])
		}
		n = 0
	}
	row := 0
	for i := first; i < end; i++ {
		row += len(batch[i].Tokens)
		for t := range batch[i].Wanted {
			x := w.stream[(row-batch[i].Wanted+t)*d:][:d]
			kernel.RMSNorm(w.normed[n*d:(n+1)*d], x, m.norm, m.epsilon)
			places[n] = place{i, t}
			if n++; n == headRows {
				flush()
			}
		}
	}
	flush()
}
