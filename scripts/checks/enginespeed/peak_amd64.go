package main

import (
	"time"

	"golang.org/x/sys/cpu"
)

//go:noescape
func peakAVX512(rounds int)

//go:noescape
func peakAVX2(rounds int)

// peakFlops measures the float32 operations a second that one core does in fused multiply-adds, the best of a few
// rounds; 0 if it has none.
func peakFlops() float64 {
	run, perRound := peakAVX2, 14*8*2.0
	switch {
	case cpu.X86.HasAVX512F:
		run, perRound = peakAVX512, 30*16*2.0
	case !cpu.X86.HasFMA:
		return 0
	}
	const rounds = 3_000_000
	best := 0.0
	for range 5 {
		start := time.Now()
		run(rounds)
		best = max(best, rounds*perRound/time.Since(start).Seconds())
	}
	return best
}
