package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/lightswarm/lightswarm/learner/row"
	"github.com/lightswarm/lightswarm/scripts/checks/chains"
)

// Where history continues, concatenated is level trajectory to the last bit of the weights, and nothing is scored again.
// Elsewhere it is not what transition is, but from the first rollouts on the same and trained on as much.
func TestLevels(t *testing.T) {
	for _, a := range agents {
		run := func(level row.Level) outcome {
			o, err := experiment{a, level, 0.01, 4, 1}.run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return o
		}
		exact := a.name == "continues"
		c, trajectory, transition := run(row.Concatenated), run(row.Trajectory), run(row.Transition)
		if same := c.policy == trajectory.policy; same != exact {
			t.Errorf("%s: the policy is that of trajectory: %v, want %v", a.name, same, exact)
		}
		if again := c.work.rescored; (again == 0) != exact || transition.work.rescored > 0 {
			t.Errorf("%s: %d tokens are scored again, and %d as transitions", a.name, again, transition.work.rescored)
		}
		if want := 4 * chains.Groups * chains.GroupSize * calls; c.work.trained != want {
			t.Errorf("%s: %d tokens trained, want %d", a.name, c.work.trained, want)
		}
		if err := (pair{[]outcome{transition}, []outcome{c}}).fair(); err != nil {
			t.Errorf("%s: %v", a.name, err)
		}
	}
}

// Prompts, and how many calls are right, for a task with topics 1, 2, 3 and 4 and these answers.
func TestAgents(t *testing.T) {
	task := uint64(1 + topics*(2+topics*(3+topics*4)))
	answers := []int32{5, 6, 7, 8} // of arms 1, 2, 3 and 0
	for name, want := range map[string]struct {
		right   int
		prompts [][]int32
	}{
		"continues": {4, [][]int32{
			{100, 141}, {100, 141, 5, 142}, {100, 141, 5, 142, 6, 143}, {100, 141, 5, 142, 6, 143, 7, 144},
		}},
		"forgets": {4, [][]int32{{100, 141}, {100, 142}, {100, 143}, {100, 144}}},
		"notes":   {1, [][]int32{{100, 141}, {100, 121}, {100, 142}, {100, 123}}},
		"roles":   {2, [][]int32{{110, 141}, {111, 142}, {110, 143}, {111, 144}}},
	} {
		a := agents[slices.IndexFunc(agents, func(a agent) bool { return a.name == name })]
		var prompts [][]int32
		right, err := a.play(func(_ string, prompt []int32) (int32, error) {
			prompts = append(prompts, prompt)
			return answers[len(prompts)-1], nil
		}, task)
		if err != nil || right != want.right || !slices.EqualFunc(prompts, want.prompts, slices.Equal) {
			t.Errorf("%s: %d right, prompts %v, %v; want %v", name, right, prompts, err, want)
		}
	}
}

func TestFair(t *testing.T) {
	made := func(change func(o *outcome)) outcome {
		o := outcome{won: make([]bool, 100), work: work{trained: 10, ran: 30}}
		change(&o)
		return o
	}
	for name, tt := range map[string]struct {
		change func(o *outcome)
		want   string
	}{
		"equal":             {func(*outcome) {}, ""},
		"more is run":       {func(o *outcome) { o.work.ran++ }, ""},
		"later wins":        {func(o *outcome) { o.won[64] = true }, ""},
		"another beginning": {func(o *outcome) { o.won[63] = true }, "first rollouts differ"},
		"fewer rollouts":    {func(o *outcome) { o.won = o.won[1:] }, "99 concatenated"},
		"fewer tokens":      {func(o *outcome) { o.work.trained-- }, "seed 2: 10 tokens trained as transitions, 9 concatenated"},
	} {
		same := made(func(*outcome) {})
		err := pair{[]outcome{same, same}, []outcome{same, made(tt.change)}}.fair()
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

func TestVerdict(t *testing.T) {
	of := func(wins ...int) (all []outcome) {
		for _, n := range wins {
			won := make([]bool, 100)
			for i := range n {
				won[i] = true
			}
			all = append(all, outcome{won: won})
		}
		return all
	}
	for name, tt := range map[string]struct {
		p    pair
		want string
	}{
		"transition":   {pair{of(90, 80), of(50, 41)}, "transition wins: transition less concatenated is +0.395, 95% interval +0.331"},
		"concatenated": {pair{of(50, 41), of(90, 80)}, "concatenated wins"},
		"neither":      {pair{of(50, 60), of(40, 70)}, "no winner"},
		"a tie":        {pair{of(50, 60), of(50, 60)}, "no winner: transition less concatenated is +0.000"},
		"one seed":     {pair{of(50), of(60)}, "too few seeds"},
	} {
		if got := tt.p.verdict(outcome.along); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
