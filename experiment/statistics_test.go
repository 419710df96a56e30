package experiment_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/lightswarm/lightswarm/experiment"
)

func TestEstimate(t *testing.T) {
	if experiment.NewEstimate(nil) != nil {
		t.Error("no values have an estimate")
	}
	if e := experiment.NewEstimate([]float64{0.5}); e.Mean != 0.5 || e.Runs != 1 || e.Low != nil || e.High != nil {
		t.Errorf("one value has %+v", e)
	}
	for _, c := range []struct {
		values     []float64
		mean, half float64
	}{
		// s/√n times the quantile of published tables of t: 12.7062 for 1 degree of freedom, 4.3027 for 2, 2.7764 for 4.
		{[]float64{0, 1}, 0.5, 0.5 * 12.7062},
		{[]float64{1, 2, 3}, 2, 4.3027 / math.Sqrt(3)},
		{[]float64{2, 4, 4, 6, 9}, 5, 2.7764 * math.Sqrt(7.0/5)},
		{[]float64{3, 3, 3}, 3, 0},
	} {
		e := experiment.NewEstimate(c.values)
		low, high := c.mean-c.half, c.mean+c.half
		if e.Runs != len(c.values) || !near(e.Mean, c.mean) || !near(*e.Low, low) || !near(*e.High, high) {
			t.Errorf("%v: %g, %g to %g; want %g, %g to %g", c.values, e.Mean, *e.Low, *e.High, c.mean, low, high)
		}
	}
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-3 }

// The interval moves with the values, and is as wide as they are far apart.
func TestEstimateOfShiftedAndScaledValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(-10, 10), 2, 30).Draw(t, "values")
		shift, scale := rapid.Float64Range(-10, 10).Draw(t, "shift"), rapid.Float64Range(0.1, 10).Draw(t, "scale")
		moved := make([]float64, len(values))
		for i, v := range values {
			moved[i] = v*scale + shift
		}
		a, b := experiment.NewEstimate(values), experiment.NewEstimate(moved)
		if !near(b.Mean, a.Mean*scale+shift) || !near(*b.Low, *a.Low*scale+shift) || !near(*b.High, *a.High*scale+shift) {
			t.Fatalf("%+v of %v, %+v of %v", a, values, b, moved)
		}
	})
}
