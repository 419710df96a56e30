package main

import (
	"fmt"
	"slices"
	"strings"
)

// row is the chains of one assignment, one for each seed.
type row struct {
	spec     string
	outcomes []outcome
}

// median is how many rollouts a chain needs. One that did not succeed counts as needing more than the most, so ok says
// whether the median one succeeded. Of an even number of chains it is the slower of the two in the middle.
func (r row) median() (rollouts int, ok bool) {
	var needed []int
	for _, o := range r.outcomes {
		n := o.rollouts
		if !o.reached {
			n = most + 1
		}
		needed = append(needed, n)
	}
	slices.Sort(needed)
	rollouts = needed[len(needed)/2]
	return rollouts, rollouts <= most
}

// halves says whether a row needs at most half of the rollouts of another.
func (r row) halves(other row) bool {
	n, ok := r.median()
	others, _ := other.median()
	return ok && 2*n <= others
}

const (
	format     = "%-22s  %-39s  %-11s  %s\n"
	notReached = "not reached"
)

var header = fmt.Sprintf(format, "assignment", "rollouts", "median", "of "+reference+"'s")

// show is a line of the table. A chain that did not succeed is shown with the success that it had in the end.
func (r row) show(other row) string {
	var chains []string
	for _, o := range r.outcomes {
		if o.reached {
			chains = append(chains, fmt.Sprint(o.rollouts))
		} else {
			chains = append(chains, fmt.Sprintf("%s (%.2f)", notReached, o.success))
		}
	}
	n, ok := r.median()
	others, othersOK := other.median()
	median, part := notReached, fmt.Sprintf("%.2f", float64(n)/float64(others))
	if ok {
		median = fmt.Sprint(n)
	}
	switch {
	case !ok && !othersOK:
		part = "unknown"
	case !ok:
		part = "above " + part
	case !othersOK:
		part = "below " + part
	}
	return fmt.Sprintf(format, r.spec, strings.Join(chains, ", "), median, part)
}
