package report

import "fmt"

// Kept is the longest row of evaluations, up to the newest, whose sampled success was at least the target.
type Kept struct {
	Evaluations int    `json:"evaluations"`
	FromVersion uint64 `json:"from_version"`
	ToVersion   uint64 `json:"to_version"`
	// Seconds is the time of the first of them.
	Seconds float64 `json:"seconds"`
}

// End is why a run ended.
type End string

// The ends of a run. A chain ends by its target or its last step, whichever comes first.
const (
	EndTarget    End = "target"
	EndSteps     End = "steps"
	EndTimeout   End = "timeout"
	EndInterrupt End = "interrupt"
	EndFailure   End = "failure"
)

// Settled returns the row of evaluations that ends with the newest and whose sampled success is at least target; nil if the
// newest is below it.
func Settled(evaluations []Evaluation, target float64) *Kept {
	var kept *Kept
	for _, e := range evaluations {
		switch {
		case e.Sampled.Success < target:
			kept = nil
			continue
		case kept == nil:
			kept = &Kept{FromVersion: e.Version, Seconds: e.Seconds}
		}
		kept.Evaluations++
		kept.ToVersion = e.Version
	}
	return kept
}

// Measure fills in what the evaluations say: the start, the end, the best, and whether the target was kept.
func (r *Report) Measure(evaluations []Evaluation) {
	r.Evaluations = evaluations
	if kept := Settled(evaluations, r.Target); kept != nil && r.Target > 0 {
		r.Kept, r.SecondsToTarget = kept, &kept.Seconds
	}
	if len(evaluations) == 0 {
		return
	}
	first, last := evaluations[0], evaluations[len(evaluations)-1]
	r.HeldOut, r.Greedy = change(first, last, Evaluation.sampled), change(first, last, Evaluation.greedy)
	for _, e := range evaluations {
		if r.Best == nil || e.Sampled.Success >= r.Best.Sampled.Success {
			r.Best = &e
		}
	}
}

func (e Evaluation) sampled() Rate { return e.Sampled }

func (e Evaluation) greedy() Rate { return e.Greedy }

// change is the difference that a measure shows between two versions.
func change(first, last Evaluation, measure func(Evaluation) Rate) Change {
	c := Change{Start: measure(first), End: measure(last)}
	if c.Start.Tasks > 0 {
		c.StartVersion = &first.Version
	}
	if c.End.Tasks > 0 {
		c.EndVersion = &last.Version
	}
	return c
}

// NewestMeasured says whether the newest version is among the evaluations.
func (r *Report) NewestMeasured() bool {
	n := len(r.Evaluations)
	return n > 0 && r.Evaluations[n-1].Version >= r.ReleaseHead
}

// Outcome says in words how the run stands to its target: empty without one.
func (r *Report) Outcome() string {
	switch {
	case r.Target == 0:
		return ""
	case r.Kept != nil && r.Kept.Evaluations == 1:
		return fmt.Sprintf("reached in the last evaluation, of version %d", r.Kept.ToVersion)
	case r.Kept != nil:
		return fmt.Sprintf("kept over %d evaluations, versions %d to %d", r.Kept.Evaluations, r.Kept.FromVersion, r.Kept.ToVersion)
	case r.Best != nil && r.Best.Sampled.Success >= r.Target:
		return fmt.Sprintf("not kept: reached at version %d, %.3f at version %d", r.Best.Version, r.HeldOut.End.Success, *r.HeldOut.EndVersion)
	}
	return "not reached"
}

// String says the end in words that complete "ended by".
func (e End) String() string {
	switch e {
	case EndTarget:
		return "the target"
	case EndSteps:
		return "the step limit"
	case EndTimeout:
		return "the timeout"
	case EndInterrupt:
		return "an interrupt"
	}
	return "a failure"
}
