package transformer

import (
	"math"

	"github.com/lightswarm/lightswarm/policy/kernel"
)

// AdamW holds the hyper-parameters of one update (Loshchilov and Hutter, 2019). They may change from step to step.
type AdamW struct {
	// LR is the learning rate.
	LR float64
	// Beta1 and Beta2 are the decays of the gradient's running mean and mean square, in [0, 1).
	Beta1, Beta2 float64
	Epsilon      float64
	// WeightDecay is decoupled: LR*WeightDecay of a weight is taken away. Gains of norms do not decay.
	WeightDecay float64
	// ClipNorm is the largest norm of the whole gradient that is not scaled down; 0 means that none is.
	ClipNorm float64
}

// Step updates the weights with the accumulated gradients and clears them. It returns the gradients' norm before
// clipping. If that is not finite, the gradients are thrown away, nothing else changes, and Steps does not count it.
func (t *Trainer) Step(o AdamW) (gradNorm float64) {
	if t.config.TieEmbeddings {
		kernel.Add(t.gradients.head, t.headGradient)
		clear(t.headGradient)
	}
	gradNorm = t.gradientNorm()
	if math.IsNaN(gradNorm) || math.IsInf(gradNorm, 0) {
		clear(t.gradients.Flat)
		return gradNorm
	}
	scale := 1.0
	if o.ClipNorm > 0 && gradNorm > o.ClipNorm {
		scale = o.ClipNorm / gradNorm
	}
	t.steps++
	decayed := kernel.NewAdamWStep(o.LR, o.Beta1, o.Beta2, o.Epsilon, o.WeightDecay, scale, t.steps)
	plain := decayed
	plain.WeightDecay = 0
	named := t.masters.Named
	t.team.do(len(named), func(_, i int) {
		step := &decayed
		if named[i].Rows == 0 {
			step = &plain
		}
		g := t.gradients.Named[i].Values
		kernel.AdamW(named[i].Values, t.moments[0].Named[i].Values, t.moments[1].Named[i].Values, g, *step)
		clear(g)
	})
	t.release()
	return gradNorm
}

// gradientNorm is the Euclidean norm over all weights: squares are summed by tensor, then over tensors in order.
func (t *Trainer) gradientNorm() float64 {
	named := t.gradients.Named
	squares := make([]float64, len(named))
	t.team.do(len(named), func(_, i int) { squares[i] = kernel.SumSquares(named[i].Values) })
	sum := 0.0
	for _, s := range squares {
		sum += s
	}
	return math.Sqrt(sum)
}

// release makes the masters, rounded to bf16, the weights of the passes to come.
func (t *Trainer) release() {
	named := t.masters.Named
	t.team.do(len(named), func(_, i int) { roundBF16(t.working.Named[i].Values, named[i].Values) })
	t.model.pack(t.working, (*kernel.Packed).Pack)
	c := t.config
	for i := range t.backward {
		l, w := &t.backward[i], &t.working.layers[i]
		l.qkv.Pack(false, c.Hidden, c.qkvWidth(), w.qkv, c.Hidden)
		l.output.Pack(false, c.queryWidth(), c.Hidden, w.output, c.queryWidth())
		l.gateUp.Pack(false, c.Hidden, 2*c.Intermediate, w.gateUp, c.Hidden)
		l.down.Pack(false, c.Intermediate, c.Hidden, w.down, c.Intermediate)
	}
	t.headBack.Pack(false, c.Hidden, c.Vocab, t.working.head, c.Hidden)
}
