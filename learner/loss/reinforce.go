package loss

// Reinforce is -A th/sg(th), the policy gradient (Williams 1992) that takes all data for on-policy: it corrects and
// bounds nothing. It is what the others are compared with.
type Reinforce struct{}

// Apply implements Function.
func (p Reinforce) Apply(r Row, out []Token) { r.each(out, p.token) }

func (Reinforce) token(s sample) Token { return s.weighted(1, false) }

// TIS weighs the policy gradient with the truncated ratio: -sg(min(w, Cap)) A th/sg(th). IMPALA's truncation (Espeholt et
// al. 2018, arXiv 1802.01561), used for language models as AIPO (Wu et al. 2025, arXiv 2505.24034) with Cap between 2
// and 10.
type TIS struct{ Cap float64 }

// Apply implements Function.
func (p TIS) Apply(r Row, out []Token) { r.each(out, p.token) }

func (p TIS) token(s sample) Token {
	w := s.heldRatio()
	return s.weighted(min(w, p.Cap), w > p.Cap)
}

// CISPO also bounds the weight from below: -sg(clip(w, 1-Low, 1+High)) A th/sg(th). Unlike PPO's clip it lets no token
// go silent. MiniMax-M1, arXiv 2506.13585, which has no lower bound (Low 1) and tunes High.
type CISPO struct{ Low, High float64 }

// Apply implements Function.
func (p CISPO) Apply(r Row, out []Token) { r.each(out, p.token) }

func (p CISPO) token(s sample) Token {
	w := s.heldRatio()
	clipped := max(1-p.Low, min(1+p.High, w))
	return s.weighted(clipped, clipped != w)
}

// MaskedIS drops tokens instead of truncating their weights: -sg(w if Low <= w <= High, else 0) A th/sg(th). IcePop
// (arXiv 2510.18855) masks so, with 0.5 and 5, what differs between the engines that sample and that train; here one ratio
// holds that and the policy's own movement.
type MaskedIS struct{ Low, High float64 }

// Apply implements Function.
func (p MaskedIS) Apply(r Row, out []Token) { r.each(out, p.token) }

func (p MaskedIS) token(s sample) Token {
	w := s.heldRatio()
	if w < p.Low || w > p.High {
		return Token{Bounded: true}
	}
	return s.weighted(w, false)
}
