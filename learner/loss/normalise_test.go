package loss_test

import (
	"math"
	"testing"

	"github.com/lightswarm/lightswarm/learner/loss"
)

func TestNormalisers(t *testing.T) {
	lengths := []int{2, 8, 1, 5}
	tests := []struct {
		name string
		n    loss.Normaliser
		want []float64
	}{
		{"PerRollout", loss.PerRollout{}, []float64{1. / 8, 1. / 32, 1. / 4, 1. / 20}},
		{"PerToken", loss.PerToken{}, []float64{1. / 16, 1. / 16, 1. / 16, 1. / 16}},
		{"PerConstant", loss.PerConstant{Tokens: 16}, []float64{1. / 64, 1. / 64, 1. / 64, 1. / 64}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for i, got := range tt.n.Weights(lengths) {
				if math.Abs(got-tt.want[i]) > 1e-15 {
					t.Errorf("rollout %d: weight %v, want %v", i, got, tt.want[i])
				}
			}
		})
	}
}
