package main

import (
	"fmt"
	"math"
	"time"
)

// round is what one round cost. All of it is of the learner's process.
type round struct {
	Tokens            int           // trained on
	Whole, Bare       time.Duration // by the wall clock, to the last step's release, and with the bare kernel
	WholeCPU, BareCPU time.Duration // processor time
}

// ratio is the learner's tokens a second divided by the bare kernel's.
func (r round) ratio() float64 { return r.Bare.Seconds() / r.Whole.Seconds() }

func (r round) cpuRatio() float64 { return r.BareCPU.Seconds() / r.WholeCPU.Seconds() }

func (r round) print(number int) {
	tokens := float64(r.Tokens)
	fmt.Printf("%5d  %7d  %16.0f  %13.0f  %.3f  %.3f\n", number, r.Tokens, tokens/r.Whole.Seconds(), tokens/r.Bare.Seconds(), r.ratio(), r.cpuRatio())
}

// verdict prints the figures of all rounds and says whether what is promised holds.
func verdict(rounds []round) error {
	ratio, interval := mean(rounds, round.ratio)
	byCPU, cpuInterval := mean(rounds, round.cpuRatio)
	fmt.Printf("ratio              %.3f +- %.3f by the wall clock (promised %.2f)\n", ratio, interval, promised)
	fmt.Printf("ratio              %.3f +- %.3f by processor time\n", byCPU, cpuInterval)
	if !(ratio >= promised) {
		return fmt.Errorf("the learner trains on %.3f of the tokens that its kernel could, promised are %.2f", ratio, promised)
	}
	fmt.Println("learner-throughput: holds")
	return nil
}

// mean is the mean of a figure over rounds, and half of its 95% interval by Student's t.
func mean(rounds []round, figure func(round) float64) (mean, half float64) {
	n := float64(len(rounds))
	for _, r := range rounds {
		mean += figure(r) / n
	}
	squares := 0.0
	for _, r := range rounds {
		squares += (figure(r) - mean) * (figure(r) - mean)
	}
	t := 2.201 // of 11 degrees of freedom
	if len(rounds) == 3 {
		t = 4.303 // of 2
	}
	return mean, t * math.Sqrt(squares/(n-1)/n)
}
