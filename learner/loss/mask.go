package loss

import "github.com/lightswarm/lightswarm/policy/kernel"

// Mask says which rows are trained on. It depends on no gradient: all ratios are held.
type Mask interface {
	// Keep says whether a row is.
	Keep(r Row) bool
}

// Masked is a loss without the rows that a mask gives up: their tokens contribute nothing and count as bounded. They
// still count in the mean that a Normaliser takes.
type Masked struct {
	Loss Function
	Mask Mask
}

// Apply implements Function.
func (m Masked) Apply(r Row, out []Token) {
	if m.Mask.Keep(r) {
		m.Loss.Apply(r, out)
		return
	}
	for i := range out {
		out[i] = Token{Bounded: true}
	}
}

// GeometricMean keeps a row whose geometric mean of ratios, exp(mean ln w), is within Low and High: whether a row is kept
// does not depend on how long it is. In use as a filter against data of another policy than it is said to be, with bounds
// from 0.99 and 1.01 down to 0.999 and 1.001.
type GeometricMean struct{ Low, High float64 }

// Keep implements Mask.
func (m GeometricMean) Keep(r Row) bool {
	_, mean := r.logRatios()
	g := kernel.Exp64(mean)
	return g >= m.Low && g <= m.High
}

// Veto keeps a row all of whose ratios are within Low and High, usually 1e-4 and 100: one token that the policy would
// hardly have sampled, or that was recorded wrongly, gives the whole row away.
type Veto struct{ Low, High float64 }

// Keep implements Mask.
func (m Veto) Keep(r Row) bool {
	for i := range r.New {
		if w := r.sample(i).heldRatio(); w < m.Low || w > m.High {
			return false
		}
	}
	return true
}
