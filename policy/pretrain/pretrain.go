package pretrain

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/policy/tokenizer"
	"github.com/lightswarm/lightswarm/policy/transformer"
)

// Run trains a policy. progress is called after every step and may be nil. The error wraps ErrGate if all rounds went
// by without the ability; report then says how far it came.
func Run(ctx context.Context, o Options, progress func(Progress)) (*policy.Snapshot, Report, error) {
	if progress == nil {
		progress = func(Progress) {}
	}
	tok, err := trainTokenizer(o)
	if err != nil {
		return nil, Report{}, fmt.Errorf("train the tokenizer: %w", err)
	}
	template, err := chat.NewTemplate(chat.Lightswarm1, tok)
	if err != nil {
		return nil, Report{}, err
	}
	o.Model.Vocab = tok.VocabSize()
	if err := o.Model.Validate(); err != nil {
		return nil, Report{}, err
	}
	r := &run{
		Options:  o,
		template: template,
		trainer:  transformer.NewTrainer(transformer.Init(o.Model, o.Seed), transformer.Options{Workers: o.Workers}),
		report:   Report{Vocabulary: tok.VocabSize(), Parameters: o.Model.Parameters()},
	}
	if err := r.checkLengths(); err != nil {
		return nil, r.report, err
	}
	var stop func()
	r.next, stop = iter.Pull2(o.Demonstrations)
	defer stop()
	for r.report.Rounds < o.MaxRounds {
		if err := r.round(ctx, progress); err != nil {
			return nil, r.report, err
		}
		snapshot, err := policy.New(o.Model.JSON(), tok, template.Name(),
			policy.GenerationConfig{Stop: []int32{template.Stop()}}, r.trainer.Released())
		if err != nil {
			return nil, r.report, err
		}
		if err := r.measure(ctx, snapshot); err != nil {
			return nil, r.report, fmt.Errorf("measure after round %d: %w", r.report.Rounds, err)
		}
		measured := r.report
		progress(Progress{Round: r.report.Rounds, Step: r.report.Steps, Loss: r.report.Loss, Measured: &measured})
		if err = o.Gate.check(r.report); err == nil && r.report.Rounds >= min(o.MinRounds, o.MaxRounds) {
			return snapshot, r.report, nil
		} else if r.report.Rounds == o.MaxRounds {
			return nil, r.report, err
		}
	}
	return nil, r.report, fmt.Errorf("%w: no rounds were allowed", ErrGate)
}

// trainTokenizer learns the vocabulary from what prompts and completions say.
func trainTokenizer(o Options) (*tokenizer.Tokenizer, error) {
	specials := chat.Specials()
	plain, err := tokenizer.Train(func(func(string) bool) {}, len(specials)+256, specials)
	if err != nil {
		return nil, err
	}
	var bad error
	tok, err := tokenizer.Train(texts(plain, o.Demonstrations, o.TokenizerTexts, &bad), o.Model.Vocab, specials)
	return tok, errors.Join(bad, err)
}

// run is one training under way.
type run struct {
	Options
	template *chat.Template
	trainer  *transformer.Trainer
	next     func() (Demonstration, error, bool)
	shown    int // demonstrations
	report   Report
}

// round trains RoundSteps steps.
func (r *run) round(ctx context.Context, progress func(Progress)) error {
	r.report.Rounds++
	r.report.Loss = 0
	tail := (r.RoundSteps + 9) / 10
	for i := range r.RoundSteps {
		if err := ctx.Err(); err != nil {
			return err
		}
		batch, trained, err := r.batch()
		if err != nil {
			return err
		}
		var sum float64
		err = r.trainer.Accumulate(batch, func(_ int, logProbs, _, grad []float32) {
			for k, l := range logProbs {
				sum -= float64(l)
				grad[k] = -1 / float32(trained)
			}
		})
		if err != nil {
			return fmt.Errorf("step %d: %w", r.report.Steps, err)
		}
		norm := r.trainer.Step(transformer.AdamW{
			LR: r.rate(i), Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8, WeightDecay: 0.01, ClipNorm: 1,
		})
		if math.IsNaN(norm) || math.IsInf(norm, 0) {
			return fmt.Errorf("step %d: the gradient's norm is %v", r.report.Steps, norm)
		}
		r.report.Steps++
		loss := sum / float64(trained)
		if i >= r.RoundSteps-tail {
			r.report.Loss += loss / float64(tail)
		}
		progress(Progress{Round: r.report.Rounds, Step: r.report.Steps, Loss: loss})
	}
	return nil
}

// rate is the learning rate of a round's step i.
func (r *run) rate(i int) float64 {
	if i < r.Warmup {
		return r.LearningRate * float64(i+1) / float64(r.Warmup)
	}
	left := float64(r.RoundSteps-i) / float64(r.RoundSteps-r.Warmup)
	return r.LearningRate * max(left, 0.05)
}

// maxIdle is how many batches' worth of demonstrations may go by from which nothing is learnt: the roles that are taught may
// be rare in them, and are missing if they do not come in so many.
const maxIdle = 32

// batch takes the next demonstrations, and counts their trained tokens. It takes more of them until there are any.
func (r *run) batch() (batch []transformer.Sequence, trained int, err error) {
	for n := 0; n < r.BatchSize || trained == 0; n++ {
		if n == maxIdle*r.BatchSize {
			return nil, 0, fmt.Errorf("nothing is learnt from %d demonstrations: no call in them is of a role that is taught", n)
		}
		d, err, ok := r.next()
		if !ok {
			err = errors.New("there are no more")
		}
		var shown []transformer.Sequence
		if err == nil {
			shown, err = r.sequences(d)
		}
		if err != nil {
			return nil, 0, fmt.Errorf("demonstration %d: %w", r.shown, err)
		}
		r.shown++
		for _, s := range shown {
			if len(s.Train) > 0 {
				batch = append(batch, s)
			}
			trained += len(s.Train)
			r.report.Conversations++
			r.report.Tokens += len(s.Tokens)
		}
	}
	r.report.Trained += trained
	return batch, trained, nil
}

// measure fills in what the gate looks at.
func (r *run) measure(ctx context.Context, s *policy.Snapshot) (err error) {
	r.report.Digest = s.Digest()
	r.report.Measured = false
	if r.report.Reachable, err = r.reachable(); err != nil || r.report.Reachable < r.Gate.MinReachable {
		return err
	}
	r.report.Ability, err = r.Measure(ctx, s)
	r.report.Measured = true
	return err
}

// reachable is the share of held-out right demonstrations that have at least the gate's probability.
func (r *run) reachable() (float64, error) {
	var batch []transformer.Sequence
	var ends []int // of each demonstration in batch
	for d, err := range r.Right {
		if len(ends) == r.HeldOut {
			break
		}
		if err != nil {
			return 0, err
		}
		shown, err := r.sequences(d)
		if err != nil {
			return 0, err
		}
		batch = append(batch, shown...)
		ends = append(ends, len(batch))
	}
	out, err := r.trainer.Forward(batch)
	if err != nil {
		return 0, err
	}
	n, from := 0, 0
	for _, end := range ends {
		sum := 0.0
		for _, logProbs := range out.LogProbs[from:end] {
			for _, l := range logProbs {
				sum += float64(l)
			}
		}
		if from = end; sum >= math.Log(r.Gate.ReachableProbability) {
			n++
		}
	}
	return float64(n) / float64(max(len(ends), 1)), nil
}
