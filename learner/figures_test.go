package learner

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lightswarm/lightswarm/wire/bundle"
)

// A step says what its groups were by environment and agent, how long completions are, and who supplied them.
func TestStepsShowTheirGroups(t *testing.T) {
	n := plainNetwork(t)
	rules, err := NewRules(n.charter, n.base, testContext, nil)
	if err != nil {
		t.Fatal(err)
	}
	manifest := n.charter.Environments[0].Manifest
	var groups []group
	for i, peer := range []byte{1, 2, 2} {
		b := n.group(0, n.base.Digest(), key(peer).Peer(), uint64(i))
		b.Environment = manifest
		b.Rollouts[0].Calls[1].Agent = "other"
		first := b.Rollouts[0].Calls[0]
		b.Rollouts[0].Calls[1].Prompt = slices.Concat(first.Prompt, first.Completion) // with nothing between the completions
		b.Rollouts[3].Outcome, b.Rollouts[3].Reward = bundle.OutcomeTimeout, 0
		groups = append(groups, group{record: Record{Peer: key(peer).Peer()}, bundle: b})
	}
	var s Step
	a := DefaultAlgorithm()
	s.show(&rules, groups, a.plan(&rules, groups))
	if s.Peers != 2 || s.Most != key(2).Peer() || s.MostGroups != 2 {
		t.Errorf("%d peers, %d groups of %s", s.Peers, s.MostGroups, s.Most)
	}
	// Of each group three rollouts have a reward, of which one is solved; all completions have 4 tokens.
	want := []EnvironmentPart{{
		Part:   Part{Name: "a", Rollouts: 9, RewardMean: 1.0 / 3, Solved: 1.0 / 3, Calls: 2, CompletionTokens: 4},
		Groups: 3,
		Agents: []Part{
			{Name: "agent", Rollouts: 9, RewardMean: 1.0 / 3, Solved: 1.0 / 3, Calls: 15.0 / 9, CompletionTokens: 4},
			{Name: "other", Rollouts: 3, Calls: 1, CompletionTokens: 4},
		},
	}}
	if diff := cmp.Diff(want, s.Environments); diff != "" {
		t.Error(diff)
	}
	if want := (Lengths{0, 0, 24}); !cmp.Equal(want, s.SampledLengths) {
		t.Errorf("completions by length %v, want %v", s.SampledLengths, want)
	}
	if want := (Lengths{0, 0, 18}); !cmp.Equal(want, s.TrainedLengths) {
		t.Errorf("trained completions by length %v, want %v", s.TrainedLengths, want)
	}
	if s.AdvantageStd <= 0 {
		t.Errorf("advantages spread by %v", s.AdvantageStd)
	}
}

// Peers cannot make a step tell apart any number of agents.
func TestAgentsAreBounded(t *testing.T) {
	agents := make(map[string]*partSum)
	for i := range 3 * mostAgents {
		agents[fmt.Sprintf("%03d", i)] = &partSum{calls: i}
	}
	parts := busiest(agents)
	if len(parts) != mostAgents || parts[0].Name != fmt.Sprintf("%03d", 2*mostAgents) {
		t.Errorf("%d agents from %s on", len(parts), parts[0].Name)
	}
}

func TestFigure(t *testing.T) {
	if got := Figure(0, true); got == nil || *got != 0 {
		t.Errorf("0 that was measured is %v", got)
	}
	for v, measured := range map[float64]bool{0: false, 1: false, math.NaN(): true, math.Inf(1): true, math.Inf(-1): true} {
		if got := Figure(v, measured); got != nil {
			t.Errorf("%v, measured %v, is %v", v, measured, *got)
		}
	}
}

// A step of which no gradient was finite has no largest one.
func TestNoGradientIsFinite(t *testing.T) {
	var s Step
	if s.describe(tokenStats{trained: 1}, 0, 0); !math.IsNaN(s.GradientNorm) {
		t.Errorf("the norm is %v", s.GradientNorm)
	}
}

func TestLengths(t *testing.T) {
	var l Lengths
	for _, n := range []int{1, 2, 3, 4, 7, 8} {
		l.Add(n)
	}
	if want := (Lengths{1, 2, 2, 1}); !cmp.Equal(want, l) {
		t.Errorf("%v, want %v", l, want)
	}
}
