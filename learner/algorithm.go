package learner

import (
	"fmt"

	"github.com/lightswarm/lightswarm/learner/advantage"
	"github.com/lightswarm/lightswarm/learner/credit"
	"github.com/lightswarm/lightswarm/learner/loss"
	"github.com/lightswarm/lightswarm/learner/row"
)

// Algorithm is LightningRL: how groups become an update.
type Algorithm struct {
	// Credit spreads a rollout's return over its calls; one that is a credit.Comparer also adds to their advantages, and
	// one that is credit.Learning has the trainer compute the states before all calls, once before the updates and once
	// after them.
	Credit credit.Assigner
	// Advantage compares the rollouts of a group.
	Advantage advantage.Estimator
	// Level says how calls are laid out as rows.
	Level row.Level
	// Agents are those that are trained, of the agents that an environment trains.
	Agents credit.Agents
	// Loss bounds what a token, or a row of them, may do.
	Loss loss.Function
	// Normaliser weighs tokens against one another.
	Normaliser loss.Normaliser
	// Minibatches is how many optimiser updates a step makes, each on its part of the groups; at least 1.
	Minibatches int
	// TokenBudget bounds the tokens of one forward and backward pass.
	TokenBudget int
	// Optimiser sets an update; its learning rate comes from Schedule.
	Optimiser Optimiser
	Schedule  Schedule
	// MaxGradientNorm is the norm of a gradient, before clipping, that no sound batch has: a step that meets it leaves
	// the weights as they were. 0 sets no limit; a norm that is not finite always does that.
	MaxGradientNorm float64
}

// Optimiser holds the settings of AdamW (Loshchilov and Hutter 2019, arXiv 1711.05101).
type Optimiser struct {
	Beta1, Beta2, Epsilon, WeightDecay float64
	// ClipNorm is the largest gradient norm that is not scaled down; 0 for none.
	ClipNorm float64
}

// DefaultAlgorithm is what a learner uses unless it is told otherwise; the learning rate suits models of some 100,000
// to some million weights.
func DefaultAlgorithm() Algorithm {
	return Algorithm{
		Credit:          credit.ToGo{},
		Advantage:       advantage.RLOO{},
		Loss:            loss.Default,
		Normaliser:      loss.PerRollout{},
		Minibatches:     2,
		TokenBudget:     16384,
		Optimiser:       Optimiser{Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8, ClipNorm: 1},
		Schedule:        Schedule{Peak: 3e-4, Warmup: 2},
		MaxGradientNorm: 1e4,
	}
}

// check says what is missing or out of range.
func (a Algorithm) check() error {
	switch {
	case a.Credit == nil || a.Advantage == nil || a.Loss == nil || a.Normaliser == nil:
		return fmt.Errorf("algorithm: credit, advantage, loss and normaliser must be set")
	case a.Level < row.Trajectory || a.Level > row.Concatenated:
		return fmt.Errorf("algorithm: level %d is none", int(a.Level))
	case a.Minibatches < 1:
		return fmt.Errorf("algorithm: %d minibatches, at least 1", a.Minibatches)
	case a.TokenBudget < 1:
		return fmt.Errorf("algorithm: a token budget of %d, at least 1", a.TokenBudget)
	case a.Schedule.Peak <= 0:
		return fmt.Errorf("algorithm: a learning rate of %v, it must be positive", a.Schedule.Peak)
	}
	if err := a.Agents.Check(); err != nil {
		return fmt.Errorf("algorithm: %w", err)
	}
	return nil
}
