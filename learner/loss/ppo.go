package loss

// PPO is the clipped surrogate -min(w A, clip(w, 1-Low, 1+High) A) of Schulman et al. 2017, arXiv 1707.06347, equation
// 7, with DAPO's separate upper bound ("clip-higher", Yu et al. 2025, arXiv 2503.14476: 0.2 and 0.28). A token with a
// negative advantage whose ratio has grown keeps an unbounded gradient: see TwoSided.
type PPO struct{ Low, High float64 }

// Apply implements Function.
func (p PPO) Apply(r Row, out []Token) { r.each(out, p.token) }

func (p PPO) token(s sample) Token { return p.surrogate(s.ratio(), s.advantage) }

// surrogate is the loss of a token with a ratio whose derivative by the new log-prob is the ratio itself.
func (p PPO) surrogate(ratio, advantage float64) Token {
	if advantage > 0 && ratio > 1+p.High {
		return Token{-float64((1 + p.High) * advantage), 0, true}
	}
	if advantage < 0 && ratio < 1-p.Low {
		return Token{-float64((1 - p.Low) * advantage), 0, true}
	}
	l := -float64(ratio * advantage)
	return Token{l, l, false}
}

// TwoSided is -min(min(w, Cap) A, clip(w, 1-Low, 1+High) A): PPO that also gives up a token of negative advantage
// whose ratio exceeds Cap, which is above 1+High. INTELLECT-2, arXiv 2505.07291: Cap 4.
//
// It is the dual clip of Ye et al. 2020, arXiv 1912.09729, which writes it as max(min(w A, clip(w) A), c A)
// for A < 0, with c = Cap: 3.
type TwoSided struct{ Low, High, Cap float64 }

// Apply implements Function.
func (p TwoSided) Apply(r Row, out []Token) { r.each(out, p.token) }

func (p TwoSided) token(s sample) Token {
	if s.advantage < 0 && s.ratio() > p.Cap {
		return Token{-float64(p.Cap * s.advantage), 0, true}
	}
	return PPO{p.Low, p.High}.token(s)
}
