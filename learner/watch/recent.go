package watch

import (
	"math"
	"slices"
)

// recent holds the newest values, up to a number of them.
type recent []float64

func (r *recent) add(v float64, most int) {
	*r = append(*r, v)
	if len(*r) > most {
		*r = slices.Delete(*r, 0, len(*r)-most)
	}
}

// mean is 0 without values.
func (r recent) mean() float64 {
	sum := 0.0
	for _, v := range r {
		sum += v
	}
	return sum / float64(max(len(r), 1))
}

// variance is the sample variance; 0 of fewer than two values.
func (r recent) variance() float64 {
	mean, sum := r.mean(), 0.0
	for _, v := range r {
		sum += (v - mean) * (v - mean)
	}
	return sum / float64(max(len(r)-1, 1))
}

// median is 0 without values.
func (r recent) median() float64 {
	if len(r) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(r))
	return sorted[len(sorted)/2]
}

// noise is the standard error of the difference between two means, infinite where fewer than two values say how much they vary.
func noise(a, b recent) float64 {
	if min(len(a), len(b)) < 2 {
		return math.Inf(1)
	}
	return math.Sqrt(a.variance()/float64(len(a)) + b.variance()/float64(len(b)))
}
