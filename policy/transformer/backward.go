package transformer

import "github.com/lightswarm/lightswarm/policy/kernel"

// backwardMemory holds the gradients of one layer's activations, each [rows][width], and of what surrounds the layers.
type backwardMemory struct {
	logProbs []float32 // by trained row

	out       []float32 // Hidden: of the residual stream that leaves the layer
	mid       []float32 // Hidden
	in        []float32 // Hidden
	normed    []float32 // Hidden: of the input of the matrix that is being passed
	gated     []float32 // Intermediate
	gateUp    []float32 // 2*Intermediate
	attended  []float32 // queryWidth
	qkv       []float32 // qkvWidth
	head      []float32 // by trained row, Hidden
	gainParts []float32 // by block, Hidden
	products  []weightProduct
}

// backwardPass adds the wave's gradients to t.gradients, given those of its log-probs.
func (t *Trainer) backwardPass() {
	if len(t.wave.trained) == 0 {
		return
	}
	b, c, n := &t.back, &t.config, len(t.wave.tokens)
	b.out = resize(b.out, n*c.Hidden)
	b.mid = resize(b.mid, n*c.Hidden)
	b.in = resize(b.in, n*c.Hidden)
	b.normed = resize(b.normed, n*c.Hidden)
	b.gated = resize(b.gated, n*c.Intermediate)
	b.gateUp = resize(b.gateUp, n*2*c.Intermediate)
	b.attended = resize(b.attended, n*c.queryWidth())
	b.qkv = resize(b.qkv, n*c.qkvWidth())
	b.gainParts = resize(b.gainParts, max(len(t.wave.blocks), len(t.wave.trainedBlocks))*c.Hidden)
	t.backwardHead()
	for l := c.Layers - 1; l >= 0; l-- {
		t.backwardFinish(l)
		a := &t.forward.layers[l]
		t.eachKeyHead(func(s *attentionScratch, rows span, g int) {
			s.backward(t.model, a, b.attended, b.qkv, rows, g)
		})
		t.backwardProject(l)
		t.weightGradients(l)
		b.out, b.in = b.in, b.out
	}
	t.backwardLookUp()
}

// backwardHead passes the output head: from the gradients of the log-probs to b.out.
func (t *Trainer) backwardHead() {
	b, f, w := &t.back, &t.forward, &t.wave
	d, vocab := t.config.Hidden, t.config.Vocab
	b.head = resize(b.head, len(w.trained)*d)
	clear(b.out)
	t.team.do(len(w.trainedRuns), func(_, i int) {
		r := w.trainedRuns[i]
		for j := r.from; j < r.to; j++ {
			// The gradient of a log-prob is 1 at its token minus the probabilities.
			g := b.logProbs[j]
			factor := -g / f.sums[j]
			row := f.exps[j*vocab : (j+1)*vocab]
			for k, e := range row {
				row[k] = e * factor
			}
			row[w.targets[j]] += g
		}
		kernel.MatMul(false, r.to-r.from, d, vocab, f.exps[r.from*vocab:], vocab, &t.headBack, b.head[r.from*d:], d, false)
		for k := r.firstBlock; k < r.endBlock; k++ {
			part := b.gainParts[k*d : (k+1)*d]
			clear(part)
			for j := w.trainedBlocks[k].from; j < w.trainedBlocks[k].to; j++ {
				dx := b.out[int(w.trained[j])*d:][:d]
				kernel.RMSNormBackward(dx, part, b.head[j*d:(j+1)*d], f.gathered[j*d:(j+1)*d], t.model.norm, f.rstd[j], false)
			}
		}
	})
	t.addGainParts(t.gradients.norm, len(w.trainedBlocks))
	b.products = append(b.products[:0], weightProduct{t.headGradient, f.exps, f.normed, vocab, d, len(w.trained)})
	t.multiply()
}

// backwardFinish passes the second half of a layer: from b.out to b.mid and b.attended.
func (t *Trainer) backwardFinish(layer int) {
	b, w, c := &t.back, &t.wave, &t.config
	a, l := &t.forward.layers[layer], &t.backward[layer]
	d, f, width := c.Hidden, c.Intermediate, c.queryWidth()
	gain := t.model.layers[layer].mlpNorm
	t.team.do(len(w.runs), func(_, i int) {
		r := w.runs[i]
		n := r.to - r.from
		kernel.MatMul(false, n, f, d, b.out[r.from*d:], d, &l.down, b.gated[r.from*f:], f, false)
		for j := r.from; j < r.to; j++ {
			gate, up := 2*j*f, (2*j+1)*f
			kernel.SiLUMulBackward(b.gateUp[gate:gate+f], b.gateUp[up:up+f], b.gated[j*f:(j+1)*f], a.gateUp[gate:gate+f], a.gateUp[up:up+f])
		}
		kernel.MatMul(false, n, d, 2*f, b.gateUp[r.from*2*f:], 2*f, &l.gateUp, b.normed[r.from*d:], d, false)
		t.backwardNorm(r, b.mid, b.out, a.mid, a.midRstd, gain)
		kernel.MatMul(false, n, width, d, b.mid[r.from*d:], d, &l.output, b.attended[r.from*width:], width, false)
	})
	t.addGainParts(t.gradients.layers[layer].mlpNorm, len(w.blocks))
}

// backwardProject passes the first half of a layer: from b.mid and b.qkv to b.in.
func (t *Trainer) backwardProject(layer int) {
	b, w, c := &t.back, &t.wave, &t.config
	a, l := &t.forward.layers[layer], &t.backward[layer]
	d, width := c.Hidden, c.qkvWidth()
	gain := t.model.layers[layer].attentionNorm
	t.team.do(len(w.runs), func(_, i int) {
		r := w.runs[i]
		for j := r.from; j < r.to; j++ {
			t.model.rotate(b.qkv[j*width:], int(w.positions[j]), true)
		}
		kernel.MatMul(false, r.to-r.from, d, width, b.qkv[r.from*width:], width, &l.qkv, b.normed[r.from*d:], d, false)
		t.backwardNorm(r, b.in, b.mid, a.in, a.inRstd, gain)
	})
	t.addGainParts(t.gradients.layers[layer].attentionNorm, len(w.blocks))
}

// backwardNorm passes the RMSNorm at the start of a residual branch: dx = dy + the gradient through the norm, which
// comes from b.normed. The gain's gradient is left in b.gainParts.
func (t *Trainer) backwardNorm(r run, dx, dy, x, rstd, gain []float32) {
	b, d := &t.back, t.config.Hidden
	copy(dx[r.from*d:r.to*d], dy[r.from*d:])
	for k := r.firstBlock; k < r.endBlock; k++ {
		part := b.gainParts[k*d : (k+1)*d]
		clear(part)
		for j := t.wave.blocks[k].from; j < t.wave.blocks[k].to; j++ {
			kernel.RMSNormBackward(dx[j*d:(j+1)*d], part, b.normed[j*d:(j+1)*d], x[j*d:(j+1)*d], gain, rstd[j], true)
		}
	}
}

// addGainParts adds the gain gradients of the first n blocks to gain, in order.
func (t *Trainer) addGainParts(gain []float32, n int) {
	for k := range n {
		kernel.Add(gain, t.back.gainParts[k*len(gain):(k+1)*len(gain)])
	}
}

// backwardLookUp adds b.out to the gradients of the embeddings that were looked up.
func (t *Trainer) backwardLookUp() {
	d := t.config.Hidden
	t.columns(d, func(_, from, to int) {
		for i, token := range t.wave.tokens {
			at := int(token) * d
			kernel.Add(t.gradients.embed[at+from:at+to], t.back.out[i*d+from:i*d+to])
		}
	})
}

// weightProduct is one matrix's gradient: sum [outs][ins] += doutᵀ·in over n rows.
type weightProduct struct {
	sum, dout, in []float32
	outs, ins, n  int
}

// weightGradients adds the gradients of a layer's matrices.
func (t *Trainer) weightGradients(layer int) {
	b, c, n := &t.back, &t.config, len(t.wave.tokens)
	a, g := &t.forward.layers[layer], &t.gradients.layers[layer]
	b.products = append(b.products[:0],
		weightProduct{g.down, b.out, a.gated, c.Hidden, c.Intermediate, n},
		weightProduct{g.gateUp, b.gateUp, a.midNormed, 2 * c.Intermediate, c.Hidden, n},
		weightProduct{g.output, b.mid, a.attended, c.Hidden, c.queryWidth(), n},
		weightProduct{g.qkv, b.qkv, a.inNormed, c.qkvWidth(), c.Hidden, n},
	)
	t.multiply()
}

// multiply computes b.products, divided among the team by columns.
func (t *Trainer) multiply() {
	for _, p := range t.back.products {
		t.columns(p.ins, func(worker, from, to int) {
			packed := &t.workers[worker].packed
			packed.Pack(false, to-from, p.n, p.in[from:], p.ins)
			kernel.MatMul(true, p.outs, to-from, p.n, p.dout, p.outs, packed, p.sum[from:], p.ins, true)
		})
	}
}

// columns calls f for parts of [0, n) that cover it, one for each worker if there are enough columns.
func (t *Trainer) columns(n int, f func(worker, from, to int)) {
	const grain = 32 // kernels run panels of up to 32 columns
	units := (n + grain - 1) / grain
	parts := min(units, int(t.team))
	t.team.do(parts, func(worker, part int) {
		f(worker, part*units/parts*grain, min(n, (part+1)*units/parts*grain))
	})
}
