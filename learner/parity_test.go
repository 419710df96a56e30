package learner

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lightswarm/lightswarm/learner/advantage"
	"github.com/lightswarm/lightswarm/learner/credit"
	"github.com/lightswarm/lightswarm/learner/row"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

// parityCase is what scripts/fixtures/traces.py writes: traces, and what agentlightning 0.3.0 makes of them.
type parityCase struct {
	Name     string
	Rollouts []struct {
		Task  string
		Calls []struct {
			Prompt, Completion []int32
			Reward             *float32
		}
	}
	// Rows are by level.
	Rows map[string][]theirRow
}

// theirRow is a row of the package: trained are indices into the response.
type theirRow struct {
	Rollout                   int
	Group                     string
	Prompt, Response, Trained []int32
	Dropped                   bool
	Reward                    float64
	Advantages                map[string]float64
}

// ourRow is a row of a plan with the rollout's place among those of the case.
type ourRow struct {
	Rollout           int
	Tokens, Positions []int32
}

func readParity(t *testing.T, name string) parityCase {
	t.Helper()
	data, err := os.ReadFile("testdata/agentlightning.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []parityCase
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("there is no case %q", name)
	return parityCase{}
}

// groups are the case's rollouts by task. As in the package, a rollout's reward is what its last call has; without one it
// failed.
func (c parityCase) groups(n network) []group {
	var groups []group
	for i, r := range c.Rollouts {
		if i == 0 || c.Rollouts[i-1].Task != r.Task {
			g := groupOf(n, uint64(i), 0)
			g.bundle.Rollouts = nil
			groups = append(groups, g)
		}
		made := bundle.Rollout{Outcome: bundle.OutcomeAgentError}
		for j, call := range r.Calls {
			kept := bundle.Call{Agent: "agent", Prompt: call.Prompt, Completion: call.Completion, LogProbs: make([]float32, len(call.Completion)), Reward: call.Reward}
			if j == len(r.Calls)-1 {
				kept.Reward = nil
				if call.Reward != nil {
					made.Outcome, made.Reward = bundle.OutcomeScored, *call.Reward
				}
			}
			made.Calls = append(made.Calls, kept)
		}
		b := groups[len(groups)-1].bundle
		b.Rollouts = append(b.Rollouts, made)
	}
	return groups
}

// ours plans the case, and returns each row with its advantage.
func (c parityCase) ours(t *testing.T, level row.Level, e advantage.Estimator) ([]ourRow, []float64) {
	t.Helper()
	n := plainNetwork(t)
	a := testAlgorithm()
	a.Level, a.Advantage, a.Credit, a.Minibatches = level, e, credit.Return{}, 1
	var rows []ourRow
	var advantages []float64
	for _, r := range a.plan(planRules(t, n), c.groups(n)).minibatches[0].rows {
		rows = append(rows, ourRow{r.rollout, r.Tokens, r.Positions})
		advantages = append(advantages, r.Advantages[0])
	}
	return rows, advantages
}

// theirs are the package's rows in the shape of ours.
func (c parityCase) theirs(level row.Level) []ourRow {
	var rows []ourRow
	for _, r := range c.Rows[level.String()] {
		made := ourRow{Rollout: r.Rollout, Tokens: append(append([]int32{}, r.Prompt...), r.Response...)}
		for _, i := range r.Trained {
			made.Positions = append(made.Positions, int32(len(r.Prompt))+i)
		}
		rows = append(rows, made)
	}
	return rows
}

func (c parityCase) theirAdvantages(level row.Level, estimator string) []float64 {
	var advantages []float64
	for _, r := range c.Rows[level.String()] {
		advantages = append(advantages, r.Advantages[estimator])
	}
	return advantages
}

// alike compares what the package computes in half precision, bfloat16.
func alike(t *testing.T, what string, theirs, ours []float64) {
	t.Helper()
	if len(theirs) != len(ours) {
		t.Fatalf("%s: they have %d, we %d", what, len(theirs), len(ours))
	}
	for i := range ours {
		if math.Abs(theirs[i]-ours[i]) > 0.02*(0.1+math.Abs(ours[i])) {
			t.Errorf("%s, row %d: theirs %v, ours %v", what, i, theirs[i], ours[i])
		}
	}
}

// Rows, masks and groups are the package's at both levels.
func TestParityRows(t *testing.T) {
	for _, name := range []string{"uneven", "even", "rewritten", "long rollout", "rounded reward", "intermediate"} {
		c := readParity(t, name)
		for _, level := range []row.Level{row.Transition, row.Trajectory} {
			rows, _ := c.ours(t, level, advantage.DrGRPO{})
			if diff := cmp.Diff(c.theirs(level), rows); diff != "" {
				t.Errorf("%s, %v (-theirs +ours):\n%s", name, level, diff)
			}
			for i, r := range c.Rows[level.String()] {
				if c.Rollouts[r.Rollout].Task != r.Group {
					t.Errorf("%s, %v: row %d is compared within %s", name, level, i, r.Group)
				}
			}
		}
	}
}

// Advantages are the package's where each rollout has as many rows as the others of its group. Its GRPO divides by the
// deviation of a sample, which is that of the group times the square root of n/(n-1).
func TestParityAdvantages(t *testing.T) {
	for name, levels := range map[string][]row.Level{"uneven": {row.Trajectory}, "even": {row.Transition, row.Trajectory}} {
		c := readParity(t, name)
		for _, level := range levels {
			_, dr := c.ours(t, level, advantage.DrGRPO{})
			alike(t, "Dr.GRPO", c.theirAdvantages(level, "dr-grpo"), dr)
			if level == row.Trajectory {
				_, rloo := c.ours(t, level, advantage.RLOO{})
				alike(t, "RLOO", c.theirAdvantages(level, "rloo"), rloo)
			}
			_, grpo := c.ours(t, level, advantage.GRPO{})
			n := 4.0
			if level == row.Transition {
				n = 8
			}
			for i := range grpo {
				grpo[i] *= math.Sqrt((n - 1) / n)
			}
			alike(t, "GRPO", c.theirAdvantages(level, "grpo"), grpo)
		}
	}
}

// The tests below are where the learner differs from the package on purpose. Each shows both answers.

// A call whose prompt is what came before, with nothing observed in between, repeats the whole prompt in the package's row
// and trains the wrong tokens. Here it continues.
func TestParityDefectNoObservation(t *testing.T) {
	differs(t, "no observation",
		ourRow{0, []int32{1, 2, 3, 1, 2, 3, 4}, []int32{2, 3}},
		[]ourRow{{0, []int32{1, 2, 3, 4}, []int32{2, 3}}})
}

// A prompt that is sampled twice with one completion passes for a continuation in the package, whose row then holds tokens
// that no call had in this order. Here each sample has its row.
func TestParityDefectRepeatedCall(t *testing.T) {
	differs(t, "repeated call",
		ourRow{0, []int32{1, 2, 3, 2, 3}, []int32{2, 3}},
		[]ourRow{{0, []int32{1, 2, 3}, []int32{2}}, {0, []int32{1, 2, 3}, []int32{2}}})
}

// differs compares the package's first row at trajectory level with ours of that rollout.
func differs(t *testing.T, name string, theirs ourRow, ours []ourRow) {
	t.Helper()
	c := readParity(t, name)
	if diff := cmp.Diff(theirs, c.theirs(row.Trajectory)[0]); diff != "" {
		t.Errorf("theirs (-want +got):\n%s", diff)
	}
	rows, _ := c.ours(t, row.Trajectory, advantage.DrGRPO{})
	if diff := cmp.Diff(ours, rows[:len(ours)]); diff != "" {
		t.Errorf("ours (-want +got):\n%s", diff)
	}
}

// A later row of a rollout whose prompt is longer than the package's limit trains the part of the prompt that is over it,
// and its mask is longer than its tokens. Here a prompt is never trained on; what does not fit the model's context is
// refused before.
func TestParityDefectLongPrompt(t *testing.T) {
	c := readParity(t, "long prompt")
	theirs := c.Rows["trajectory"][1]
	want := theirRow{Prompt: []int32{9, 8, 7}, Response: []int32{6, 5, 4}, Trained: []int32{0, 1, 2, 3, 4}}
	if diff := cmp.Diff(want, theirRow{Prompt: theirs.Prompt, Response: theirs.Response, Trained: theirs.Trained}); diff != "" {
		t.Errorf("theirs (-want +got):\n%s", diff)
	}
	rows, _ := c.ours(t, row.Trajectory, advantage.DrGRPO{})
	if diff := cmp.Diff(ourRow{0, []int32{9, 8, 7, 6, 5, 4}, []int32{5}}, rows[1]); diff != "" {
		t.Errorf("ours (-want +got):\n%s", diff)
	}
}

// Calls of roles that take turns never merge in the package, which looks at the last call alone. Here a call continues
// any row of its rollout.
func TestParityDifferenceRoles(t *testing.T) {
	c := readParity(t, "roles")
	rows, _ := c.ours(t, row.Trajectory, advantage.DrGRPO{})
	if theirs := c.theirs(row.Trajectory); len(theirs) != 5 || len(rows) != 3 {
		t.Errorf("they have %d rows, we %d; want 5 and 3", len(theirs), len(rows))
	}
}

// The package's baseline is the mean over rows, so that a long rollout outvotes short ones (turn bias); and REINFORCE++
// scales by a deviation over tokens. Here each rollout has one say: the two that won outweigh the one that lost in six
// calls.
func TestParityDefectTurnBias(t *testing.T) {
	c := readParity(t, "long rollout")
	_, ours := c.ours(t, row.Transition, advantage.DrGRPO{})
	alike(t, "theirs", c.theirAdvantages(row.Transition, "dr-grpo"), []float64{-.25, -.25, -.25, -.25, -.25, -.25, .75, .75})
	alike(t, "ours", ours, []float64{-2. / 3, -2. / 3, -2. / 3, -2. / 3, -2. / 3, -2. / 3, 1. / 3, 1. / 3})

	_, ours = c.ours(t, row.Trajectory, advantage.ReinforcePP{})
	alike(t, "theirs, REINFORCE++", c.theirAdvantages(row.Trajectory, "reinforce-pp"), []float64{-0.39, 2.36, 2.36})
	alike(t, "ours, REINFORCE++", ours, []float64{-math.Sqrt2, math.Sqrt2 / 2, math.Sqrt2 / 2})
}

// Leaving a row out, as the package does, leaves the rollout's other rows in the baseline that it is compared with: with two
// rows a rollout and four rollouts, RLOO's factor is 8/7. Here the whole rollout is left out, and the factor 4/3.
func TestParityDefectLeaveOneOut(t *testing.T) {
	c := readParity(t, "even")
	_, ours := c.ours(t, row.Transition, advantage.RLOO{})
	_, plain := c.ours(t, row.Transition, advantage.DrGRPO{})
	theirs := c.theirAdvantages(row.Transition, "rloo")
	for i, a := range plain {
		if math.Abs(ours[i]-a*4/3) > 1e-12 || math.Abs(theirs[i]-a*8/7) > 0.01 {
			t.Errorf("row %d, of %v: theirs %v, ours %v", i, a, theirs[i], ours[i])
		}
	}
}

// The package rounds rewards to bfloat16. Here they keep the 24 bits that they come with.
func TestParityDefectRoundedReward(t *testing.T) {
	c := readParity(t, "rounded reward")
	_, ours := c.ours(t, row.Transition, advantage.RLOO{})
	if theirs := c.Rows["transition"][0].Reward; theirs != 0.69921875 || ours[0] != float64(float32(0.7)) {
		t.Errorf("a reward of 0.7: theirs %v, ours %v", theirs, ours[0])
	}
}

// A rollout that failed has a reward of 0 in the package, and its agent is blamed for the fault. Here it is left out.
func TestParityDefectFailed(t *testing.T) {
	c := readParity(t, "failed")
	_, ours := c.ours(t, row.Transition, advantage.DrGRPO{})
	alike(t, "theirs", c.theirAdvantages(row.Transition, "dr-grpo"), []float64{-0.5, 0.5, 0})
	alike(t, "ours", ours, []float64{0.25, -0.25})
}

// Of a rollout's rewards the package takes the last. Here what calls were given counts: 1.5 against 0.
func TestParityDefectIntermediate(t *testing.T) {
	c := readParity(t, "intermediate")
	_, ours := c.ours(t, row.Trajectory, advantage.DrGRPO{})
	alike(t, "theirs", c.theirAdvantages(row.Trajectory, "dr-grpo"), []float64{0.5, -0.5})
	alike(t, "ours", ours, []float64{0.75, -0.75})
}

// As in agentlightning 1.0, all rows of a rollout have one advantage, that of the rollout in its group, and each rollout's
// tokens weigh as much together as another's: 1 over the rollouts, however many rows and tokens it has.
func TestParityRolloutLevel(t *testing.T) {
	c := readParity(t, "uneven")
	n := plainNetwork(t)
	for _, level := range []row.Level{row.Transition, row.Trajectory} {
		a := testAlgorithm()
		a.Level, a.Advantage, a.Credit, a.Minibatches = level, advantage.RLOO{}, credit.Return{}, 1
		m := a.plan(planRules(t, n), c.groups(n)).minibatches[0]
		weights := make([]float64, len(c.Rollouts))
		for _, r := range m.rows {
			mean, start := 0.0, r.rollout/4*4
			for i := start; i < start+4; i++ {
				calls := c.Rollouts[i].Calls
				mean += float64(*calls[len(calls)-1].Reward) / 4
			}
			calls := c.Rollouts[r.rollout].Calls
			want := (float64(*calls[len(calls)-1].Reward) - mean) * 4 / 3
			for _, got := range r.Advantages {
				if math.Abs(got-want) > 1e-12 {
					t.Errorf("%v: a token of rollout %d has advantage %v, want %v", level, r.rollout, got, want)
				}
				weights[r.rollout] += r.weight
			}
		}
		for i, w := range weights {
			if math.Abs(w-1./12) > 1e-12 {
				t.Errorf("%v: rollout %d weighs %v", level, i, w)
			}
		}
	}
}
