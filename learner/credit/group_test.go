package credit_test

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lightswarm/lightswarm/learner/credit"
)

var comparers = map[string]credit.Comparer{
	"TurnGroup":           credit.TurnGroup{},
	"TurnGroup weighed":   credit.TurnGroup{Weight: 0.5, Discount: 0.5},
	"CounterfactualAgent": credit.CounterfactualAgent{},
	"GAE":                 credit.GAE{Critic: credit.Siblings{Discount: 0.5}, Discount: 0.5, Lambda: 0.5},
}

func at(agent string, prompt ...int32) credit.Call { return credit.Call{Agent: agent, Prompt: prompt} }

func TestIntermediate(t *testing.T) {
	calls := []credit.Call{{Reward: reward(0.25)}, {}, {Reward: reward(-0.5)}}
	in := credit.Rollout{Reward: 1, Calls: calls}
	if diff := cmp.Diff([]float64{1.25, 1, 0.5}, credit.Intermediate{}.Assign(in)); diff != "" {
		t.Errorf("returns (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]float64{1.5, 1, 0}, credit.Intermediate{Weight: 2}.Assign(in)); diff != "" {
		t.Errorf("returns with a weight of 2 (-want +got):\n%s", diff)
	}
}

func TestCompare(t *testing.T) {
	// Two rollouts part at their second call; a third takes a way of its own.
	ways := []credit.Rollout{
		{Reward: 1, Calls: []credit.Call{at("a", 1), at("a", 1, 2)}},
		{Reward: 0, Calls: []credit.Call{at("a", 1), at("a", 1, 2)}},
		{Reward: 2, Calls: []credit.Call{at("a", 1), at("a", 1, 3)}},
	}
	roles := []credit.Rollout{
		{Reward: 1, Calls: []credit.Call{at("writer", 1), at("checker", 2), at("writer", 3)}},
		{Reward: 0, Calls: []credit.Call{at("writer", 1)}},
		{Reward: 4, Calls: []credit.Call{at("writer", 1), at("checker", 4)}},
	}
	for name, c := range map[string]struct {
		rule credit.Comparer
		in   []credit.Rollout
		want [][]float64
	}{
		"turns":            {credit.TurnGroup{}, ways, [][]float64{{0, 0.5}, {-1, -0.5}, {1, 0}}},
		"turns weighed":    {credit.TurnGroup{Weight: 2}, ways, [][]float64{{0, 1}, {-2, -1}, {2, 0}}},
		"turns discounted": {credit.TurnGroup{Discount: 0.5}, ways, [][]float64{{0, 0.5}, {-0.5, -0.5}, {0.5, 0}}},
		"one prompt is two points for two agents": {credit.TurnGroup{}, []credit.Rollout{
			{Reward: 1, Calls: []credit.Call{at("a", 1)}}, {Reward: 0, Calls: []credit.Call{at("b", 1)}},
		}, [][]float64{{0}, {0}}},
		"agents": {credit.CounterfactualAgent{}, roles, [][]float64{{-1, -3, -1}, {-2.5}, {3.5, 3}}},
		"an agent of one rollout": {credit.CounterfactualAgent{}, []credit.Rollout{
			{Reward: 1, Calls: []credit.Call{at("a", 1), at("b", 2)}}, {Reward: 0, Calls: []credit.Call{at("a", 1)}},
		}, [][]float64{{1, 0}, {-1}}},
		// Worth: 1 for the first's calls (others' mean) and 0 for its second; and so on.
		"siblings":           {credit.GAE{Critic: credit.Siblings{}, Lambda: 1}, ways, [][]float64{{0, 1}, {-1.5, -1}, {1.5, 1.5}}},
		"siblings, one step": {credit.GAE{Critic: credit.Siblings{}}, ways, [][]float64{{-1, 1}, {-0.5, -1}, {0, 1.5}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.rule.Compare(c.in)); diff != "" {
				t.Errorf("advantages (-want +got):\n%s", diff)
			}
		})
	}
}

// drawGroup draws rollouts whose rewards are sums of 1/8, so that sums do not depend on their order.
func drawGroup(t *rapid.T) []credit.Rollout {
	value := rapid.Map(rapid.IntRange(-16, 16), func(n int) float64 { return float64(n) / 8 })
	group := make([]credit.Rollout, rapid.IntRange(1, 6).Draw(t, "rollouts"))
	for i := range group {
		group[i].Reward = value.Draw(t, "reward")
		for range rapid.IntRange(0, 5).Draw(t, "calls") {
			c := at(rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "agent"), rapid.Int32Range(0, 2).Draw(t, "prompt"))
			if rapid.Bool().Draw(t, "rewarded") {
				c.Reward = reward(value.Draw(t, "call reward"))
			}
			group[i].Calls = append(group[i].Calls, c)
		}
	}
	return group
}

// The order in which rollouts arrive changes nothing, to the bit.
func TestCompareIgnoresOrder(t *testing.T) {
	for name, rule := range comparers {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				group := drawGroup(t)
				want := rule.Compare(group)
				order := rapid.Permutation(indices(len(group))).Draw(t, "order")
				shuffled := make([]credit.Rollout, len(group))
				for to, from := range order {
					shuffled[to] = group[from]
				}
				got := rule.Compare(shuffled)
				for to, from := range order {
					if diff := cmp.Diff(want[from], got[to]); diff != "" {
						t.Fatalf("rollout %d (-in order +shuffled):\n%s", from, diff)
					}
				}
			})
		})
	}
}

func indices(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// What is added at a decision point, and what an agent gets over the rollouts in which it acted, sums to zero.
func TestCompareSumsToZero(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		group := drawGroup(t)
		turns, agents := map[string]float64{}, map[string]float64{}
		byTurn, byAgent := credit.TurnGroup{}.Compare(group), credit.CounterfactualAgent{}.Compare(group)
		for i, r := range group {
			acted := map[string]bool{}
			for j, c := range r.Calls {
				turns[c.Agent+string(c.Prompt)] += byTurn[i][j]
				if !acted[c.Agent] {
					agents[c.Agent] += byAgent[i][j]
				}
				acted[c.Agent] = true
			}
		}
		for _, sums := range []map[string]float64{turns, agents} {
			for key, sum := range sums {
				if math.Abs(sum) > 1e-12 {
					t.Fatalf("%q: advantages sum to %v", key, sum)
				}
			}
		}
	})
}

// Rollouts that all ended alike, without rewards of calls, have no advantages.
func TestCompareOfEquals(t *testing.T) {
	for name, rule := range comparers {
		if g, ok := rule.(credit.GAE); ok {
			g.Discount, g.Critic = 1, credit.Siblings{} // With a discount, a longer rollout is worth less.
			rule = g
		}
		if g, ok := rule.(credit.TurnGroup); ok {
			g.Discount = 1
			rule = g
		}
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				group := drawGroup(t)
				group = slices.Grow(group, 1)
				group = append(group, group[0])
				for i := range group {
					group[i].Reward = group[0].Reward
					group[i].Calls = slices.Clone(group[i].Calls)
					for j := range group[i].Calls {
						group[i].Calls[j].Reward = nil
					}
				}
				for i, advantages := range rule.Compare(group) {
					for j, a := range advantages {
						if math.Abs(a) > 1e-12 {
							t.Fatalf("call %d of rollout %d: advantage %v", j, i, a)
						}
					}
				}
			})
		})
	}
}

// With lambda 1, advantage and value are the return from the call on, whatever the critic says; with lambda 0,
// the advantage is the critic's surprise at one step.
func TestGAE(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawGroup(t)[0]
		values := make([]float64, len(r.Calls))
		for i := range values {
			values[i] = float64(rapid.IntRange(-16, 16).Draw(t, "value")) / 8
		}
		all, one := credit.GAE{Lambda: 1}.Advantages(r, values), credit.GAE{}.Advantages(r, values)
		half := credit.GAE{Lambda: 1, Discount: 0.5}.Advantages(r, values)
		ahead, discounted := credit.ToGo{}.Assign(r), credit.ToGo{Discount: 0.5}.Assign(r)
		for i := range values {
			if half[i]+values[i] != discounted[i] {
				t.Fatalf("call %d: advantage %v and value %v, discounted return %v", i, half[i], values[i], discounted[i])
			}
			if all[i]+values[i] != ahead[i] {
				t.Fatalf("call %d: advantage %v and value %v, return %v", i, all[i], values[i], ahead[i])
			}
			next, after := 0.0, 0.0
			if i+1 < len(values) {
				next, after = values[i+1], ahead[i+1]
			}
			if want := ahead[i] - after + next - values[i]; one[i] != want {
				t.Fatalf("call %d: %v, the step's surprise is %v", i, one[i], want)
			}
		}
	})
}

// What a critic says of a call does not depend on its rollout's rewards.
func TestSiblingsLookAway(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		group := drawGroup(t)
		before := credit.Siblings{}.Values(group)[0]
		group[0].Reward += 3
		if diff := cmp.Diff(before, credit.Siblings{}.Values(group)[0]); diff != "" {
			t.Fatalf("values (-before +after another reward):\n%s", diff)
		}
	})
}

// ToGo conserves: calls' own rewards and the rollout's are what the returns fall by from call to call.
func TestToGoConserves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawGroup(t)[0]
		returns := credit.ToGo{}.Assign(r)
		for i, c := range r.Calls {
			given, next := 0.0, r.Reward
			if c.Reward != nil {
				given = *c.Reward
			}
			if i+1 < len(returns) {
				next = returns[i+1]
			}
			if returns[i] != given+next {
				t.Fatalf("call %d returns %v; it was given %v and %v follow", i, returns[i], given, next)
			}
		}
	})
}
