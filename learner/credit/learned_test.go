package credit_test

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lightswarm/lightswarm/learner/credit"
)

// drawSteps makes groups for some steps, whose calls have states of d numbers.
func drawSteps(t *rapid.T, d int) [][][]credit.Rollout {
	number := rapid.Map(rapid.IntRange(-32, 32), func(n int) float32 { return float32(n) / 16 })
	steps := make([][][]credit.Rollout, rapid.IntRange(1, 4).Draw(t, "steps"))
	for s := range steps {
		for range rapid.IntRange(1, 3).Draw(t, "groups") {
			group := drawGroup(t)
			for i := range group {
				for j := range group[i].Calls {
					group[i].Calls[j].State = rapid.SliceOfN(number, d, d).Draw(t, "state")
				}
			}
			steps[s] = append(steps[s], group)
		}
	}
	return steps
}

// valueLoss is what LearnedGAE says that its head minimises, written as it stands there.
func valueLoss(rule credit.LearnedGAE, steps [][][]credit.Rollout, head []float64) float64 {
	loss := 0.0
	for _, w := range head {
		loss += rule.Ridge / 2 * w * w
	}
	for s, groups := range steps {
		age := math.Pow(rule.Decay, float64(len(steps)-1-s))
		for _, group := range groups {
			for _, r := range group {
				for i, returned := range (credit.ToGo{Discount: rule.Discount}).Assign(r) {
					off := credit.Head(head).Value(r.Calls[i].State) - returned
					loss += age * off * off / 2
				}
			}
		}
	}
	return loss
}

// After any number of steps the head is where the loss's numeric gradient is zero, and the loss above it grows as its second
// derivative says.
func TestHeadMinimisesTheValueLoss(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const d = 3
		rule := credit.LearnedGAE{
			Discount: rapid.Float64Range(0.1, 1).Draw(t, "discount"),
			Decay:    rapid.Float64Range(0.1, 0.99).Draw(t, "decay"), Ridge: rapid.Float64Range(0.1, 4).Draw(t, "ridge"),
		}
		steps := drawSteps(t, d)
		seen := steps[:0]
		var m credit.Memory
		for _, groups := range steps {
			before := m
			m = rule.With(m).Learn(groups)
			if cmp.Equal(m, before) {
				continue // Without calls nothing ages.
			}
			seen = append(seen, groups)
		}
		head := m.Fit(rule.Ridge)
		least := valueLoss(rule, seen, head)
		for i := range head {
			const h = 1e-3
			moved := func(by float64) float64 {
				other := append(credit.Head{}, head...)
				other[i] += by
				return valueLoss(rule, seen, other)
			}
			if slope := (moved(h) - moved(-h)) / (2 * h); math.Abs(slope) > 1e-8*(1+least) {
				t.Fatalf("the loss has slope %v by weight %d", slope, i)
			}
			curve := rule.Ridge
			for s, groups := range seen {
				for _, group := range groups {
					for _, r := range group {
						for _, c := range r.Calls {
							phi := 1.0
							if i < d {
								phi = float64(c.State[i]) / math.Sqrt(d)
							}
							curve += math.Pow(rule.Decay, float64(len(seen)-1-s)) * phi * phi
						}
					}
				}
			}
			if got := (moved(h) + moved(-h) - 2*least) / (h * h); math.Abs(got-curve) > 1e-5*(1+curve+least) {
				t.Fatalf("by weight %d the loss curves by %v, want %v", i, got, curve)
			}
		}
	})
}

// With lambda 1 an advantage is the return from the call on minus what the head said of it before; with lambda 0 it is the
// surprise of one step. Before it has learned the head says 0.
func TestLearnedGAEAsksTheHead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		steps := drawSteps(t, 2)
		all := credit.LearnedGAE{Discount: 1, Lambda: 1, Decay: 0.9, Ridge: 1}
		m := all.With(credit.Memory{}).Learn(steps[0])
		head := m.Fit(all.Ridge)
		one := all
		one.Lambda = 0
		group := steps[len(steps)-1][0]
		for _, r := range group {
			ahead := credit.ToGo{}.Assign(r)
			fresh, taught, surprise := all.Assign(r), all.With(m).Assign(r), one.With(m).Assign(r)
			for j, c := range r.Calls {
				value := head.Value(c.State)
				if fresh[j] != ahead[j] {
					t.Fatalf("a new head gives call %d advantage %v, its return is %v", j, fresh[j], ahead[j])
				}
				if off := taught[j] - (ahead[j] - value); math.Abs(off) > 1e-9 {
					t.Fatalf("lambda 1: call %d has %v, return %v less value %v", j, taught[j], ahead[j], value)
				}
				given, next := 0.0, 0.0
				if c.Reward != nil {
					given = *c.Reward
				}
				if j+1 < len(r.Calls) {
					next = head.Value(r.Calls[j+1].State)
				} else {
					given += r.Reward
				}
				if off := surprise[j] - (given + next - value); math.Abs(off) > 1e-9 {
					t.Fatalf("lambda 0: call %d has %v, want %v", j, surprise[j], given+next-value)
				}
			}
		}
	})
}

// A batch changes nothing of the memory that it was shown to, and the same gives the same bits.
func TestLearnIsPure(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		steps := drawSteps(t, 2)
		rule := credit.LearnedGAE{Decay: 0.5, Ridge: 1}
		first := rule.With(credit.Memory{}).Learn(steps[0])
		kept := credit.Memory{Gram: slices.Clone(first.Gram), Moments: slices.Clone(first.Moments)}
		second := rule.With(first).Learn(steps[0])
		again := rule.With(kept).Learn(steps[0])
		if !cmp.Equal(kept, first) {
			t.Fatal("the memory that was given changed")
		}
		if !cmp.Equal(second, again) {
			t.Fatal("the same calls teach something else")
		}
		if err := second.Check(); err != nil {
			t.Fatal(err)
		}
	})
}

// The head has the same bits on every machine: where a compiler fuses products and sums, these would be others.
func TestHeadIsTheSameEverywhere(t *testing.T) {
	rule := credit.LearnedGAE{Discount: 0.9, Decay: 0.9, Ridge: 1}
	random := rand.New(rand.NewPCG(1, 2))
	var m credit.Memory
	for range 3 {
		group := make([]credit.Rollout, 8)
		for i := range group {
			group[i].Reward = random.Float64()
			for range 4 {
				state := make([]float32, 24)
				for k := range state {
					state[k] = random.Float32()*4 - 2
				}
				group[i].Calls = append(group[i].Calls, credit.Call{State: state})
			}
		}
		m = rule.With(m).Learn([][]credit.Rollout{group})
	}
	sum := fnv.New64a()
	for _, w := range m.Fit(rule.Ridge) {
		sum.Write(binary.LittleEndian.AppendUint64(nil, math.Float64bits(w)))
	}
	if got := fmt.Sprintf("%016x", sum.Sum64()); got != "08d96e97b2b51a01" {
		t.Errorf("the weights' sum is %s", got)
	}
}

func TestExplained(t *testing.T) {
	group := []credit.Rollout{
		{Reward: 1, Calls: []credit.Call{{State: []float32{1}}}},
		{Reward: 0, Calls: []credit.Call{{State: []float32{-1}}}},
	}
	rule := credit.LearnedGAE{Decay: 0.9, Ridge: 0.001}
	before := rule.Explained([][]credit.Rollout{group})
	m := rule.Learn([][]credit.Rollout{group})
	after := rule.With(m).Explained([][]credit.Rollout{group})
	// A new head says 0 where the mean is 0.5: its squares sum to 1, those of the mean to 0.5.
	if before != -1 || after < 0.999 || after > 1 {
		t.Errorf("the head explains %v before it has seen the calls, %v after", before, after)
	}
	group[1].Reward = 1
	if flat := rule.With(m).Explained([][]credit.Rollout{group}); !math.IsNaN(flat) {
		t.Errorf("%v is explained of returns that are equal", flat)
	}
	if none := rule.Explained(nil); !math.IsNaN(none) {
		t.Errorf("%v is explained of nothing", none)
	}
	if err := (credit.Memory{Gram: make([]float64, 2), Moments: make([]float64, 2)}).Check(); err == nil {
		t.Error("sums of other sizes are taken for a memory")
	}
}
