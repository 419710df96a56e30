package main

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/lightswarm/lightswarm/experiment"
	"github.com/lightswarm/lightswarm/testnet/report"
)

// done is a run whose versions, two steps apart, have the success on 128 held-out tasks.
func done(success ...float64) run {
	r := &report.Report{End: report.EndSteps, ReleaseHead: uint64(2 * max(len(success)-1, 0))}
	for i, s := range success {
		r.Evaluations = append(r.Evaluations, report.Evaluation{Version: uint64(2 * i), Sampled: report.Rate{Success: s, Tasks: 128}})
	}
	return run{seed: 1, state: experiment.StateDone, report: r}
}

func TestJudge(t *testing.T) {
	late := done(0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
	late.report.End = report.EndTimeout
	unmeasured := done(0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
	unmeasured.report.ReleaseHead++
	for name, tt := range map[string]struct {
		run  run
		want []string // a part of each thing that does not hold
	}{
		"rises":            {done(0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.72, 0.75, 0.78), nil},
		"twice":            {done(0.25, 0.3, 0.35, 0.4, 0.45, 0.5), nil},
		"enough":           {done(0.6, 0.7, 0.8, 0.85, 0.88, 0.9), nil},
		"too little":       {done(0.3, 0.35, 0.4, 0.45, 0.5, 0.59), []string{"ends at 0.590, below 0.600"}},
		"too little of 1":  {done(0.6, 0.7, 0.8, 0.85, 0.88, 0.89), []string{"below 0.900"}},
		"levels off early": {done(0.3, 0.6, 0.9, 0.92, 0.95, 0.91, 0.93, 0.9, 0.94), nil},
		"does not learn":   {done(0.92, 0.91, 0.93, 0.9, 0.94, 0.92), []string{"not clearly above"}},
		"learns and forgets": {
			done(0.1, 0.2, 0.2, 0.8, 0.85, 0.8, 0.5, 0.5, 0.5),
			[]string{"third 3 has 0.500, below the 0.817", "falls to 0.500 in the last third, below 0.6"},
		},
		"falls in the middle": {done(0.3, 0.7, 0.7, 0.4, 0.4, 0.4, 0.9, 0.9, 0.9), []string{"third 2 has 0.400"}},
		"collapses once":      {done(0.2, 0.4, 0.6, 0.7, 0.8, 0.8, 0.9, 0.5, 0.9), []string{"falls to 0.500"}},
		"varies":              {done(0.2, 0.4, 0.6, 0.7, 0.8, 0.8, 0.85, 0.75, 0.85), nil},
		"collapses early":     {done(0.2, 0.6, 0.3, 0.8, 0.8, 0.8, 0.85, 0.85, 0.85), nil},
		"timeout":             {late, []string{"ended by"}},
		"end not measured":    {unmeasured, []string{"want 0 to 11"}},
		"nothing measured":    {done(), []string{"0 versions are measured"}},
		"few measured":        {done(0.3, 0.5, 0.6, 0.7, 0.8), []string{"5 versions are measured"}},
		"failed":              {run{state: experiment.StateFailed, failure: "no disk"}, []string{"it is failed: no disk"}},
		"missing":             {run{state: experiment.StateMissing}, []string{"it is missing"}},
	} {
		t.Run(name, func(t *testing.T) {
			wrong := judge(tt.run).wrong
			if !slices.EqualFunc(wrong, tt.want, strings.Contains) {
				t.Errorf("does not hold: %q, want %q", wrong, tt.want)
			}
		})
	}
}

func TestThirdsHaveEachEvaluationOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		success := rapid.SliceOfN(rapid.Float64Range(0, 1), fewestEvaluations, 40).Draw(t, "success")
		tasks := 0
		for _, third := range judge(done(success...)).thirds {
			if third.tasks < 2*128 {
				t.Errorf("a third has %d tasks", third.tasks)
			}
			tasks += third.tasks
		}
		if tasks != 128*len(success) {
			t.Errorf("the thirds have %d tasks of %d", tasks, 128*len(success))
		}
	})
}

func TestDeviation(t *testing.T) {
	// 60 of 100 and 20 of 100 make p = 0.4: √(0.4 · 0.6 · 0.02).
	if got, want := deviation(sample{0.6, 100}, sample{0.2, 100}), math.Sqrt(0.0048); math.Abs(got-want) > 1e-12 {
		t.Errorf("%v, want %v", got, want)
	}
	// 90 of 100 and 30 of 300 make p = 0.3.
	if got, want := deviation(sample{0.9, 100}, sample{0.1, 300}), math.Sqrt(0.21*(0.01+1.0/300)); math.Abs(got-want) > 1e-12 {
		t.Errorf("%v, want %v", got, want)
	}
}
