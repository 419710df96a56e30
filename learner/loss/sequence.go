package loss

import "github.com/lightswarm/lightswarm/policy/kernel"

// The losses here weigh all tokens of a row alike, by a ratio of the row: its reward was given to it as a whole.

// logRatios returns the sum of sg(ln w) over a row, each within the limits, and their mean; 0 for an empty row.
func (r Row) logRatios() (sum, mean float64) {
	for i := range r.New {
		s := r.sample(i)
		sum += bound(s.held - s.old)
	}
	return sum, sum / float64(max(len(r.New), 1))
}

// GSPO clips the geometric mean s of a row's ratios (Zheng et al. 2025, arXiv 2507.18071; in the form
// GSPO-token of section 4.3, which allows for advantages that differ within a row, and is GSPO where they do not):
//
//	-min(s_t A, clip(s_t, 1-Low, 1+High) A), s_t = sg(s) th/sg(th), s = exp(mean ln w)
//
// Published bounds are 3e-4 and 4e-4: a mean moves far less than single ratios do.
type GSPO struct{ Low, High float64 }

// Apply implements Function.
func (p GSPO) Apply(r Row, out []Token) {
	_, mean := r.logRatios()
	ratio := kernel.Exp64(mean)
	r.each(out, func(s sample) Token {
		return PPO(p).surrogate(float64(ratio*s.one()), s.advantage)
	})
}

// SequenceTIS weighs a row's policy gradient with the truncated ratio of the whole row: -sg(min(W, Cap)) A th/sg(th), where
// W is the product of its ratios. It is unbiased but for the truncation, where TIS leaves out what earlier tokens did to
// the chance of later ones, and far noisier on long rows. Cap is usually between 2 and 10.
type SequenceTIS struct{ Cap float64 }

// Apply implements Function.
func (p SequenceTIS) Apply(r Row, out []Token) {
	sum, _ := r.logRatios()
	w := kernel.Exp64(bound(sum))
	r.each(out, func(s sample) Token { return s.weighted(min(w, p.Cap), w > p.Cap) })
}
