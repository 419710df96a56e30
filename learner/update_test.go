package learner

import (
	"math"
	"testing"

	"github.com/lightswarm/lightswarm/learner/loss"
	"github.com/lightswarm/lightswarm/learner/row"
)

// moved is a row whose tokens' log-probs have moved.
func moved(by ...float32) (r *trainRow, logProbs, entropies []float32) {
	r = &trainRow{Row: row.Row{Tokens: make([]int32, len(by)+1)}, weight: 0.5}
	for i, d := range by {
		r.Positions = append(r.Positions, int32(i+1))
		r.LogProbs = append(r.LogProbs, -2)
		r.Advantages = append(r.Advantages, 1)
		logProbs, entropies = append(logProbs, -2+d), append(entropies, 0.25)
	}
	return r, logProbs, entropies
}

// A loss that gives up a whole row changes what is learned from it and how many tokens count as clipped, not what the
// tokens show.
func TestFiguresOfAMaskedRow(t *testing.T) {
	r, logProbs, entropies := moved(0.5, 0.25, 0)
	show := func(f loss.Function) (tokenStats, []float32) {
		gradient := make([]float32, len(logProbs))
		return tokenLoss(f, r, logProbs, entropies, gradient, true), gradient
	}
	kept, keptGradient := show(loss.Reinforce{})
	gone, goneGradient := show(loss.Masked{Loss: loss.Reinforce{}, Mask: loss.GeometricMean{Low: 0.99, High: 1.01}})
	for i := range logProbs {
		if keptGradient[i] != -0.5 || goneGradient[i] != 0 {
			t.Errorf("token %d: gradient %v, masked %v", i, keptGradient[i], goneGradient[i])
		}
	}
	if kept.clipped != 0 || gone.clipped != 3 || kept.loss != -1.5 || gone.loss != 0 {
		t.Errorf("%d clipped with loss %v, masked %d with %v", kept.clipped, kept.loss, gone.clipped, gone.loss)
	}
	kept.clipped, kept.loss = gone.clipped, gone.loss
	if kept != gone {
		t.Errorf("figures %+v, masked %+v", kept, gone)
	}
	if want := math.Exp(0.5) + math.Exp(0.25) + 1; math.Abs(gone.ratio-want) > 1e-12 || gone.kl != -0.75 || gone.entropy != 0.75 {
		t.Errorf("ratio %v, want %v; divergence %v, entropy %v", gone.ratio, want, gone.kl, gone.entropy)
	}
}

// A row's lag reaches the loss.
func TestLossKnowsTheLag(t *testing.T) {
	r, logProbs, entropies := moved(0.5)
	clipped := func(lag uint64) int {
		r.lag = lag
		return tokenLoss(loss.Decoupled{Low: 0.2, High: 0.28, Cap: 5}, r, logProbs, entropies, make([]float32, 1), true).clipped
	}
	if fresh, old := clipped(0), clipped(3); fresh != 1 || old != 0 {
		t.Errorf("%d clipped of the newest release's data, %d of 3 versions before", fresh, old)
	}
}
