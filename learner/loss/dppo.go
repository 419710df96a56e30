package loss

import "github.com/lightswarm/lightswarm/policy/kernel"

// DPPO masks by the difference of probabilities instead of their ratio, and adds a pull towards the behaviour policy:
// -keep sg(min(w, Cap)) A th/sg(th) + KL (ln w)^2, where keep is 0 for a token whose probability has already moved by more
// than Threshold in the direction of its advantage, else 1. The mask is that of DPPO-TV (arXiv 2602.04879: Threshold 0.2,
// KL 1e-3): it does not punish rare tokens, whose ratios are noisy while their probabilities hardly move. The cap, 4,
// bounds what a wrong or a lying record can do; so does a bound of 20 on |ln w|, beyond which nothing pulls: no sound
// token is that far off.
type DPPO struct{ Threshold, Cap, KL float64 }

// Apply implements Function.
func (p DPPO) Apply(r Row, out []Token) { r.each(out, p.token) }

func (p DPPO) token(s sample) Token {
	moved := kernel.Exp64(s.held) - kernel.Exp64(s.old)
	t := Token{Bounded: true}
	if !(s.advantage > 0 && moved > p.Threshold || s.advantage < 0 && moved < -p.Threshold) {
		t = TIS{p.Cap}.token(s)
	}
	pull, gradient := s.kl(K2)
	t.Loss += float64(2 * p.KL * pull)
	t.Gradient += float64(2 * p.KL * gradient)
	return t
}

// Default is the loss that a learner uses unless it is told otherwise.
var Default Function = DPPO{Threshold: 0.2, Cap: 4, KL: 1e-3}
