package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lightswarm/lightswarm/learner"
	"github.com/lightswarm/lightswarm/learner/row"
	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/policy/transformer"
)

// pass is what one call of a trainer computed: a micro-batch, or an update if there is none.
type pass struct {
	batch     []transformer.Sequence
	gradients [][]float32 // of each sequence's log-probs
	update    transformer.AdamW
}

// recorder is the learner's own trainer, and keeps what it is told to do. Keeping it counts as the learner's work.
type recorder struct {
	learner.Trainer
	waste  time.Duration // of each update
	passes []pass
}

// Accumulate implements learner.Trainer.
func (r *recorder) Accumulate(rows []row.Row, loss func(i int, logProbs, entropies, gradient []float32)) error {
	p := pass{batch: make([]transformer.Sequence, len(rows)), gradients: make([][]float32, len(rows))}
	for i, l := range rows {
		if len(l.Grammars) > 0 {
			return errors.New("a row with a grammar, which the bare kernel cannot repeat")
		}
		p.batch[i] = transformer.Sequence{Tokens: l.Tokens, Train: l.Positions}
	}
	err := r.Trainer.Accumulate(rows, func(i int, logProbs, entropies, gradient []float32) {
		loss(i, logProbs, entropies, gradient)
		p.gradients[i] = slices.Clone(gradient)
	})
	r.passes = append(r.passes, p)
	return err
}

// Step implements learner.Trainer.
func (r *recorder) Step(rate float64, o learner.Optimiser) (float64, error) {
	for began := time.Now(); time.Since(began) < r.waste; {
		continue
	}
	r.passes = append(r.passes, pass{update: transformer.AdamW{
		LR: rate, Beta1: o.Beta1, Beta2: o.Beta2, Epsilon: o.Epsilon, WeightDecay: o.WeightDecay, ClipNorm: o.ClipNorm,
	}})
	return r.Trainer.Step(rate, o)
}

// kernel is the bare training kernel: forward, backward and AdamW.
type kernel struct{ trainer *transformer.Trainer }

// newKernel starts from the policy that the learner starts from.
func newKernel(base *policy.Snapshot) (*kernel, error) {
	c, err := transformer.ParseConfig(base.ConfigJSON)
	if err != nil {
		return nil, err
	}
	p, err := transformer.FromTensors(c, base.Tensors)
	if err != nil {
		return nil, err
	}
	return &kernel{transformer.NewTrainer(p, transformer.Options{Workers: 1})}, nil
}

// repeat computes what was recorded.
func (k *kernel) repeat(passes []pass) error {
	for _, p := range passes {
		if p.batch == nil {
			k.trainer.Step(p.update)
			continue
		}
		err := k.trainer.Accumulate(p.batch, func(i int, _, _, gradient []float32) { copy(gradient, p.gradients[i]) })
		if err != nil {
			return err
		}
	}
	return nil
}

// compare says whether the kernel has come to the same weights and optimiser as the learner.
func (k *kernel) compare(t learner.Trainer) error {
	state, err := t.State()
	if err != nil {
		return err
	}
	if !bytes.Equal(state, k.trainer.State()) {
		return fmt.Errorf("after %d updates the bare kernel has not come to the learner's bits: it did not do the same work", k.trainer.Steps())
	}
	return nil
}
