package credit_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/lightswarm/lightswarm/learner/credit"
)

// Names mean what they say, and the first is a learner's default.
func TestKinds(t *testing.T) {
	for spec, want := range map[string]credit.Assigner{
		"to-go":                           credit.ToGo{},
		"return":                          credit.Return{},
		"discounted discount=0.5":         credit.ToGo{Discount: 0.5},
		"intermediate weight=2":           credit.Intermediate{Weight: 2},
		"turn-group weight=2 discount=.5": credit.TurnGroup{Weight: 2, Discount: 0.5},
		"counterfactual-agent":            credit.CounterfactualAgent{},
		"gae lambda=0.5 discount=0.25":    credit.GAE{Critic: credit.Siblings{Discount: 0.25}, Lambda: 0.5, Discount: 0.25},
		"critic lambda=0.5 discount=0.25": credit.LearnedGAE{Lambda: 0.5, Discount: 0.25, Decay: 0.9, Ridge: 0.1},
	} {
		got, err := credit.Kinds.Parse(spec)
		if diff := cmp.Diff(want, got.Part, cmpopts.IgnoreUnexported(credit.LearnedGAE{})); err != nil || diff != "" {
			t.Errorf("%q: error %v (-want +got):\n%s", spec, err, diff)
		}
	}
}

// Each kind leaves what it is given as it was, has a value for each call, and gives the same again.
func TestKindsArePure(t *testing.T) {
	for _, name := range credit.Kinds.Names() {
		made, err := credit.Kinds.New(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				group := drawGroup(t)
				kept := make([]credit.Rollout, len(group))
				for i, r := range group {
					kept[i] = credit.Rollout{Reward: r.Reward, Calls: append([]credit.Call(nil), r.Calls...)}
					returns := made.Part.Assign(r)
					if len(returns) != len(r.Calls) {
						t.Fatalf("%d returns for %d calls", len(returns), len(r.Calls))
					}
					if diff := cmp.Diff(returns, made.Part.Assign(r)); diff != "" {
						t.Fatalf("returns (-first +again):\n%s", diff)
					}
				}
				if c, ok := made.Part.(credit.Comparer); ok {
					added := c.Compare(group)
					for i, r := range group {
						if len(added[i]) != len(r.Calls) {
							t.Fatalf("%d advantages for %d calls", len(added[i]), len(r.Calls))
						}
					}
					if diff := cmp.Diff(added, c.Compare(group)); diff != "" {
						t.Fatalf("advantages (-first +again):\n%s", diff)
					}
				}
				if diff := cmp.Diff(kept, group); diff != "" {
					t.Fatalf("the group changed:\n%s", diff)
				}
			})
		})
	}
}
