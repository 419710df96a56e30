package lags

import (
	"fmt"
	"math"
)

// What has to hold.
const (
	// judgedBound is the bound whose runs are compared with the synchronous ones.
	judgedBound = 8
	// keptAtLeast is the part of the synchronous success that is left, startedAtLeast what that success is at least.
	keptAtLeast, startedAtLeast = 0.98, 0.9
	// trainedAtLeast is the share of the sampled groups that are trained on.
	trainedAtLeast = 0.95
	// fasterAtLeast is how many times the synchronous rollouts a second.
	fasterAtLeast = 2.5
)

// cell is the runs of one loss with one bound, one for each seed.
type cell struct {
	loss  string
	bound uint64
	runs  []outcome
}

// trained is how many groups were trained on.
func (o outcome) trained() int {
	n := 0
	for _, groups := range o.lags {
		n += groups
	}
	return n
}

// violations is how many groups were trained on beyond the bound.
func (c cell) violations() int {
	n := 0
	for _, r := range c.runs {
		for lag, groups := range r.lags {
			if lag > c.bound {
				n += groups
			}
		}
	}
	return n
}

// lag is the mean and the largest lag of the groups that were trained on.
func (c cell) lag() (mean float64, most uint64) {
	groups, sum := 0, 0.0
	for _, r := range c.runs {
		for lag, n := range r.lags {
			groups += n
			sum += float64(lag) * float64(n)
			most = max(most, lag)
		}
	}
	return sum / float64(max(groups, 1)), most
}

// share is the part of the sampled groups that were trained on, of those that were trained on or too old.
func (c cell) share() float64 {
	trained, late := 0, 0
	for _, r := range c.runs {
		trained += r.trained()
		late += r.late
	}
	return float64(trained) / float64(max(trained+late, 1))
}

// rate is how many rollouts were trained on in a second.
func (c cell) rate() float64 {
	trained, seconds := 0, 0.0
	for _, r := range c.runs {
		trained += r.trained()
		seconds += r.took.Seconds()
	}
	return float64(trained*groupSize) / seconds
}

// skipped is how many steps left the weights as they were.
func (c cell) skipped() int {
	n := 0
	for _, r := range c.runs {
		n += r.skipped
	}
	return n
}

// success is the mean over the seeds, and half of the width of its 95% interval by Student's t; 0 for one seed.
func (c cell) success() (mean, half float64) {
	n := float64(len(c.runs))
	for _, r := range c.runs {
		mean += r.success / n
	}
	if len(c.runs) < 2 {
		return mean, 0
	}
	squares := 0.0
	for _, r := range c.runs {
		squares += (r.success - mean) * (r.success - mean)
	}
	return mean, student(len(c.runs)-1) * math.Sqrt(squares/(n-1)/n)
}

// student is the 97.5% quantile of Student's t.
func student(freedom int) float64 {
	quantiles := [...]float64{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262}
	if freedom <= len(quantiles) {
		return quantiles[freedom-1]
	}
	return 2.262 // wider than it need be
}

// header is over the rows.
var header = fmt.Sprintf(format, "loss", "S", "success", "of S=0", "lag", "most", "violations", "trained", "skipped", "rollouts/s", "of S=0")

const format = "%-10s  %2s  %-15s  %-6s  %-5s  %-4s  %-10s  %-7s  %-7s  %-10s  %s\n"

// row shows a cell, beside the synchronous one of its loss.
func (c cell) row(synchronous cell) string {
	mean, half := c.success()
	before, _ := synchronous.success()
	lag, most := c.lag()
	return fmt.Sprintf(format, c.loss, fmt.Sprint(c.bound), fmt.Sprintf("%.3f +- %.3f", mean, half),
		fmt.Sprintf("%.3f", mean/before), fmt.Sprintf("%.2f", lag), fmt.Sprint(most), fmt.Sprint(c.violations()),
		fmt.Sprintf("%.3f", c.share()), fmt.Sprint(c.skipped()), fmt.Sprintf("%.1f", c.rate()), fmt.Sprintf("%.2f", c.rate()/synchronous.rate()))
}

// bounded says which cells trained on groups beyond their bound.
func bounded(cells []cell) (wrong []string) {
	for _, c := range cells {
		if n := c.violations(); n > 0 {
			wrong = append(wrong, fmt.Sprintf("%s, S=%d: %d groups lagged more", c.loss, c.bound, n))
		}
	}
	return wrong
}

// faster says whether asynchronous runs were not much faster than synchronous ones.
func faster(synchronous, asynchronous cell) (wrong []string) {
	if r := asynchronous.rate() / synchronous.rate(); !(r >= fasterAtLeast) {
		wrong = append(wrong, fmt.Sprintf("%s, S=%d: %.2f times the synchronous throughput, want %g", asynchronous.loss, asynchronous.bound, r, fasterAtLeast))
	}
	return wrong
}

// learned says what of learning from old groups does not hold.
func learned(synchronous, asynchronous cell) (wrong []string) {
	before, _ := synchronous.success()
	after, _ := asynchronous.success()
	name := fmt.Sprintf("%s, S=%d", asynchronous.loss, asynchronous.bound)
	if before < startedAtLeast {
		wrong = append(wrong, fmt.Sprintf("%s, S=0: a success of %.3f, want %g", synchronous.loss, before, startedAtLeast))
	}
	if after < keptAtLeast*before {
		wrong = append(wrong, fmt.Sprintf("%s: a success of %.3f is more than 2%% below the synchronous %.3f", name, after, before))
	}
	if s := asynchronous.share(); s < trainedAtLeast {
		wrong = append(wrong, fmt.Sprintf("%s: %.3f of the groups were trained on, want %g", name, s, trainedAtLeast))
	}
	return wrong
}
