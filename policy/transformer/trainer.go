package transformer

import (
	"fmt"

	"github.com/lightswarm/lightswarm/policy/kernel"
	"github.com/lightswarm/lightswarm/policy/safetensors"
)

// waveRows is how many rows of a batch a trainer has in memory at once, for each worker.
const waveRows = 384

// Trainer changes a model's weights by gradient descent. It keeps float32 masters; every forward and backward pass uses
// the masters rounded to bfloat16, which is what a release holds, so that the log-probs of a trainer are those of a
// decoder of its release, to the bit. Its results do not depend on the number of workers.
//
// A trainer allocates only when a batch is larger than all before. It is not safe for concurrent use.
type Trainer struct {
	config    Config
	team      team
	masters   *Parameters
	working   *Parameters // the masters rounded to bf16
	moments   [2]*Parameters
	gradients *Parameters
	// headGradient is the gradient of tied embeddings from their use as the head. It is kept apart until Step, so that
	// both chains of additions run in the order of the rows.
	headGradient []float32
	steps        int

	model    *Model // working, packed for the forward pass
	backward []backwardLayer
	headBack kernel.Packed

	wave    wave
	forward forwardMemory
	back    backwardMemory
	workers []trainWorker
}

// backwardLayer is a layer's matrices packed for the way back, from a gradient of the output to one of the input.
type backwardLayer struct{ qkv, output, gateUp, down kernel.Packed }

// trainWorker is the scratch memory of one thread.
type trainWorker struct {
	attention attentionScratch
	packed    kernel.Packed
	logits    []float32
}

// Options are the settings of a trainer that change no result.
type Options struct {
	// Workers is how many goroutines work at a time; 0 means 1. They end before the call that started them.
	Workers int
}

// NewTrainer returns a trainer whose masters start as a copy of p.
func NewTrainer(p *Parameters, o Options) *Trainer {
	c := p.Config
	t := &Trainer{
		config:    c,
		team:      team(max(o.Workers, 1)),
		masters:   p.Clone(),
		working:   NewParameters(c),
		moments:   [2]*Parameters{NewParameters(c), NewParameters(c)},
		gradients: NewParameters(c),
		model:     newModel(c),
		backward:  make([]backwardLayer, c.Layers),
	}
	t.headGradient = t.gradients.head
	if c.TieEmbeddings {
		t.headGradient = make([]float32, len(t.gradients.head))
	}
	t.workers = make([]trainWorker, t.team)
	t.forward.layers = make([]activations, c.Layers)
	t.forward.streams = make([][]float32, c.Layers+1)
	t.release()
	return t
}

// Config is the model's shape.
func (t *Trainer) Config() Config { return t.config }

// Steps is the number of updates so far.
func (t *Trainer) Steps() int { return t.steps }

// Parameters returns a copy of the weights that forward passes use: the masters rounded to bf16.
func (t *Trainer) Parameters() *Parameters { return t.working.Clone() }

// Released returns the weights that forward passes use as the bf16 tensors of a checkpoint.
func (t *Trainer) Released() []safetensors.Tensor { return t.working.Tensors(safetensors.BF16) }

// Outputs are what a forward pass says about the trained tokens of a batch, by sequence and then in the order of its
// Train.
type Outputs struct {
	// LogProbs are natural logarithms at temperature 1, on the grid of LogProbGrid.
	LogProbs [][]float32
	// Entropies are those of the distributions that the tokens were drawn from, in nats.
	Entropies [][]float32
}

// Forward computes the log-probs and entropies of a batch's trained tokens.
func (t *Trainer) Forward(batch []Sequence) (Outputs, error) {
	o := Outputs{make([][]float32, len(batch)), make([][]float32, len(batch))}
	err := t.waves(batch, func() {
		t.forwardPass()
		for i, share := range t.wave.shares {
			o.LogProbs[t.wave.first+i] = append([]float32{}, t.forward.logProbs[share.from:share.to]...)
			o.Entropies[t.wave.first+i] = append([]float32{}, t.forward.entropies[share.from:share.to]...)
		}
	})
	return o, err
}

// Hidden computes what the output head reads to predict each trained token of a batch: the residual stream after the last
// layer, normalised, Config.Hidden numbers. It depends on the tokens before that one alone, to the bit, and no output is
// computed from it. The result is by sequence, then in the order of Train.
func (t *Trainer) Hidden(batch []Sequence) ([][][]float32, error) {
	hidden := make([][][]float32, len(batch))
	d := t.config.Hidden
	err := t.waves(batch, func() {
		t.runLayers()
		for i, share := range t.wave.shares {
			states := make([][]float32, 0, share.to-share.from)
			for j := share.from; j < share.to; j++ {
				states = append(states, append([]float32{}, t.forward.normed[j*d:(j+1)*d]...))
			}
			hidden[t.wave.first+i] = states
		}
	})
	return hidden, err
}

// A Loss gives the derivative of the loss to each trained token's log-prob. It is called once for each sequence that
// has trained tokens, in order, on the goroutine that called Accumulate; grad comes in zero, and all slices are valid
// until it returns. Entropies are there to be reported: no gradient flows through them.
type Loss func(sequence int, logProbs, entropies, grad []float32)

// Accumulate adds the gradient of the loss over batch to the gradients that the next Step uses. The order of the
// sequences matters to the last bit; cutting a batch into several calls does not. Memory is bounded by the longest
// sequence and some hundred rows, whatever the size of the batch. On an error nothing was added.
func (t *Trainer) Accumulate(batch []Sequence, loss Loss) error {
	return t.waves(batch, func() {
		t.forwardPass()
		grad := resize(t.back.logProbs, len(t.wave.trained))
		t.back.logProbs = grad
		clear(grad)
		for i, share := range t.wave.shares {
			if share.from < share.to {
				loss(t.wave.first+i, t.forward.logProbs[share.from:share.to], t.forward.entropies[share.from:share.to], grad[share.from:share.to])
			}
		}
		t.backwardPass()
	})
}

// waves cuts batch into waves, and calls pass with each in t.wave.
func (t *Trainer) waves(batch []Sequence, pass func()) error {
	for i := range batch {
		if err := batch[i].Check(t.config); err != nil {
			return fmt.Errorf("sequence %d: %w", i, err)
		}
	}
	for next := 0; next < len(batch); {
		next = t.wave.fill(batch, next, waveRows*int(t.team))
		pass()
	}
	return nil
}
