package experiment

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Estimate is the mean of a figure over runs that differ in the seed, and what is known of the mean itself.
type Estimate struct {
	Mean float64 `json:"mean"`
	// Low and High are the ends of the 95% interval; nil for fewer than two runs, which say nothing of how much runs differ.
	Low  *float64 `json:"low"`
	High *float64 `json:"high"`
	// Runs is how many runs have the figure.
	Runs int `json:"runs"`
}

// NewEstimate returns the mean of values and its two-sided 95% interval by Student's t distribution,
//
//	mean ± t(0.975; n-1) s/√n,  s² = Σ(x - mean)²/(n-1)
//
// which holds for values that scatter normally (Student, The Probable Error of a Mean, 1908). It is nil for no values.
func NewEstimate(values []float64) *Estimate {
	n := len(values)
	if n == 0 {
		return nil
	}
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	e := &Estimate{Mean: sum / float64(n), Runs: n}
	if n == 1 {
		return e
	}
	squares := 0.0
	for _, v := range values {
		squares += float64((v - e.Mean) * (v - e.Mean))
	}
	t := distuv.StudentsT{Sigma: 1, Nu: float64(n - 1)}.Quantile(0.975)
	half := t * math.Sqrt(squares/float64(n-1)/float64(n))
	low, high := e.Mean-half, e.Mean+half
	e.Low, e.High = &low, &high
	return e
}
