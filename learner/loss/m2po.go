package loss

import (
	"math"
	"slices"
)

// M2PO gives up the tokens with the largest (ln w)^2, as few as bring the mean over those that are left to at most Tau, and
// weighs the others with their ratio: -keep w A. Zheng et al. 2025, arXiv 2510.01161: Tau 0.04. The paper takes the mean
// over a batch; here it is over a row, so that a row's gradient does not depend on what it is trained with. Tokens of
// equal (ln w)^2 are kept or given up together.
type M2PO struct{ Tau float64 }

// Apply implements Function.
func (p M2PO) Apply(r Row, out []Token) {
	squares := make([]float64, len(out))
	for i := range out {
		s := r.sample(i)
		d := bound(s.held - s.old)
		squares[i] = float64(d * d)
	}
	limit := p.limit(squares)
	for i := range out {
		if squares[i] > limit {
			out[i] = Token{Bounded: true}
			continue
		}
		s := r.sample(i)
		out[i] = s.weighted(s.heldRatio(), false)
	}
}

// limit is the largest of the squares that is kept; below all of them if none is.
func (p M2PO) limit(squares []float64) float64 {
	ascending := slices.Sorted(slices.Values(squares))
	limit, sum := math.Inf(-1), 0.0
	for i, s := range ascending {
		sum += s
		if sum > float64(p.Tau*float64(i+1)) {
			break // Means of more are larger still.
		}
		if i+1 == len(ascending) || ascending[i+1] > s {
			limit = s
		}
	}
	return limit
}
