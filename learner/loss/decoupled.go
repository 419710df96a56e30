package loss

// Decoupled is decoupled PPO (Hilton et al. 2021, arXiv 2110.00641): the clip holds the policy near a recent
// one, prox, whatever the age of the data, and the ratio between prox and mu corrects for the age:
//
//	-sg(min(rho, Cap)) min(r A, clip(r, 1-Low, 1+High) A), r = th/sg(prox), rho = prox/mu
//
// prox is the newest release. Its log-probs are not computed but interpolated (A-3PO, as AReaL's documentation has it):
// ln prox = ln mu + a (ln th - ln mu), where a = (v_prox - v_mu)/(v_th - v_mu) are versions. The policy being trained is on
// its way to the version after the newest, so a = lag/(lag+1); for data of the newest release prox is mu and the loss is
// PPO. Cap bounds only the correction: as in PPO, a token of negative advantage whose r has grown keeps its gradient.
type Decoupled struct{ Low, High, Cap float64 }

// Apply implements Function.
func (p Decoupled) Apply(r Row, out []Token) {
	a := float64(r.Lag) / (float64(r.Lag) + 1)
	r.each(out, func(s sample) Token {
		prox := s.old + float64(a*bound(s.held-s.old))
		rho := Ratio(prox, s.old)
		t := PPO{p.Low, p.High}.surrogate(Ratio(s.new, prox), float64(min(rho, p.Cap)*s.advantage))
		t.Bounded = t.Bounded || rho > p.Cap
		return t
	})
}
