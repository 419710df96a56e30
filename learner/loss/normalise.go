package loss

import "github.com/lightswarm/lightswarm/learner/named"

// Normaliser says how much each trained token counts in a step.
type Normaliser interface {
	// Weights returns the weight of every trained token of each rollout that teaches: tokens[i], at least 1, is how
	// many rollout i has.
	Weights(tokens []int) []float64
}

// Normalisers are the ways to weigh tokens.
var Normalisers = named.Table[Normaliser]{
	Part: "normaliser",
	Kinds: []named.Kind[Normaliser]{
		{
			Name: "per-rollout", About: "every rollout counts the same, whatever its length",
			Make: func(func(string) float64) Normaliser { return PerRollout{} },
		},
		{
			Name: "per-token", About: "every trained token counts the same",
			Make: func(func(string) float64) Normaliser { return PerToken{} },
		},
		{
			Name: "per-constant", About: "every rollout's sum over tokens is divided by the same number",
			Parameters: []named.Parameter{{
				Name: "tokens", Default: 512, Min: 1, Max: 1e6, Whole: true, About: "about as many as a rollout is expected to have",
			}},
			Make: func(v func(string) float64) Normaliser { return PerConstant{int(v("tokens"))} },
		},
	},
}

// PerRollout is the mean over rollouts of the mean over their tokens: a long rollout has no more say than a short one.
// It is LightningRL's aggregation (Agent Lightning) at rollout level.
type PerRollout struct{}

// Weights implements Normaliser.
func (PerRollout) Weights(tokens []int) []float64 {
	return weigh(tokens, func(n int) float64 { return 1 / float64(len(tokens)) / float64(n) })
}

// PerToken is the mean over all trained tokens. DAPO, arXiv 2503.14476.
type PerToken struct{}

// Weights implements Normaliser.
func (PerToken) Weights(tokens []int) []float64 {
	sum := 0
	for _, n := range tokens {
		sum += n
	}
	return weigh(tokens, func(int) float64 { return 1 / float64(sum) })
}

// PerConstant divides a rollout's token sum by a constant, so that its gradient does not depend on how long it was.
// Dr.GRPO, arXiv 2503.20783.
type PerConstant struct {
	// Tokens is the constant: about the largest number of tokens that a rollout is expected to have.
	Tokens int
}

// Weights implements Normaliser.
func (p PerConstant) Weights(tokens []int) []float64 {
	return weigh(tokens, func(int) float64 { return 1 / float64(len(tokens)) / float64(max(p.Tokens, 1)) })
}

func weigh(tokens []int, weight func(int) float64) []float64 {
	out := make([]float64, len(tokens))
	for i, n := range tokens {
		out[i] = weight(n)
	}
	return out
}
