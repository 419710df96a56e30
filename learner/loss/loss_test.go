package loss_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/lightswarm/lightswarm/learner/loss"
)

var tokens = map[string]loss.Token{
	"PPO":      loss.PPO{Low: 0.2, High: 0.28},
	"TwoSided": loss.TwoSided{Low: 0.2, High: 0.28, Cap: 4},
	"TIS":      loss.TIS{Cap: 2},
	"DPPO":     loss.DPPO{Threshold: 0.2, Cap: 4, KL: 1e-3},
}

func TestFormulas(t *testing.T) {
	at := func(p float64) float64 { return math.Log(p) }
	tests := []struct {
		name        string
		token       string
		new, old, a float64
		loss, grad  float64
		clipped     bool
	}{
		{"inside the clip", "PPO", at(0.55), at(0.5), 2, -2.2, -2.2, false},
		{"grown enough", "PPO", at(0.8), at(0.5), 2, -2.56, 0, true},
		{"clip-higher lets 1.25 through", "PPO", at(0.5), at(0.4), 1, -1.25, -1.25, false},
		{"shrunk enough", "PPO", at(0.1), at(0.5), -2, 1.6, 0, true},
		{"a grown token of negative advantage is pushed back", "PPO", at(0.5), at(0.05), -1, 10, 10, false},
		{"unless it has grown too much", "TwoSided", at(0.5), at(0.05), -1, 4, 0, true},
		{"between the bounds", "TwoSided", at(0.5), at(0.2), -1, 2.5, 2.5, false},
		{"as PPO for positive advantages", "TwoSided", at(0.8), at(0.5), 2, -2.56, 0, true},
		{"inside the cap", "TIS", at(0.3), at(0.2), 1, -1.5, -1.5, false},
		{"beyond the cap", "TIS", at(0.8), at(0.2), 1, -2 * (1 + math.Ln2), -2, true},
		{"a rare token may grow many times", "DPPO", at(0.003), at(0.001), 1, -3 + 1e-3*math.Pow(math.Log(3), 2), -3 + 2e-3*math.Log(3), false},
		{"a common one may not move far", "DPPO", at(0.8), at(0.5), 1, 1e-3 * math.Pow(math.Log(1.6), 2), 2e-3 * math.Log(1.6), true},
		{"down neither", "DPPO", at(0.2), at(0.5), -1, 1e-3 * math.Pow(math.Log(0.4), 2), 2e-3 * math.Log(0.4), true},
		{"back towards the behaviour policy it may", "DPPO", at(0.2), at(0.5), 1, -0.4 + 1e-3*math.Pow(math.Log(0.4), 2), -0.4 + 2e-3*math.Log(0.4), false},
		{"its weight is capped", "DPPO", at(0.1), at(0.001), -1, 4*(1+math.Log(25)) + 1e-3*math.Pow(math.Log(100), 2), 4 + 2e-3*math.Log(100), true},
	}
	for _, tt := range tests {
		t.Run(tt.token+" "+tt.name, func(t *testing.T) {
			l, g, clipped := tokens[tt.token].Loss(tt.new, tt.old, tt.a)
			if math.Abs(l-tt.loss) > 1e-9 || math.Abs(g-tt.grad) > 1e-9 || clipped != tt.clipped {
				t.Errorf("loss %v, gradient %v, clipped %v; want %v, %v, %v", l, g, clipped, tt.loss, tt.grad, tt.clipped)
			}
		})
	}
}

// The derivative is the loss's: a central difference agrees wherever the loss has no kink or step nearby.
func TestGradients(t *testing.T) {
	const h = 1e-5
	for name, token := range tokens {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				old := rapid.Float64Range(-12, -0.01).Draw(t, "old")
				now := math.Min(old+rapid.Float64Range(-4, 4).Draw(t, "moved"), -2*h)
				a := rapid.Float64Range(-3, 3).Draw(t, "advantage")
				up, _, upClipped := token.Loss(now+h, old, a)
				down, _, downClipped := token.Loss(now-h, old, a)
				_, got, clipped := token.Loss(now, old, a)
				if upClipped != clipped || downClipped != clipped {
					t.Skip("a kink")
				}
				want := (up - down) / (2 * h)
				if math.Abs(got-want) > 1e-5*(1+math.Abs(want)) {
					t.Fatalf("gradient %v, central difference %v", got, want)
				}
			})
		})
	}
}

// On-policy, every loss is the plain policy gradient.
func TestOnPolicy(t *testing.T) {
	for name, token := range tokens {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				p := rapid.Float64Range(-20, 0).Draw(t, "log-prob")
				a := rapid.Float64Range(-3, 3).Draw(t, "advantage")
				l, g, clipped := token.Loss(p, p, a)
				if l != -a || g != -a || clipped {
					t.Fatalf("loss %v, gradient %v, clipped %v for advantage %v", l, g, clipped, a)
				}
			})
		})
	}
}

// No loss but PPO lets one token's gradient grow with the ratio; none ever returns something that is not finite.
func TestBounded(t *testing.T) {
	for name, token := range tokens {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				now := rapid.Float64Range(-1e4, 0).Draw(t, "new")
				old := rapid.Float64Range(-math.MaxFloat32, 0).Draw(t, "old")
				a := rapid.Float64Range(-3, 3).Draw(t, "advantage")
				l, g, _ := token.Loss(now, old, a)
				if math.IsNaN(l) || math.IsInf(l, 0) || math.IsNaN(g) || math.IsInf(g, 0) {
					t.Fatalf("loss %v, gradient %v", l, g)
				}
				if limit := 4*math.Abs(a) + 2e-3*20 + 1e-9; name != "PPO" && math.Abs(g) > limit {
					t.Fatalf("gradient %v exceeds %v", g, limit)
				}
			})
		})
	}
}

func TestRatio(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := rapid.Float64Range(-19, 0).Draw(t, "new")
		old := rapid.Float64Range(-19, 0).Draw(t, "old")
		got, want := loss.Ratio(now, old), math.Exp(now-old)
		if math.Abs(got-want) > 1e-15*want*2 {
			t.Fatalf("ratio %v, want %v", got, want)
		}
		if loss.Ratio(now, now) != 1 {
			t.Fatalf("the ratio of equals is %v", loss.Ratio(now, now))
		}
	})
}

func TestNormalisers(t *testing.T) {
	lengths := []int{2, 8, 0}
	tests := []struct {
		name string
		n    loss.Normaliser
		want []float64
	}{
		{"PerRollout", loss.PerRollout{}, []float64{1. / 8, 1. / 32, 1. / 4}},
		{"PerToken", loss.PerToken{}, []float64{0.1, 0.1, 0.1}},
		{"PerConstant", loss.PerConstant{Tokens: 16}, []float64{1. / 64, 1. / 64, 1. / 64}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for i, got := range tt.n.Weights(lengths, 4) {
				if math.Abs(got-tt.want[i]) > 1e-15 {
					t.Errorf("rollout %d: weight %v, want %v", i, got, tt.want[i])
				}
			}
		})
	}
}
