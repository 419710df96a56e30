package credit_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lightswarm/lightswarm/learner/credit"
)

func TestToGo(t *testing.T) {
	three := []credit.Call{{Reward: reward(0.25)}, {}, {Reward: reward(-0.5)}}
	for name, c := range map[string]struct {
		rule credit.ToGo
		in   credit.Rollout
		want []float64
	}{
		"no calls":                 {in: credit.Rollout{Reward: 1}, want: []float64{}},
		"only the rollout's":       {in: credit.Rollout{Reward: 1, Calls: make([]credit.Call, 3)}, want: []float64{1, 1, 1}},
		"what is behind is not":    {in: credit.Rollout{Reward: 1, Calls: three}, want: []float64{0.75, 0.5, 0.5}},
		"discounted":               {rule: credit.ToGo{Discount: 0.5}, in: credit.Rollout{Reward: 1, Calls: three}, want: []float64{0.375, 0.25, 0.5}},
		"the rollout's discounted": {rule: credit.ToGo{Discount: 0.5}, in: credit.Rollout{Reward: 1, Calls: make([]credit.Call, 3)}, want: []float64{0.25, 0.5, 1}},
	} {
		if diff := cmp.Diff(c.want, c.rule.Assign(c.in)); diff != "" {
			t.Errorf("%s: returns (-want +got):\n%s", name, diff)
		}
	}
}

// A call's return depends on nothing before it, the first's is the whole, and without rewards of calls it is Return's.
func TestToGoLooksAhead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := credit.Rollout{Reward: rapid.Float64Range(-1, 1).Draw(t, "reward")}
		bare := credit.Rollout{Reward: r.Reward}
		for range rapid.IntRange(1, 8).Draw(t, "calls") {
			var c credit.Call
			if rapid.Bool().Draw(t, "rewarded") {
				c.Reward = reward(rapid.Float64Range(-1, 1).Draw(t, "call reward"))
			}
			r.Calls, bare.Calls = append(r.Calls, c), append(bare.Calls, credit.Call{})
		}
		whole := credit.ToGo{}.Assign(r)
		sum := credit.Return{}.Assign(r)[0]
		if math.Abs(whole[0]-sum) > 1e-12 {
			t.Fatalf("the first call's is %v, the whole %v", whole[0], sum)
		}
		if diff := cmp.Diff(credit.Return{}.Assign(bare), credit.ToGo{}.Assign(bare)); diff != "" {
			t.Fatalf("without rewards of calls (-return +to go):\n%s", diff)
		}
		rule := credit.ToGo{Discount: rapid.Float64Range(0.1, 1).Draw(t, "discount")}
		all := rule.Assign(r)
		for i := range r.Calls {
			rest := rule.Assign(credit.Rollout{Reward: r.Reward, Calls: r.Calls[i:]})
			if diff := cmp.Diff(all[i:], rest); diff != "" {
				t.Fatalf("from call %d on (-within all +alone):\n%s", i, diff)
			}
		}
	})
}
