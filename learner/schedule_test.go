package learner

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/lightswarm/lightswarm/wire"
)

func TestScheduleRate(t *testing.T) {
	tests := []struct {
		name string
		s    Schedule
		want map[uint64]float64
	}{
		{"constant", Schedule{Peak: 2}, map[uint64]float64{1: 2, 1000: 2}},
		{"warm-up", Schedule{Peak: 3, Warmup: 2}, map[uint64]float64{1: 1, 2: 2, 3: 3, 4: 3}},
		{"decay", Schedule{Peak: 3, Warmup: 2, Decay: 4, Floor: 1}, map[uint64]float64{2: 2, 3: 2.5, 4: 2, 5: 1.5, 6: 1, 99: 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for version, want := range tt.want {
				if got := tt.s.Rate(version); math.Abs(got-want) > 1e-12 {
					t.Errorf("version %d: rate %v, want %v", version, got, want)
				}
			}
		})
	}
}

func TestStopReached(t *testing.T) {
	e := func(successes, tasks int) Evaluation {
		return Evaluation{Purpose: wire.PurposeEvaluateSampled, Tasks: tasks, Expected: 10, Successes: successes}
	}
	greedy := Evaluation{Purpose: wire.PurposeEvaluateGreedy, Tasks: 10, Expected: 10, Successes: 1}
	target := Stop{Target: 0.9, Hold: 2, Purpose: wire.PurposeEvaluateSampled}
	tests := []struct {
		name        string
		stop        Stop
		head        uint64
		evaluations []Evaluation
		want        bool
	}{
		{"no rule", Stop{}, 1000, []Evaluation{e(10, 10), e(10, 10)}, false},
		{"before the last version", Stop{MaxVersion: 5}, 4, nil, false},
		{"at the last version", Stop{MaxVersion: 5}, 5, nil, true},
		{"reached once", target, 9, []Evaluation{e(3, 10), e(9, 10)}, false},
		{"held", target, 9, []Evaluation{e(3, 10), e(9, 10), e(10, 10)}, true},
		{"lost again", target, 9, []Evaluation{e(9, 10), e(9, 10), e(8, 10)}, false},
		{"not successive", target, 9, []Evaluation{e(9, 10), e(8, 10), e(9, 10)}, false},
		{"incomplete ones say nothing", target, 9, []Evaluation{e(9, 10), e(1, 9), e(9, 10), e(9, 9)}, true},
		{"nor do those of the other purpose", target, 9, []Evaluation{e(9, 10), greedy, e(9, 10)}, true},
		{"evaluation is off", target, 9, []Evaluation{{Purpose: wire.PurposeEvaluateSampled}}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.stop.Reached(tt.head, tt.evaluations); got != tt.want {
				t.Errorf("stops %v, want %v", got, tt.want)
			}
		})
	}
}

func TestPaceQuota(t *testing.T) {
	p := Pace{Ahead: 0.5, Most: 100}
	tests := []struct {
		name                   string
		batch, waiting, active int
		want                   uint32
	}{
		{"nobody is known", 32, 0, 0, 0},
		{"one node", 32, 0, 1, 48},
		{"ten nodes", 32, 0, 10, 5},
		{"more nodes than groups", 32, 0, 1000, 1},
		{"much waits", 32, 200, 4, 1},
		{"some waits", 32, 16, 4, 8},
		{"bounded", 1000, 0, 2, 100},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := p.Quota(tt.batch, tt.waiting, tt.active); got != tt.want {
				t.Errorf("quota %d, want %d", got, tt.want)
			}
		})
	}
	// With nodes that deliver what they are asked for, as many groups wait from step to step as are to be ahead.
	rapid.Check(t, func(t *rapid.T) {
		batch, active := rapid.IntRange(1, 64).Draw(t, "batch"), rapid.IntRange(1, 16).Draw(t, "active")
		left := rapid.IntRange(0, 200).Draw(t, "waiting")
		for range 400 {
			left += int(p.Quota(batch, left, active)) * active
			if left < batch {
				t.Fatalf("a step starves: %d of %d groups", left, batch)
			}
			left -= batch
		}
		if most := int(math.Ceil(0.5*float64(batch))) + active; active < batch && left > most {
			t.Fatalf("%d groups wait, expected at most %d", left, most)
		}
	})
}

// A yield is between those of the steps that it is of, and soon that of steps which are alike.
func TestYield(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var y Yield
		low, high := 1.0, 0.0
		if y.Part() != 1 {
			t.Fatalf("%v of no groups teach", y.Part())
		}
		for range rapid.IntRange(1, 10).Draw(t, "steps") {
			groups := rapid.IntRange(0, 50).Draw(t, "groups")
			learned := rapid.IntRange(0, groups).Draw(t, "learned")
			if groups > 0 {
				low, high = min(low, float64(learned)/float64(groups)), max(high, float64(learned)/float64(groups))
			}
			before := y
			if y = y.After(groups, learned); groups == 0 && y != before {
				t.Fatal("a step without groups changes it")
			}
			if p := y.Part(); y.groups > 0 && (p < low-1e-12 || p > high+1e-12) || y.check() != nil {
				t.Fatalf("%v teach, of steps from %v to %v; %v", p, low, high, y.check())
			}
			rule := BatchRule{Groups: rapid.IntRange(1, 40).Draw(t, "batch"), Dynamic: rapid.Float64Range(1, 8).Draw(t, "dynamic")}
			if n := rule.Expect(y); n < rule.Groups || n > rule.Most() {
				t.Fatalf("a step of %+v expects %d groups", rule, n)
			}
		}
		for range 12 {
			y = y.After(40, 10)
		}
		if p := y.Part(); math.Abs(p-0.25) > 0.05 {
			t.Fatalf("%v teach after many steps of 0.25", p)
		}
	})
	for _, y := range []Yield{{math.NaN(), 0}, {1, math.NaN()}, {1, 2}, {1, -1}, {math.Inf(1), 1}} {
		if y.check() == nil {
			t.Errorf("%+v passes", y)
		}
	}
}

// Where one group in so many teaches, nodes that deliver what they are asked for soon supply full batches, and not much more.
func TestPaceFollowsTheYield(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		period := rapid.IntRange(1, 6).Draw(t, "one teaches in")
		rule := BatchRule{Groups: rapid.IntRange(1, 32).Draw(t, "groups"), Dynamic: 6, PeerShare: 1}
		active := rapid.IntRange(1, 8).Draw(t, "nodes")
		pace, b, order := Pace{Ahead: 0.25, Most: 1024}, NewBuffer(rule), uint64(0)
		var y Yield
		for step := range 60 {
			for range int(pace.Quota(rule.Expect(y), b.Len(), active)) * active {
				b.Add(waiting(order, uint64(step), 1), order%uint64(period) == 0, start)
				order++
			}
			learned, batch := 0, b.Rest()
			for _, r := range batch {
				if r.Order%uint64(period) == 0 {
					learned++
				}
			}
			y = y.After(len(batch), learned)
			if step < 20 {
				continue
			}
			if learned < rule.Groups {
				t.Fatalf("step %d learns from %d groups of %d", step, learned, rule.Groups)
			}
			if most := int(math.Ceil(0.25*float64(rule.Groups*period))) + active + period; active < rule.Groups && b.Len() > most {
				t.Fatalf("step %d leaves %d groups, expected at most %d", step, b.Len(), most)
			}
		}
	})
}
