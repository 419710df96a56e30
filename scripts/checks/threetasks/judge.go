package main

import (
	"fmt"
	"math"

	"github.com/lightswarm/lightswarm/experiment"
	"github.com/lightswarm/lightswarm/testnet/report"
)

// What has to hold of a run.
const (
	// The last version solves at least twice as many held-out tasks as the first policy, or the share enough of them.
	twice, enough = 2, 0.9
	// fewestEvaluations make a curve: each third has two.
	fewestEvaluations = 6
	// thirdErrors is how many standard errors one third of a curve may be below the one before it, or must be above the
	// first. All curves together have some fifty such comparisons, and a policy that does not change fails one with a
	// chance of 0.0013.
	thirdErrors = 3
	// evaluationErrors is how many standard errors an evaluation of the last third may be below the best one before it. All
	// curves together have some four hundred pairs, and one policy differs so much with a chance of 0.00003 in each.
	evaluationErrors = 4
)

// run is what is judged of one seed.
type run struct {
	seed uint64
	// state is what became of it, failure why it failed, and report its own if it is done, else nil.
	state   experiment.State
	failure string
	report  *report.Report
}

// sample is a share of tasks that were solved, and of how many.
type sample struct {
	success float64
	tasks   int
}

// pool is the share over several evaluations.
func pool(evaluations []report.Evaluation) sample {
	var all sample
	solved := 0.0
	for _, e := range evaluations {
		solved += e.Sampled.Success * float64(e.Sampled.Tasks)
		all.tasks += e.Sampled.Tasks
	}
	all.success = solved / float64(max(all.tasks, 1))
	return all
}

// deviation is the standard error of the difference of two samples of one policy, √(p(1-p)(1/n+1/m)), where p is the share
// of both together: what the test of two proportions compares with. All versions are measured on the same tasks, some of
// which are solved nearly always or never, so that the true error is smaller.
func deviation(a, b sample) float64 {
	n, m := float64(a.tasks), float64(b.tasks)
	p := (a.success*n + b.success*m) / (n + m)
	return math.Sqrt(max(p*(1-p), 0) * (1/n + 1/m))
}

// verdict is what was found of a run.
type verdict struct {
	// start and end are the success of the first policy and of the last version, needs what the end has to be.
	start, end, needs float64
	// thirds are those of the curve.
	thirds [3]sample
	// low is the evaluation of the last third that comes closest to a collapse, allowed what it has to be.
	low, allowed float64
	// wrong says what does not hold.
	wrong []string
}

// judge looks at one run. What a run that is not done lacks in figures is NaN.
func judge(r run) verdict {
	none := math.NaN()
	v := verdict{start: none, end: none, needs: none, low: none, allowed: none}
	for i := range v.thirds {
		v.thirds[i].success = none
	}
	if r.state != experiment.StateDone {
		v.fails("it is %s", r.state)
		if r.failure != "" {
			v.wrong[0] += ": " + r.failure
		}
		return v
	}
	curve := r.report.Evaluations
	if r.report.End != report.EndSteps {
		v.fails("ended by %s", r.report.End)
	}
	switch {
	case len(curve) < fewestEvaluations:
		v.fails("%d versions are measured, want %d", len(curve), fewestEvaluations)
		return v
	case curve[0].Version != 0 || curve[len(curve)-1].Version != r.report.ReleaseHead:
		v.fails("versions %d to %d are measured, want 0 to %d", curve[0].Version, curve[len(curve)-1].Version, r.report.ReleaseHead)
	}
	v.reaches(curve)
	v.rises(curve)
	v.stays(curve)
	return v
}

func (v *verdict) fails(format string, arguments ...any) {
	v.wrong = append(v.wrong, fmt.Sprintf(format, arguments...))
}

// reaches looks whether the end is good enough for the start.
func (v *verdict) reaches(curve []report.Evaluation) {
	v.start, v.end = curve[0].Sampled.Success, curve[len(curve)-1].Sampled.Success
	if v.needs = min(twice*v.start, enough); v.end < v.needs {
		v.fails("ends at %.3f, below %.3f", v.end, v.needs)
	}
}

// rises looks whether success improved all the way: no third of the curve is below the one before it, and the last is above
// the first.
func (v *verdict) rises(curve []report.Evaluation) {
	for i := range v.thirds {
		v.thirds[i] = pool(curve[i*len(curve)/3 : (i+1)*len(curve)/3])
	}
	for i, third := range v.thirds[1:] {
		if before := v.thirds[i]; third.success < before.success-thirdErrors*deviation(before, third) {
			v.fails("third %d has %.3f, below the %.3f before it", i+2, third.success, before.success)
		}
	}
	if first, last := v.thirds[0], v.thirds[2]; !(last.success > first.success+thirdErrors*deviation(first, last)) {
		v.fails("the last third has %.3f, not clearly above the first's %.3f", last.success, first.success)
	}
}

// stays looks whether success collapsed in the last third: each evaluation there is compared with the best before it.
func (v *verdict) stays(curve []report.Evaluation) {
	closest := math.Inf(1)
	best := curve[0]
	for i, e := range curve {
		if i >= 2*len(curve)/3 {
			allowed := best.Sampled.Success - evaluationErrors*deviation(pool([]report.Evaluation{best}), pool([]report.Evaluation{e}))
			if room := e.Sampled.Success - allowed; room < closest {
				closest, v.low, v.allowed = room, e.Sampled.Success, allowed
			}
		}
		if e.Sampled.Success > best.Sampled.Success {
			best = e
		}
	}
	if closest < 0 {
		v.fails("falls to %.3f in the last third, below %.3f", v.low, v.allowed)
	}
}
