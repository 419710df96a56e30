package learner

import (
	"fmt"
	"math"

	"github.com/lightswarm/lightswarm/learner/loss"
	"github.com/lightswarm/lightswarm/learner/row"
)

// tokenStats sums what the trained tokens of some rows show.
type tokenStats struct {
	rows, tokens, trained, clipped int
	loss, ratio, kl, entropy       float64
	ratioSquares                   float64
	ratioMax                       float64
	onPolicyTokens                 int
	onPolicyError                  float64
}

// add adds another sum.
func (s *tokenStats) add(o tokenStats) {
	s.rows += o.rows
	s.tokens += o.tokens
	s.trained += o.trained
	s.clipped += o.clipped
	s.loss += o.loss
	s.ratio += o.ratio
	s.ratioSquares += o.ratioSquares
	s.kl += o.kl
	s.entropy += o.entropy
	s.ratioMax = max(s.ratioMax, o.ratioMax)
	s.onPolicyTokens += o.onPolicyTokens
	s.onPolicyError = max(s.onPolicyError, o.onPolicyError)
}

// tokenLoss fills gradient with the derivatives of a row's weighted loss. unchanged says that the weights are still
// those of the release that tokens of lag 0 were sampled from; of altered rows that says nothing about the sampler.
func tokenLoss(f loss.Function, r *trainRow, logProbs, entropies, gradient []float32, unchanged bool) tokenStats {
	s := tokenStats{rows: 1, tokens: len(r.Tokens), trained: len(r.Positions)}
	tokens := make([]loss.Token, len(r.Positions))
	f.Apply(loss.Row{New: widened(logProbs), Old: widened(r.LogProbs), Advantages: r.Advantages, Lag: r.lag}, tokens)
	for i, recorded := range r.LogProbs {
		gradient[i] = float32(r.weight * tokens[i].Gradient)
		s.loss += float64(r.weight * tokens[i].Loss)
		if tokens[i].Bounded {
			s.clipped++
		}
		ratio := loss.Ratio(float64(logProbs[i]), float64(recorded))
		s.ratio += ratio
		s.ratioSquares += float64(ratio * ratio)
		s.ratioMax = max(s.ratioMax, ratio)
		s.kl += float64(recorded) - float64(logProbs[i])
		s.entropy += float64(entropies[i])
		if unchanged && r.lag == 0 && !r.Altered {
			s.onPolicyTokens++
			s.onPolicyError = max(s.onPolicyError, math.Abs(ratio-1))
		}
	}
	return s
}

// widened returns values in double precision.
func widened(values []float32) []float64 {
	wide := make([]float64, len(values))
	for i, v := range values {
		wide[i] = float64(v)
	}
	return wide
}

// update trains on the minibatches in turn. It returns what the tokens showed, the largest gradient norm, how many
// updates were made, and why the whole must be undone, if so. An error leaves the trainer in no defined state.
func (a Algorithm) update(t Trainer, minibatches []minibatch, rate float64) (stats tokenStats, norm float64, updates int, undo string, err error) {
	if err := rescore(t, minibatches, a.TokenBudget); err != nil {
		return stats, norm, updates, "", err
	}
	for _, m := range minibatches {
		if len(m.rows) == 0 {
			continue
		}
		start := 0
		for _, end := range row.Pack(len(m.rows), func(i int) int { return len(m.rows[i].Tokens) }, a.TokenBudget) {
			part := m.rows[start:end]
			start = end
			rows := make([]row.Row, len(part))
			for i := range part {
				rows[i] = part[i].Row
			}
			perRow := make([]tokenStats, len(part))
			err := t.Accumulate(rows, func(i int, logProbs, entropies, gradient []float32) {
				perRow[i] = tokenLoss(a.Loss, &part[i], logProbs, entropies, gradient, updates == 0)
			})
			if err != nil {
				return stats, norm, updates, "", fmt.Errorf("computing gradients: %w", err)
			}
			for _, s := range perRow {
				stats.add(s)
			}
		}
		n, err := t.Step(rate, a.Optimiser)
		if err != nil {
			return stats, norm, updates, "", fmt.Errorf("updating the weights: %w", err)
		}
		if math.IsNaN(n) || math.IsInf(n, 0) {
			return stats, norm, updates, fmt.Sprintf("the gradient's norm is %v", n), nil
		}
		norm = max(norm, n)
		updates++
		if a.MaxGradientNorm > 0 && n > a.MaxGradientNorm {
			return stats, norm, updates, fmt.Sprintf("the gradient's norm %.3g is above %.3g", n, a.MaxGradientNorm), nil
		}
	}
	return stats, norm, updates, "", nil
}
