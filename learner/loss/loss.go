// Package loss holds token-level policy-gradient losses that stay safe when the data is off-policy.
//
// A loss compares the log-probability of a token under the policy being trained, logNew, with the one that the
// behaviour policy recorded when it sampled the token, logOld. With w = exp(logNew - logOld) the importance ratio and A
// the advantage, the plain off-policy objective is E[w A]; the losses differ in how they bound w. At w = 1, which is
// exact for a group sampled by the very weights being trained, all of them have the gradient -A.
//
// Everything here is pure, and computed with rounding made explicit, so that all machines compute the same bits.
package loss

import "github.com/lightswarm/lightswarm/policy/kernel"

// Token is the loss of one token. Implementations are values without state.
type Token interface {
	// Loss returns the loss, its derivative by logNew, and whether a bound changed that derivative. Arguments are
	// finite; log-probabilities are at most 0.
	Loss(logNew, logOld, advantage float64) (loss, gradient float64, clipped bool)
}

// maxLogRatio bounds |logNew - logOld| inside the exponential, so that a ratio is always finite. No bound below lets a
// ratio near exp(20) through.
const maxLogRatio = 20

// Ratio returns the importance ratio exp(logNew - logOld); it is exactly 1 for equal arguments.
func Ratio(logNew, logOld float64) float64 {
	return kernel.Exp64(max(-maxLogRatio, min(maxLogRatio, logNew-logOld)))
}

// PPO is the clipped surrogate -min(w A, clip(w, 1-Low, 1+High) A) of Schulman et al. 2017, arXiv 1707.06347, with
// DAPO's separate upper bound ("clip-higher", Yu et al. 2025, arXiv 2503.14476: 0.2 and 0.28). A token with a negative
// advantage whose ratio has grown keeps an unbounded gradient: see TwoSided.
type PPO struct{ Low, High float64 }

// Loss implements Token.
func (p PPO) Loss(logNew, logOld, advantage float64) (float64, float64, bool) {
	w := Ratio(logNew, logOld)
	if advantage > 0 && w > 1+p.High {
		return -float64((1 + p.High) * advantage), 0, true
	}
	if advantage < 0 && w < 1-p.Low {
		return -float64((1 - p.Low) * advantage), 0, true
	}
	wa := float64(w * advantage)
	return -wa, -wa, false
}

// TwoSided is -min(min(w, Cap) A, clip(w, 1-Low, 1+High) A): PPO that also gives up a token of negative advantage
// whose ratio exceeds Cap, which is above 1+High. INTELLECT-2, arXiv 2505.07291: Cap 4.
type TwoSided struct{ Low, High, Cap float64 }

// Loss implements Token.
func (p TwoSided) Loss(logNew, logOld, advantage float64) (float64, float64, bool) {
	if advantage < 0 && Ratio(logNew, logOld) > p.Cap {
		return -float64(p.Cap * advantage), 0, true
	}
	return PPO{p.Low, p.High}.Loss(logNew, logOld, advantage)
}

// TIS weighs the policy gradient with the truncated ratio: its gradient is -min(w, Cap) A. IMPALA's truncation
// (Espeholt et al. 2018, arXiv 1802.01561), used for language models as AIPO (Wu et al. 2025, arXiv 2505.24034) with
// Cap between 2 and 10. The loss reported is the continuous function that has this gradient.
type TIS struct{ Cap float64 }

// Loss implements Token.
func (p TIS) Loss(logNew, logOld, advantage float64) (float64, float64, bool) {
	w := Ratio(logNew, logOld)
	if w > p.Cap {
		beyond := logNew - logOld - kernel.Log(p.Cap)
		return -float64(float64(p.Cap*advantage) * (1 + beyond)), -float64(p.Cap * advantage), true
	}
	wa := float64(w * advantage)
	return -wa, -wa, false
}

// DPPO masks by the difference of probabilities instead of their ratio, and adds a pull towards the behaviour policy:
// -keep min(w, Cap) A + KL (ln w)^2, where keep is 0 for a token whose probability has already moved by more than
// Threshold in the direction of its advantage, else 1, and the capped weight is as in TIS. The mask is that of DPPO-TV
// (arXiv 2602.04879: Threshold 0.2, KL 1e-3): it does not punish rare tokens, whose ratios are noisy while their
// probabilities hardly move. The cap, 4, bounds what a wrong or a lying logOld can do; so does a bound of 20 on |ln w|,
// beyond which nothing pulls: no sound token is that far off.
type DPPO struct{ Threshold, Cap, KL float64 }

// Loss implements Token.
func (p DPPO) Loss(logNew, logOld, advantage float64) (float64, float64, bool) {
	d := max(-maxLogRatio, min(maxLogRatio, logNew-logOld))
	pull, pullGradient := float64(p.KL*float64(d*d)), float64(float64(2*p.KL)*d)
	if d == -maxLogRatio || d == maxLogRatio {
		pullGradient = 0
	}
	moved := kernel.Exp64(logNew) - kernel.Exp64(logOld)
	if (advantage > 0 && moved > p.Threshold) || (advantage < 0 && moved < -p.Threshold) {
		return pull, pullGradient, true
	}
	l, g, clipped := TIS{p.Cap}.Loss(logNew, logOld, advantage)
	return l + pull, g + pullGradient, clipped
}

// Default is the loss that a learner uses unless it is told otherwise.
var Default Token = DPPO{Threshold: 0.2, Cap: 4, KL: 1e-3}
