package watch_test

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/lightswarm/lightswarm/learner"
	"github.com/lightswarm/lightswarm/learner/journal"
	"github.com/lightswarm/lightswarm/learner/watch"
	"github.com/lightswarm/lightswarm/wire"
)

// step is an ordinary training step.
func step(version uint64) learner.Step {
	return learner.Step{
		Version: version, Groups: 32, Learned: 20, Peers: 4, MostGroups: 8, Most: "peer", Active: 4, Rollouts: 256,
		RewardMean: 0.4 + 0.005*float64(version), Solved: 0.4, Lags: map[uint64]int{0: 24, 1: 8},
		TrainedTokens: 1000, Clipped: 0.01, EffectiveSamples: 0.9, Entropy: 0.04, GradientNorm: 0.2,
	}
}

// Each alert is raised after some bad steps in a row, stays while figures are near its bound, and ends when all is well.
func TestAlertsOfSteps(t *testing.T) {
	tests := map[watch.Kind]struct{ bad, near func(*learner.Step) }{
		watch.EntropyCollapse: {func(s *learner.Step) { s.Entropy = 0.004 }, func(s *learner.Step) { s.Entropy = 0.01 }},
		watch.RewardStuck:     {func(s *learner.Step) { s.RewardMean = 0.4 + 0.1*float64(s.Version%2) }, nil},
		watch.TokensMasked:    {func(s *learner.Step) { s.Clipped = 0.4 }, func(s *learner.Step) { s.Clipped = 0.25 }},
		watch.GradientBlowUp:  {func(s *learner.Step) { s.GradientNorm = 5 }, func(s *learner.Step) { s.GradientNorm = 1 }},
		watch.LagAtBound: {
			func(s *learner.Step) { s.Lags = map[uint64]int{8: 20, 7: 12} },
			func(s *learner.Step) {
				s.Lags, s.Drops = map[uint64]int{0: 20}, map[learner.Reason]int{learner.StaleAtUse: 12}
			},
		},
		watch.PeerDominates: {func(s *learner.Step) { s.MostGroups = 30 }, func(s *learner.Step) { s.MostGroups = 22 }},
	}
	for kind, test := range tests {
		t.Run(string(kind), func(t *testing.T) {
			w := watch.New(8)
			version := uint64(0)
			run := func(steps int, change func(*learner.Step)) (changes []watch.Change) {
				for range steps {
					version++
					s := step(version)
					if change != nil {
						change(&s)
					}
					changes = append(changes, w.Step(s)...)
				}
				return changes
			}
			if got := run(20, nil); len(got) > 0 {
				t.Fatalf("alerts out of nothing: %v", got)
			}
			if kind != watch.EntropyCollapse && kind != watch.RewardStuck { // Means over many steps do not see one.
				for range 5 {
					if got := append(run(2, test.bad), run(1, nil)...); len(got) > 0 {
						t.Fatalf("two bad steps raise %v", got)
					}
				}
			}
			long := 80
			if kind == watch.GradientBlowUp { // What lasts is usual some day.
				long = 8
			}
			raised := run(long, test.bad)
			if len(raised) != 1 || raised[0].Over || raised[0].Kind != kind || raised[0].Message == "" || raised[0].Advice == "" {
				t.Fatalf("bad steps raised %v", raised)
			}
			if got := w.Alerts(); len(got) != 1 || got[0] != raised[0].Alert {
				t.Errorf("%v stands", got)
			}
			if test.near != nil {
				if got := run(long*3/4, test.near); len(got) > 0 {
					t.Errorf("figures near the bound changed %v", got)
				}
			}
			over := run(80, func(s *learner.Step) {
				if kind == watch.RewardStuck {
					s.RewardMean = 0.01 * float64(s.Version)
				}
			})
			if len(over) != 1 || !over[0].Over || over[0].Kind != kind || len(w.Alerts()) > 0 {
				t.Errorf("good steps changed %v; %v stands", over, w.Alerts())
			}
		})
	}
}

func TestHeldOutFallsWhileTheRewardRises(t *testing.T) {
	measure := func(version uint64, successes int) learner.Evaluation {
		return learner.Evaluation{Version: version, Purpose: wire.PurposeEvaluateSampled, Tasks: 256, Expected: 256, Successes: successes}
	}
	for _, rises := range []bool{true, false} {
		w := watch.New(8)
		var changes []watch.Change
		for version := range uint64(40) {
			s := step(version)
			if !rises {
				s.RewardMean = 0.4 - 0.001*float64(version)
			}
			w.Step(s)
			switch version {
			case 5:
				changes = append(changes, w.Evaluated(measure(5, 200))...)
			case 10, 15, 20, 25:
				changes = append(changes, w.Evaluated(measure(version, 120))...)
			case 30:
				changes = append(changes, w.Evaluated(measure(30, 195))...)
			}
		}
		kinds := func(over bool) (versions []uint64) {
			for _, c := range changes {
				if c.Kind == watch.HeldOutFalls && c.Over == over {
					versions = append(versions, c.Version)
				}
			}
			return versions
		}
		if rises && (!slices.Equal(kinds(false), []uint64{20}) || !slices.Equal(kinds(true), []uint64{30})) {
			t.Errorf("the reward rises and held-out success falls: %v", changes)
		}
		if !rises && len(changes) > 0 {
			t.Errorf("the reward does not rise: %v", changes)
		}
	}
}

// A training reward of before the best evaluation is needed to know that it rose since: where the first evaluation is the best,
// it is that of the first steps after it.
func TestTheFirstEvaluationIsNoRise(t *testing.T) {
	w := watch.New(8)
	evaluate := func(version uint64, successes int) []watch.Change {
		return w.Evaluated(learner.Evaluation{Version: version, Purpose: wire.PurposeEvaluateSampled, Tasks: 256, Expected: 256, Successes: successes})
	}
	evaluate(0, 200)
	for version := range uint64(40) {
		s := step(version)
		s.RewardMean = 0.4
		w.Step(s)
		if got := evaluate(version+1, 100); len(got) > 0 {
			t.Fatalf("the training reward never changes: %v", got)
		}
	}
}

// Small evaluations and small steps vary by chance, the more of them the more; that alone raises no alert.
func TestChanceRaisesNothing(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	count := func(n int, p float64) (hits int) {
		for range n {
			if random.Float64() < p {
				hits++
			}
		}
		return hits
	}
	for _, tasks := range []int{16, 64, 256} {
		for range 20 {
			w := watch.New(8)
			for version := range uint64(200) {
				s := step(version)
				s.Groups, s.Rollouts, s.MostGroups, s.Most = 2, 16, 1, wire.PeerID(rune('a'+random.IntN(3)))
				if random.Float64() < 1.0/3 {
					s.MostGroups = 2 // both of one of three peers
				}
				s.RewardMean = 0.001*float64(version) + float64(count(16, 0.4))/16
				changes := w.Step(s)
				changes = append(changes, w.Evaluated(learner.Evaluation{
					Version: version, Purpose: wire.PurposeEvaluateSampled, Tasks: tasks, Expected: tasks, Successes: count(tasks, 0.5),
				})...)
				for _, c := range changes {
					if c.Kind != watch.RewardStuck { // It rises too slowly to be seen.
						t.Fatalf("version %d, %d tasks: %v", version, tasks, c)
					}
				}
			}
		}
	}
}

// Where steps have a single group, all of it is always of one peer: who supplies most shows over several steps.
func TestStepsOfOneGroup(t *testing.T) {
	for peers, want := range map[int]int{1: 1, 4: 0} {
		w := watch.New(8)
		var changes []watch.Change
		for version := range uint64(60) {
			s := step(version)
			s.Groups, s.MostGroups, s.Most = 1, 1, wire.PeerID(rune('a'+int(version)%peers))
			changes = append(changes, w.Step(s)...)
		}
		if len(changes) != want {
			t.Errorf("groups of %d peers: %v", peers, changes)
		}
	}
}

// Gradients that stay larger are the usual ones some day.
func TestLargerGradientsBecomeUsual(t *testing.T) {
	w := watch.New(8)
	var changes []watch.Change
	for version := range uint64(200) {
		s := step(version)
		if version >= 50 {
			s.GradientNorm *= 12
		}
		changes = append(changes, w.Step(s)...)
	}
	if len(changes) != 2 || changes[0].Version != 52 || !changes[1].Over {
		t.Errorf("%v", changes)
	}
}

// An entropy that is not a number says nothing, and keeps nothing from being said later.
func TestEntropyThatIsNone(t *testing.T) {
	w := watch.New(8)
	var changes []watch.Change
	for version := range uint64(40) {
		s := step(version)
		switch {
		case version == 0:
			s.Entropy = math.NaN()
		case version >= 20:
			s.Entropy = 0.001
		}
		changes = append(changes, w.Step(s)...)
	}
	if len(changes) != 1 || changes[0].Kind != watch.EntropyCollapse {
		t.Errorf("%v", changes)
	}
}

// Training that solves nearly all does not go back and forth about a reward that cannot rise.
func TestNearlySolvedIsNotStuck(t *testing.T) {
	w := watch.New(8)
	for version := range uint64(300) {
		s := step(version)
		s.RewardMean, s.Solved = 0.9, 0.9+0.06*math.Sin(float64(version)/4)
		if got := w.Step(s); len(got) > 0 {
			t.Fatalf("%v", got)
		}
	}
}

// Steps that are undone raise an alert that says why.
func TestUndoneStepsAreToldOf(t *testing.T) {
	w := watch.New(8)
	var raised []watch.Change
	for version := range uint64(3) {
		s := step(version)
		s.Skipped = "the gradient's norm is NaN"
		raised = append(raised, w.Step(s)...)
	}
	if len(raised) != 1 || !strings.Contains(raised[0].Message, "NaN") {
		t.Errorf("raised %v", raised)
	}
}

// A recorded run that went well, a testnet on the built-in environment, raises nothing. testdata/good.jsonl is its
// metrics.jsonl.
func TestAGoodRunRaisesNothing(t *testing.T) {
	raw, err := os.ReadFile("testdata/good.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	w := watch.New(8)
	steps, evaluations := 0, 0
	for line := range bytes.Lines(raw) {
		var l journal.Line
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatal(err)
		}
		var changes []watch.Change
		if l.Step != nil {
			steps++
			changes = w.Step(recorded(&l))
		} else if l.Purpose == wire.PurposeEvaluateSampled.String() {
			evaluations++
			changes = w.Evaluated(learner.Evaluation{
				Version: l.Version, Purpose: wire.PurposeEvaluateSampled, Tasks: l.Tasks, Expected: l.Tasks,
				Successes: int(math.Round(l.Success * float64(l.Tasks))),
			})
		}
		if len(changes) > 0 {
			t.Errorf("%s of version %d: %v", l.Type, l.Version, changes)
		}
	}
	if steps < 10 || evaluations < 3 {
		t.Fatalf("%d steps, %d evaluations", steps, evaluations)
	}
}

// recorded is the step of a line, as far as a watch looks at it.
func recorded(l *journal.Line) learner.Step {
	s := learner.Step{
		Version: l.Version, Groups: l.Groups, Learned: l.Learned, Peers: l.Peers, MostGroups: l.MostGroups, Active: l.Active,
		Rollouts: l.Rollouts, Lags: l.Lags, Drops: make(map[learner.Reason]int), TrainedTokens: l.TrainedTokens,
		Skipped: l.Skipped,
	}
	if l.RewardMean != nil {
		s.RewardMean, s.Solved = *l.RewardMean, *l.Solved
	}
	if l.TrainedTokens > 0 {
		s.Clipped, s.EffectiveSamples, s.Entropy, s.GradientNorm = *l.Clipped, *l.EffectiveSamples, *l.Entropy, *l.GradientNorm
	}
	for reason, n := range l.Drops {
		s.Drops[learner.Reason(reason)] = n
	}
	return s
}
