package loss_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/lightswarm/lightswarm/learner/loss"
)

// functions are all losses by name, and each addition around one that bounds little itself.
var functions = func() map[string]loss.Function {
	byName := map[string]loss.Function{}
	add := func(name, spec string) {
		made, err := loss.Parse(spec)
		if err != nil {
			panic(err)
		}
		byName[name] = made.Part
	}
	for _, name := range loss.Kinds.Names() {
		add(name, name)
	}
	for _, name := range loss.Additions.Names() {
		add(name, "tis + "+name)
	}
	return byName
}()

// drawRow makes a row of what pick draws, each time a number below its argument. Log-probs are multiples of 1/4096, so
// that sums of them are exact.
func drawRow(pick func(n int) int) loss.Row {
	n := 1 + pick(6)
	// Rows move far, a little, and hardly: bounds of single ratios and of their means are at different scales.
	scale := []int{1, 16, 1024}[pick(3)]
	r := loss.Row{New: make([]float64, n), Old: make([]float64, n), Advantages: make([]float64, n), Lag: uint64(pick(8))}
	for i := range n {
		old := -64 - pick(12<<12)
		moved := []int{20000, 8000, -8000, 3500, -3500, 1500, -1500, 700, -700, 0}[pick(10)]/scale + pick(8)
		r.Old[i], r.New[i] = float64(old)/4096, float64(min(old+moved, -1))/4096
		r.Advantages[i] = float64(pick(601)-300) / 100
	}
	return r
}

// rows is drawRow from rapid.
func rows(t *rapid.T) loss.Row {
	return drawRow(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") })
}

func apply(f loss.Function, r loss.Row) []loss.Token {
	out := make([]loss.Token, len(r.New))
	f.Apply(r, out)
	return out
}

// The derivative is the loss's, where what a formula stops the gradient at is held: a central difference of the row's
// loss agrees wherever the loss has no kink nearby.
func TestGradients(t *testing.T) {
	const h = 1e-5
	for name, f := range functions {
		t.Run(name, func(t *testing.T) {
			checked, bounded, skipped := 0, 0, 0
			random := rand.New(rand.NewPCG(1, 2))
			for range 300 {
				r := drawRow(random.IntN)
				moved := func(i int, by float64) []loss.Token {
					m := r
					m.New = slices.Clone(r.New)
					m.New[i] += by
					return apply(f, m.Hold(r.New))
				}
				for i, got := range apply(f, r) {
					up, down := moved(i, h), moved(i, -h)
					if up[i].Bounded != got.Bounded || down[i].Bounded != got.Bounded {
						skipped++
						continue
					}
					checked++
					if got.Bounded {
						bounded++
					}
					if want := (sum(up) - sum(down)) / (2 * h); math.Abs(got.Gradient-want) > 1e-5*(1+math.Abs(want)) {
						t.Fatalf("token %d of %+v: gradient %v, central difference %v", i, r, got.Gradient, want)
					}
				}
			}
			enough := bounded >= 20 && checked-bounded >= 20 || name == "reinforce"
			if skipped > checked/20 || !enough {
				t.Errorf("%d tokens were checked, of which %d bounded, and %d skipped", checked, bounded, skipped)
			}
		})
	}
}

func sum(tokens []loss.Token) float64 {
	total := 0.0
	for _, t := range tokens {
		total += t.Loss
	}
	return total
}

// On-policy, every loss is the plain policy gradient, but for K1, which adds its weight.
func TestOnPolicy(t *testing.T) {
	for name, f := range functions {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				r := rows(t)
				r.New = r.Old
				added := 0.0
				if name == "k1" {
					added = 1e-3
				}
				for i, got := range apply(f, r) {
					if a := r.Advantages[i]; got != (loss.Token{Loss: -a, Gradient: -a + added}) {
						t.Fatalf("%+v for advantage %v", got, a)
					}
				}
			})
		})
	}
}

// limits are how large a gradient may get: at most times the advantage's size, and a pull besides. Losses that are not
// here promise nothing.
var limits = map[string]struct{ times, pull float64 }{
	"reinforce":     {times: 1},
	"tis":           {times: 2},
	"cispo":         {times: 1.28},
	"masked-is":     {times: 5},
	"ppo-two-sided": {times: 4},
	"ppo-dual":      {times: 3},
	"dppo":          {times: 4, pull: 2e-3 * 20},
	"sequence-tis":  {times: 5},
	"geometric":     {times: 2},
	"veto":          {times: 2},
	"k1":            {times: 2, pull: 1e-3},
	"k2":            {times: 2, pull: 1e-3 * 20},
}

// Whatever a peer recorded, nothing is ever not finite, and what a loss bounds is bounded.
func TestBounded(t *testing.T) {
	for name, f := range functions {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				r := rows(t)
				for i := range r.New {
					r.New[i] = rapid.Float64Range(-1e4, 0).Draw(t, "new")
					r.Old[i] = rapid.Float64Range(-math.MaxFloat32, 0).Draw(t, "old")
				}
				limit, promised := limits[name]
				for i, got := range apply(f, r) {
					if math.IsNaN(got.Loss) || math.IsInf(got.Loss, 0) || math.IsNaN(got.Gradient) || math.IsInf(got.Gradient, 0) {
						t.Fatalf("token %d: %+v", i, got)
					}
					if most := limit.times*math.Abs(r.Advantages[i]) + limit.pull + 1e-9; promised && math.Abs(got.Gradient) > most {
						t.Fatalf("token %d: %+v, the gradient exceeds %v", i, got, most)
					}
				}
			})
		})
	}
}

// No loss cares where in its row a token is, or what was in the slice that it writes to.
func TestOrderMakesNoDifference(t *testing.T) {
	for name, f := range functions {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				r := rows(t)
				indices := make([]int, len(r.New))
				for i := range indices {
					indices[i] = i
				}
				order := rapid.Permutation(indices).Draw(t, "order")
				other := loss.Row{Lag: r.Lag}
				out := make([]loss.Token, len(order))
				for to, from := range order {
					other.New = append(other.New, r.New[from])
					other.Old = append(other.Old, r.Old[from])
					other.Advantages = append(other.Advantages, r.Advantages[from])
					out[to] = loss.Token{Loss: 7, Gradient: 7, Bounded: true}
				}
				f.Apply(other, out)
				want := apply(f, r)
				for to, from := range order {
					if out[to] != want[from] {
						t.Fatalf("token %d: %+v, elsewhere in the row %+v", from, want[from], out[to])
					}
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
