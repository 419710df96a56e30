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
