package learner

import (
	"fmt"

	"github.com/lightswarm/lightswarm/learner/row"
	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/policy/grammar"
	"github.com/lightswarm/lightswarm/policy/transformer"
)

// Trainer is the model that a learner trains. It is used by one goroutine. Its passes use exactly the weights that
// Released returns, so that the log-probs of tokens sampled from a release are those that the trainer computes.
type Trainer interface {
	// Context is the largest number of tokens of a sequence.
	Context() int
	// Hidden returns, for each of the Positions of each row, what the output head would read there: the last hidden state,
	// after the final norm, of the tokens before that position. All have one length. Only Tokens and Positions matter.
	Hidden(rows []row.Row) ([][][]float32, error)
	// Accumulate adds to the gradient what rows contribute. It calls loss once for each row, at any time but never
	// twice at once, with the log-probs of the row's Positions at temperature 1 and the entropies there; loss fills
	// gradient, zero at first, with its derivatives by the log-probs. For tokens of the row's Grammars all of this is of
	// the distribution over what the grammar allows.
	Accumulate(rows []row.Row, loss func(i int, logProbs, entropies, gradient []float32)) error
	// LogProbs returns the log-probs that Accumulate would hand to loss, by row, and changes nothing.
	LogProbs(rows []row.Row) ([][]float32, error)
	// Step updates the weights with the accumulated gradient, clears that, and returns its norm before clipping. When
	// the norm is not finite the weights stay as they are.
	Step(learningRate float64, o Optimiser) (gradientNorm float64, err error)
	// Released returns the weights in bf16.
	Released() ([]policy.Tensor, error)
	// State returns what Restore needs to continue with the same bits.
	State() ([]byte, error)
	// Restore takes over a state and drops what was accumulated.
	Restore(state []byte) error
}

// Embedded is the Trainer of the embedded engine.
type Embedded struct {
	trainer  *transformer.Trainer
	grammars *grammar.Cache
}

var _ Trainer = Embedded{}

// NewEmbedded returns a trainer that starts from a policy, with this many goroutines at a time.
func NewEmbedded(base *policy.Snapshot, workers int) (Embedded, error) {
	config, err := transformer.ParseConfig(base.ConfigJSON)
	if err != nil {
		return Embedded{}, fmt.Errorf("base policy: %w", err)
	}
	parameters, err := transformer.FromTensors(config, base.Tensors)
	if err != nil {
		return Embedded{}, fmt.Errorf("base policy: %w", err)
	}
	return Embedded{
		transformer.NewTrainer(parameters, transformer.Options{Workers: workers}),
		grammar.NewCache(base.Vocabulary(), keptGrammars),
	}, nil
}

// Context implements Trainer.
func (e Embedded) Context() int { return e.trainer.Config().Context }

// Hidden implements Trainer.
func (e Embedded) Hidden(rows []row.Row) ([][][]float32, error) {
	batch := make([]transformer.Sequence, len(rows))
	for i, r := range rows {
		batch[i] = transformer.Sequence{Tokens: r.Tokens, Train: r.Positions}
	}
	return e.trainer.Hidden(batch)
}

// Accumulate implements Trainer.
func (e Embedded) Accumulate(rows []row.Row, loss func(i int, logProbs, entropies, gradient []float32)) error {
	batch, err := e.batch(rows)
	if err != nil {
		return err
	}
	return e.trainer.Accumulate(batch, loss)
}

// LogProbs implements Trainer.
func (e Embedded) LogProbs(rows []row.Row) ([][]float32, error) {
	batch, err := e.batch(rows)
	if err != nil {
		return nil, err
	}
	o, err := e.trainer.Forward(batch)
	return o.LogProbs, err
}

// batch describes rows to the engine.
func (e Embedded) batch(rows []row.Row) ([]transformer.Sequence, error) {
	batch := make([]transformer.Sequence, len(rows))
	for i, r := range rows {
		sets, err := allowed(e.grammars, &r)
		if err != nil {
			return nil, fmt.Errorf("row %d: %w", i, err)
		}
		batch[i] = transformer.Sequence{Tokens: r.Tokens, Train: r.Positions, Allowed: sets}
	}
	return batch, nil
}

// Step implements Trainer.
func (e Embedded) Step(learningRate float64, o Optimiser) (float64, error) {
	return e.trainer.Step(transformer.AdamW{
		LR:          learningRate,
		Beta1:       o.Beta1,
		Beta2:       o.Beta2,
		Epsilon:     o.Epsilon,
		WeightDecay: o.WeightDecay,
		ClipNorm:    o.ClipNorm,
	}), nil
}

// Released implements Trainer.
func (e Embedded) Released() ([]policy.Tensor, error) { return e.trainer.Released(), nil }

// State implements Trainer.
func (e Embedded) State() ([]byte, error) { return e.trainer.State(), nil }

// Restore implements Trainer.
func (e Embedded) Restore(state []byte) error { return e.trainer.Restore(state) }
