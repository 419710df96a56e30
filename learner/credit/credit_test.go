package credit_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lightswarm/lightswarm/learner/credit"
)

func reward(v float64) *float64 { return &v }

func TestReturn(t *testing.T) {
	tests := []struct {
		name string
		in   credit.Rollout
		want []float64
	}{
		{"no calls", credit.Rollout{Reward: 1}, []float64{}},
		{"one call", credit.Rollout{Reward: 0.5, Calls: make([]credit.Call, 1)}, []float64{0.5}},
		{"final reward only", credit.Rollout{Reward: 1, Calls: make([]credit.Call, 3)}, []float64{1, 1, 1}},
		{
			"intermediate rewards are part of the return",
			credit.Rollout{Reward: 1, Calls: []credit.Call{{Reward: reward(0.25)}, {}, {Reward: reward(-0.5)}}},
			[]float64{0.75, 0.75, 0.75},
		},
		{
			"roles make no difference",
			credit.Rollout{Reward: 2, Calls: []credit.Call{{Agent: "writer"}, {Agent: "checker"}}},
			[]float64{2, 2},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, credit.Return{}.Assign(tt.in)); diff != "" {
				t.Errorf("returns (-want +got):\n%s", diff)
			}
		})
	}
}

// Every call of a rollout gets the same value, and adding a constant to the reward adds it to every return.
func TestReturnIsUniform(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.IntRange(-8, 8)
		r := credit.Rollout{Reward: float64(value.Draw(t, "reward"))}
		for range rapid.IntRange(1, 8).Draw(t, "calls") {
			c := credit.Call{Agent: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "agent")}
			if rapid.Bool().Draw(t, "rewarded") {
				c.Reward = reward(float64(value.Draw(t, "call reward")))
			}
			r.Calls = append(r.Calls, c)
		}
		before := credit.Return{}.Assign(r)
		r.Reward += 3
		after := credit.Return{}.Assign(r)
		for i := range before {
			if before[i] != before[0] {
				t.Fatalf("call %d has return %v, call 0 has %v", i, before[i], before[0])
			}
			if after[i] != before[i]+3 {
				t.Fatalf("call %d: return %v became %v for a reward larger by 3", i, before[i], after[i])
			}
		}
	})
}
