package lags

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/lightswarm/lightswarm/policy"
)

// runs are two seeds of a loss that holds, but for what change does to the second.
func runs(bound uint64, change func(*outcome)) cell {
	took := 100 * time.Second
	if bound > 0 {
		took = 20 * time.Second
	}
	c := cell{loss: "dppo", bound: bound}
	for i := range 2 {
		o := outcome{success: 0.95, lags: map[uint64]int{0: 50}, took: took}
		o.lags[bound] += 50
		if i == 1 && change != nil {
			change(&o)
		}
		c.runs = append(c.runs, o)
	}
	return c
}

func TestJudge(t *testing.T) {
	for name, tt := range map[string]struct {
		old, young func(*outcome)
		want       int // what does not hold
	}{
		"holds":                {},
		"beyond the bound":     {old: func(o *outcome) { o.lags[judgedBound+1] = 1 }, want: 1},
		"stale in synchronous": {young: func(o *outcome) { o.lags[1] = 1 }, want: 1},
		"learns less":          {old: func(o *outcome) { o.success = 0.9 }, want: 1},
		"within two percent":   {old: func(o *outcome) { o.success = 0.92 }},
		"neither learns":       {young: func(o *outcome) { o.success = 0.7 }, want: 1},
		"too old":              {old: func(o *outcome) { o.late = 12 }, want: 1},
		"few are too old":      {old: func(o *outcome) { o.late = 10 }},
		"slow":                 {old: func(o *outcome) { o.took *= 4 }, want: 1},
		"no time at all":       {young: func(o *outcome) { o.lags = nil }, old: func(o *outcome) { o.lags, o.took = nil, math.MaxInt64 }, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synchronous, asynchronous := runs(0, tt.young), runs(judgedBound, tt.old)
			wrong := bounded([]cell{synchronous, asynchronous})
			wrong = append(wrong, learned(synchronous, asynchronous)...)
			wrong = append(wrong, faster(synchronous, asynchronous)...)
			if len(wrong) != tt.want {
				t.Errorf("%d do not hold, want %d: %q", len(wrong), tt.want, wrong)
			}
		})
	}
}

func TestSuccessHasAnInterval(t *testing.T) {
	c := cell{runs: []outcome{{success: 0.9}, {success: 0.94}, {success: 0.98}}}
	// The standard error is 0.04/sqrt(3), and the quantile of two degrees of freedom 4.303.
	if mean, half := c.success(); math.Abs(mean-0.94) > 1e-9 || math.Abs(half-0.09937) > 1e-5 {
		t.Errorf("%v +- %v, want 0.94 +- 0.09937", mean, half)
	}
}

// Waits are at least the least, and a quarter of them are at least twice as long.
func TestWaitsAreHeavyTailed(t *testing.T) {
	w := waits{time.Second}
	rapid.Check(t, func(t *rapid.T) {
		var key policy.SampleKey
		copy(key[:], rapid.SliceOfN(rapid.Byte(), len(key), len(key)).Draw(t, "key"))
		wait := w.of(key)
		if quarter := key[0] < 64; wait < time.Second || (wait >= 2*time.Second) != quarter {
			t.Errorf("%v for key %x", wait, key[:4])
		}
	})
}
