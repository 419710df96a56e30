package loss_test

import (
	"math"
	"testing"

	"github.com/lightswarm/lightswarm/learner/loss"
)

// What each bound does, at numbers that can be followed by hand.
func TestFormulas(t *testing.T) {
	at := math.Log
	tests := []struct {
		name, function string
		new, old, a    float64
		loss, grad     float64
		bounded        bool
	}{
		{"inside the clip", "ppo", at(0.55), at(0.5), 2, -2.2, -2.2, false},
		{"grown enough", "ppo", at(0.8), at(0.5), 2, -2.56, 0, true},
		{"clip-higher lets 1.25 through", "ppo", at(0.5), at(0.4), 1, -1.25, -1.25, false},
		{"shrunk enough", "ppo", at(0.1), at(0.5), -2, 1.6, 0, true},
		{"a grown token of negative advantage is pushed back", "ppo", at(0.5), at(0.05), -1, 10, 10, false},
		{"unless it has grown too much", "ppo-two-sided", at(0.5), at(0.05), -1, 4, 0, true},
		{"between the bounds", "ppo-two-sided", at(0.5), at(0.2), -1, 2.5, 2.5, false},
		{"as PPO for positive advantages", "ppo-two-sided", at(0.8), at(0.5), 2, -2.56, 0, true},
		{"the ratio makes no difference", "reinforce", at(0.8), at(0.2), 2, -2, -2, false},
		{"inside the cap", "tis", at(0.3), at(0.2), 1, -1.5, -1.5, false},
		{"beyond the cap", "tis", at(0.8), at(0.2), 1, -2, -2, true},
		{"its weight is clipped, its gradient goes on", "cispo", at(0.8), at(0.2), -1, 1.28, 1.28, true},
		{"without a bound from below", "cispo", at(0.1), at(0.2), 1, -0.5, -0.5, false},
		{"inside the window", "masked-is", at(0.8), at(0.2), 1, -4, -4, false},
		{"below it", "masked-is", at(0.2), at(0.8), 1, 0, 0, true},
		{"a rare token may grow many times", "dppo", at(0.003), at(0.001), 1, -3 + 1e-3*math.Pow(math.Log(3), 2), -3 + 2e-3*math.Log(3), false},
		{"a common one may not move far", "dppo", at(0.8), at(0.5), 1, 1e-3 * math.Pow(math.Log(1.6), 2), 2e-3 * math.Log(1.6), true},
		{"down neither", "dppo", at(0.2), at(0.5), -1, 1e-3 * math.Pow(math.Log(0.4), 2), 2e-3 * math.Log(0.4), true},
		{"back towards the behaviour policy it may", "dppo", at(0.2), at(0.5), 1, -0.4 + 1e-3*math.Pow(math.Log(0.4), 2), -0.4 + 2e-3*math.Log(0.4), false},
		{"its weight is capped", "dppo", at(0.1), at(0.001), -1, 4 + 1e-3*math.Pow(math.Log(100), 2), 4 + 2e-3*math.Log(100), true},
	}
	for _, tt := range tests {
		t.Run(tt.function+" "+tt.name, func(t *testing.T) {
			r := loss.Row{New: []float64{tt.new}, Old: []float64{tt.old}, Advantages: []float64{tt.a}}
			got := apply(functions[tt.function], r)[0]
			if math.Abs(got.Loss-tt.loss) > 1e-9 || math.Abs(got.Gradient-tt.grad) > 1e-9 || got.Bounded != tt.bounded {
				t.Errorf("%+v; want %v, %v, %v", got, tt.loss, tt.grad, tt.bounded)
			}
		})
	}
}

// Losses that look at more than one token, and at its age.
func TestRowFormulas(t *testing.T) {
	steps := func(by ...float64) loss.Row {
		r := loss.Row{New: make([]float64, len(by)), Old: make([]float64, len(by)), Advantages: make([]float64, len(by))}
		for i, d := range by {
			r.Old[i], r.New[i], r.Advantages[i] = -6, -6+d, 1
		}
		return r
	}
	aged := func(r loss.Row, lag uint64) loss.Row {
		r.Lag = lag
		return r
	}
	mask := func(m loss.Mask) loss.Function { return loss.Masked{Loss: loss.Reinforce{}, Mask: m} }
	gone := loss.Token{Bounded: true}
	each := func(n int, t loss.Token) []loss.Token {
		var tokens []loss.Token
		for range n {
			tokens = append(tokens, t)
		}
		return tokens
	}
	weighted := func(w float64) loss.Token { return loss.Token{Loss: -w, Gradient: -w} }
	tests := []struct {
		name string
		f    loss.Function
		row  loss.Row
		want []loss.Token
	}{
		{"data of the newest release is clipped as by PPO", loss.Decoupled{0.2, 0.28, 5}, steps(math.Log(1.5)), []loss.Token{{-1.28, 0, true}}},
		{"data 3 versions old has a quarter of the way to answer for", loss.Decoupled{0.2, 0.28, 5}, aged(steps(4*math.Log(1.2)), 3), []loss.Token{weighted(math.Pow(1.2, 4))}},
		{"beyond the clip the correction remains", loss.Decoupled{0.2, 0.28, 5}, aged(steps(4*math.Log(1.3)), 3), []loss.Token{{-1.3 * 1.3 * 1.3 * 1.28, 0, true}}},
		{"the correction is capped", loss.Decoupled{0.2, 0.28, 1.5}, aged(steps(4*math.Log(1.2)), 3), []loss.Token{{-1.5 * 1.2, -1.5 * 1.2, true}}},
		{"a row's mean ratio weighs all its tokens", loss.GSPO{0.2, 0.2}, steps(0.3, -0.1), each(2, weighted(math.Exp(0.1)))},
		{"and is clipped", loss.GSPO{0.2, 0.2}, steps(0.8, 0), each(2, loss.Token{Loss: -1.2, Bounded: true})},
		{"a row's ratio weighs all its tokens", loss.SequenceTIS{5}, steps(0.5, 0.7, -0.2), each(3, weighted(math.E))},
		{"and is truncated", loss.SequenceTIS{2}, steps(0.5, 0.5), each(2, loss.Token{Loss: -2, Gradient: -2, Bounded: true})},
		{"the largest outlier goes", loss.M2PO{0.04}, steps(0.1, 1, -0.2), []loss.Token{weighted(math.Exp(0.1)), gone, weighted(math.Exp(-0.2))}},
		{"none, when the mean is small", loss.M2PO{0.04}, steps(0.25, 0.1, -0.2), []loss.Token{weighted(math.Exp(0.25)), weighted(math.Exp(0.1)), weighted(math.Exp(-0.2))}},
		{"equals go together", loss.M2PO{0.04}, steps(0, 0.25, -0.25, 0), []loss.Token{weighted(1), weighted(math.Exp(0.25)), weighted(math.Exp(-0.25)), weighted(1)}},
		{"even where one might stay", loss.M2PO{0.04}, steps(0, 0.27, -0.27), []loss.Token{weighted(1), gone, gone}},
		{"all, if they are all far off", loss.M2PO{0.04}, steps(1, 1), each(2, gone)},
		{"a mean near 1 is kept", mask(loss.GeometricMean{0.99, 1.01}), steps(0.5, -0.49), each(2, weighted(1))},
		{"another is not", mask(loss.GeometricMean{0.99, 1.01}), steps(0.5, -0.47), each(2, gone)},
		{"one token gives a row away", mask(loss.Veto{1e-4, 100}), steps(0, 5, 0), each(3, gone)},
		{"likewise downward", mask(loss.Veto{0.5, 100}), steps(0, -1), each(2, gone)},
		{"without it the row stays", mask(loss.Veto{1e-4, 100}), steps(0, 4, 0), each(3, weighted(1))},
		{"K3 pulls back", loss.Penalty{loss.Reinforce{}, loss.K3, 0.5}, steps(math.Ln2), []loss.Token{{-1 + 0.5*(math.Ln2-0.5), -0.75, false}}},
		{"no tokens", loss.M2PO{0.04}, steps(), nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := apply(tt.f, tt.row)
			for i, want := range tt.want {
				if math.Abs(got[i].Loss-want.Loss) > 1e-9 || math.Abs(got[i].Gradient-want.Gradient) > 1e-9 || got[i].Bounded != want.Bounded {
					t.Errorf("token %d: %+v, want %+v", i, got[i], want)
				}
			}
		})
	}
}
