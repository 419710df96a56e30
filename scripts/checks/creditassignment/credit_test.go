package main

import (
	"strings"
	"testing"

	"github.com/lightswarm/lightswarm/learner/credit"
)

// A chain is the same whenever it is run, to the last bit of the weights.
func TestChainsRepeat(t *testing.T) {
	e := experiment{credit.Return{}, atEnd, 1, 640}
	first, err := e.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		again, err := e.run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if again != first {
			t.Errorf("a chain ended as %+v, and then as %+v", first, again)
		}
	}
	e.seed = 2
	if other, err := e.run(t.Context()); err != nil || other == first {
		t.Errorf("another seed gives %+v, %v", other, err)
	}
}

func TestJudge(t *testing.T) {
	rows := func(needed ...int) row { // 0 for a chain that did not succeed
		r := row{spec: "x"}
		for _, n := range needed {
			o := outcome{rollouts: n, reached: n > 0, success: enough}
			if n == 0 {
				o.rollouts, o.success = most, 0.25
			}
			r.outcomes = append(r.outcomes, o)
		}
		return r
	}
	for name, tt := range map[string]struct {
		judged, other row
		halves        bool
		shown         string
	}{
		"half":                {rows(100, 50, 10), rows(90, 100, 110), true, "0.50"},
		"more than half":      {rows(51, 51, 1), rows(100, 100, 100), false, "0.51"},
		"one did not succeed": {rows(0, 50, 50), rows(100, 100, 100), true, "not reached (0.25), 50, 50"},
		"most did not":        {rows(0, 0, 50), rows(100, 100, 100), false, "above"},
		"the other did not":   {rows(50, 50, 50), rows(0, 0, 100), true, "below"},
		"late, and the other did not": {
			rows(most, most, most), rows(0, 0, 0), false, "below 1.00",
		},
		"neither": {rows(0, 0, 0), rows(0, 0, 0), false, "unknown"},
	} {
		if got := tt.judged.halves(tt.other); got != tt.halves {
			t.Errorf("%s: %v, want %v", name, got, tt.halves)
		}
		if got := tt.judged.show(tt.other); !strings.Contains(got, tt.shown) {
			t.Errorf("%s: it is shown as %q, want %q", name, got, tt.shown)
		}
	}
}
