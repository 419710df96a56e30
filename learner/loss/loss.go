// Package loss holds policy-gradient losses that stay safe when the data is off-policy.
//
// A loss compares the log-probability of a token under the policy being trained, th, with the one that the behaviour
// policy, mu, recorded when it sampled the token. With w = th/mu the importance ratio and A the advantage, the plain
// off-policy loss is -w A; the losses differ in how they bound w, and in whether they look at single tokens or at a row
// as a whole. At w = 1, which is exact for a group sampled by the very weights being trained, all of them have the
// gradient -A; only a penalty of kind K1 adds to it there.
//
// One file is one family: ppo.go, reinforce.go, dppo.go, decoupled.go, sequence.go, m2po.go; mask.go and kl.go have what
// is put around a loss, table.go the names by which settings choose one, normalise.go how tokens are weighed.
//
// In formulas sg(x) is x through which no gradient passes. A loss whose weight is stopped is written with th/sg(th),
// which is 1 and has the gradient of ln th, in place of ln th: the gradient is the same, and the value reported is
// minus the weight times the advantage for each of them.
//
// Everything here is pure, and computed with rounding made explicit, so that all machines compute the same bits.
package loss

import "github.com/lightswarm/lightswarm/policy/kernel"

// Function is a loss over the trained tokens of one row. Implementations are values without state.
type Function interface {
	// Apply writes what the row's tokens contribute to out, which has as many elements as the row has tokens: finite
	// numbers, whatever was recorded. It keeps nothing and changes nothing else.
	Apply(r Row, out []Token)
}

// Row is the trained tokens of one sequence, in its order; the slices run parallel. A sequence may hold several
// completions of a rollout, so advantages may differ within it.
type Row struct {
	// New are the log-probs under the policy being trained, Old those that the behaviour policy recorded: finite, at
	// most 0.
	New, Old []float64
	// Advantages are finite, and at most 1e100 in size.
	Advantages []float64
	// Lag is how many versions older than the newest release the behaviour policy is.
	Lag uint64

	// held stands for New where a formula says sg; nil is New itself. A test that moves New alone, and holds this, sees
	// the derivative that the formula has.
	held []float64
}

// Token is what a token contributes.
type Token struct {
	// Loss is its share: the row's loss is the sum over its tokens.
	Loss float64
	// Gradient is the derivative of the row's loss by the token's new log-prob.
	Gradient float64
	// Bounded says that a bound changed that derivative.
	Bounded bool
}

// maxLogRatio bounds |ln w|, so that a ratio is always finite. No bound of a loss lets a ratio near exp(20) through.
const maxLogRatio = 20

// Ratio returns the importance ratio exp(logNew - logOld), within exp(-20) and exp(20); it is exactly 1 for equal
// arguments.
func Ratio(logNew, logOld float64) float64 { return kernel.Exp64(bound(logNew - logOld)) }

// bound brings the logarithm of a ratio within the limits.
func bound(logRatio float64) float64 { return max(-maxLogRatio, min(maxLogRatio, logRatio)) }

// sample is one token of a row, as a loss of single tokens sees it.
type sample struct{ new, held, old, advantage float64 }

// sample returns token i.
func (r Row) sample(i int) sample {
	s := sample{new: r.New[i], held: r.New[i], old: r.Old[i], advantage: r.Advantages[i]}
	if r.held != nil {
		s.held = r.held[i]
	}
	return s
}

// each applies a loss of single tokens to all of a row.
func (r Row) each(out []Token, token func(sample) Token) {
	for i := range out {
		out[i] = token(r.sample(i))
	}
}

// ratio is w.
func (s sample) ratio() float64 { return Ratio(s.new, s.old) }

// heldRatio is sg(w).
func (s sample) heldRatio() float64 { return Ratio(s.held, s.old) }

// one is th/sg(th): 1, with the gradient of ln th.
func (s sample) one() float64 { return kernel.Exp64(s.new - s.held) }

// weighted is the policy gradient with a stopped weight: -sg(weight) A th/sg(th).
func (s sample) weighted(weight float64, bounded bool) Token {
	l := -float64(float64(weight*s.advantage) * s.one())
	return Token{l, l, bounded}
}
