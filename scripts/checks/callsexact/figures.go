package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// figures are the sums of all rollouts' counts. They are safe for concurrent use.
type figures struct {
	mu sync.Mutex
	counts
}

// counts are what was tried and found.
type counts struct {
	rollouts int
	outcomes map[string]int
	requests int // that agents wanted an answer to
	answers  int // that agents got, those to retries included
	refused  int // requests that were told that their rollout had ended, had no calls or no room left, or no time
	gone     int // requests whose agent left without an answer
	recorded int // calls in bundles
	unseen   int // of them, those that no agent has seen: it had left
	leftOut  int // calls that a rollout without an outcome to train on had behind one that was given up
	faults   int // rollouts with a fault
}

func (f *figures) add(one counts, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rollouts += one.rollouts
	f.requests += one.requests
	f.answers += one.answers
	f.refused += one.refused
	f.gone += one.gone
	f.recorded += one.recorded
	f.unseen += one.unseen
	f.leftOut += one.leftOut
	if f.outcomes == nil {
		f.outcomes = map[string]int{}
	}
	for name, n := range one.outcomes {
		f.outcomes[name] += n
	}
	if err != nil {
		f.faults++
	}
}

func (f *figures) print(took time.Duration) {
	fmt.Printf("rollouts   %d in %.1f s:", f.rollouts, took.Seconds())
	for _, name := range slices.Sorted(maps.Keys(f.outcomes)) {
		fmt.Printf(" %d %s", f.outcomes[name], name)
	}
	fmt.Printf("\nrequests   %d: %d refused, %d left by their agent; %d answers, with those to retries\n", f.requests, f.refused, f.gone, f.answers)
	fmt.Printf("recorded   %d calls: %d that no agent saw; %d left out behind one that the time ended\n", f.recorded, f.unseen, f.leftOut)
	fmt.Printf("faults     %d\n", f.faults)
}

// verdict says whether the check holds, and has tried what it is for.
func (f *figures) verdict() error {
	switch {
	case f.faults > 0:
		return fmt.Errorf("%d rollouts have a fault", f.faults)
	case f.unseen == 0 || f.gone == 0 || f.refused == 0 || f.recorded-f.unseen < f.rollouts:
		return errors.New("too little was tried")
	}
	return nil
}
