package transformer

import "github.com/lightswarm/lightswarm/policy/kernel"

// forwardMemory is what the forward pass of a wave leaves behind for the backward pass.
type forwardMemory struct {
	streams [][]float32 // the residual stream before each layer, and after the last
	layers  []activations

	// By trained row:
	gathered  []float32 // [Hidden]: the residual stream after the last layer
	normed    []float32 // [Hidden]
	rstd      []float32
	exps      []float32 // [Vocab]: exp(logit - largest logit)
	sums      []float32 // of exps
	logProbs  []float32
	entropies []float32
}

// forwardPass computes the wave's log-probs and entropies.
func (t *Trainer) forwardPass() {
	t.runLayers()
	t.predict()
}

// runLayers runs all layers on the wave, and normalises what they leave in the trained rows.
func (t *Trainer) runLayers() {
	f, w, m := &t.forward, &t.wave, t.model
	n, d := len(w.tokens), t.config.Hidden
	for l := range f.streams {
		f.streams[l] = resize(f.streams[l], n*d)
	}
	for l := range f.layers {
		f.layers[l].grow(&t.config, n)
		f.layers[l].in, f.layers[l].out = f.streams[l], f.streams[l+1]
	}
	t.team.do(len(w.runs), func(_, i int) {
		r := w.runs[i]
		m.lookUp(f.streams[0][r.from*d:], w.tokens[r.from:r.to])
		m.project(0, &f.layers[0], w.positions, r.from, r.to)
	})
	for l := range f.layers {
		t.eachKeyHead(func(s *attentionScratch, rows span, g int) { s.attend(m, &f.layers[l], rows, g) })
		t.team.do(len(w.runs), func(_, i int) {
			r := w.runs[i]
			m.finish(l, &f.layers[l], r.from, r.to)
			if l+1 < len(f.layers) {
				m.project(l+1, &f.layers[l+1], w.positions, r.from, r.to)
			}
		})
	}
	t.gather()
}

// eachKeyHead calls f for every sequence and key head of the wave.
func (t *Trainer) eachKeyHead(f func(s *attentionScratch, rows span, g int)) {
	heads := t.config.KVHeads
	t.team.do(len(t.wave.sequences)*heads, func(worker, task int) {
		if rows := t.wave.sequences[task/heads]; rows.from < rows.to {
			f(&t.workers[worker].attention, rows, task%heads)
		}
	})
}

// gather normalises the trained rows.
func (t *Trainer) gather() {
	f, w := &t.forward, &t.wave
	n, d := len(w.trained), t.config.Hidden
	f.gathered = resize(f.gathered, n*d)
	f.normed = resize(f.normed, n*d)
	f.rstd = resize(f.rstd, n)
	last := f.streams[len(f.layers)]
	t.team.do(len(w.trainedRuns), func(_, i int) {
		r := w.trainedRuns[i]
		for j := r.from; j < r.to; j++ {
			copy(f.gathered[j*d:(j+1)*d], last[int(w.trained[j])*d:])
		}
		t.model.normalise(f.normed, f.rstd, f.gathered, t.model.norm, r.from, r.to)
	})
}

// predict runs the output head on the trained rows.
func (t *Trainer) predict() {
	f, w, m := &t.forward, &t.wave, t.model
	n, d, vocab := len(w.trained), t.config.Hidden, t.config.Vocab
	f.exps = resize(f.exps, n*vocab)
	f.sums = resize(f.sums, n)
	f.logProbs = resize(f.logProbs, n)
	f.entropies = resize(f.entropies, n)
	t.team.do(len(w.trainedRuns), func(worker, i int) {
		r := w.trainedRuns[i]
		kernel.MatMul(false, r.to-r.from, vocab, d, f.normed[r.from*d:], d, &m.head, f.exps[r.from*vocab:], vocab, false)
		logits := resize(t.workers[worker].logits, vocab)
		t.workers[worker].logits = logits
		for j := r.from; j < r.to; j++ {
			row := f.exps[j*vocab : (j+1)*vocab]
			Restrict(row, w.allowed[j])
			copy(logits, row)
			peak, sum := kernel.LogSoftmaxParts(row)
			f.sums[j] = sum
			f.logProbs[j] = LogProb(logits[w.targets[j]], peak, sum)
			if w.allowed[j] != nil {
				lift(logits, peak)
			}
			f.entropies[j] = entropy(logits, row, peak, sum)
		}
	})
}

// entropy returns ln(sum) - Σ e·(logit - peak) / sum, which is -Σ p·ln p for p = e/sum.
func entropy(logits, e []float32, peak, sum float32) float32 {
	e = e[:len(logits)]
	var s0, s1 float32
	i := 0
	for ; i+2 <= len(logits); i += 2 {
		s0 += float32(e[i] * (logits[i] - peak))
		s1 += float32(e[i+1] * (logits[i+1] - peak))
	}
	if i < len(logits) {
		s0 += float32(e[i] * (logits[i] - peak))
	}
	return float32(kernel.Log(float64(sum)) - float64(s0+s1)/float64(sum))
}

// lift sets logits of minus infinity to peak, so that 0·(logit - peak) is 0: such a token adds nothing to the entropy.
func lift(logits []float32, peak float32) {
	for i, l := range logits {
		if l == minusInfinity {
			logits[i] = peak
		}
	}
}
