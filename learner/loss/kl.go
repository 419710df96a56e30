package loss

import "github.com/lightswarm/lightswarm/policy/kernel"

// Estimator is an estimate of a KL divergence from one token (Schulman 2020, "Approximating KL divergence"), here of the
// policy being trained from the behaviour policy, as a loss.
type Estimator int

const (
	// K1 is ln w. Its gradient is 1 everywhere, also at w = 1, and vanishes there only in expectation. Over what mu sampled
	// its mean is minus the divergence of mu from th, so that it holds nothing and rather pushes away. It is here to be
	// compared with.
	K1 Estimator = 1 + iota
	// K2 is (ln w)^2 / 2, whose gradient ln w is, on-policy in expectation, that of the divergence.
	K2
	// K3 is 1/w - 1 + ln w, never negative, with the gradient 1 - 1/w.
	K3
)

// Penalty adds Weight times an estimate of the divergence from the behaviour policy to a loss. Where |ln w| reaches 20
// nothing pulls.
type Penalty struct {
	Loss      Function
	Estimator Estimator
	Weight    float64
}

// Apply implements Function.
func (p Penalty) Apply(r Row, out []Token) {
	p.Loss.Apply(r, out)
	for i := range out {
		l, g := r.sample(i).kl(p.Estimator)
		out[i].Loss += float64(p.Weight * l)
		out[i].Gradient += float64(p.Weight * g)
	}
}

// kl returns an estimate and its derivative by the new log-prob.
func (s sample) kl(e Estimator) (loss, gradient float64) {
	d := bound(s.new - s.old)
	switch e {
	case K1:
		loss, gradient = d, 1
	case K2:
		loss, gradient = float64(d*d)/2, d
	case K3:
		inverse := kernel.Exp64(-d)
		loss, gradient = inverse-1+d, 1-inverse
	default:
		panic("loss: no such estimator")
	}
	if d == -maxLogRatio || d == maxLogRatio {
		gradient = 0
	}
	return loss, gradient
}
