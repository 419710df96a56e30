package embedded

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/policy/kernel"
	"github.com/lightswarm/lightswarm/policy/transformer"
	"github.com/lightswarm/lightswarm/wire/draw"
)

// ErrNotFinite says that a policy's weights led to numbers that are not finite, so that it has no distribution.
var ErrNotFinite = errors.New("the policy's logits are not finite")

var minusInfinity = float32(math.Inf(-1))

// checkSampling refuses parameters that define no distribution.
func checkSampling(s policy.Sampling) error {
	switch {
	case !(s.Temperature >= 0) || math.IsInf(float64(s.Temperature), 0):
		return fmt.Errorf("%w: temperature %v is not a finite number of at least 0", ErrRequest, s.Temperature)
	case s.TopK < 0:
		return fmt.Errorf("%w: top-k %d is negative", ErrRequest, s.TopK)
	case !(s.TopP >= 0 && s.TopP <= 1):
		return fmt.Errorf("%w: top-p %v is outside 0..1", ErrRequest, s.TopP)
	}
	return nil
}

// sampler draws tokens. It holds scratch memory only.
type sampler struct {
	exps  []float32
	heap  []int32
	order []int32
}

// sample draws number position of a completion from logits, which it overwrites.
func (s *sampler) sample(logits []float32, p policy.Sampling, key policy.SampleKey, position int) (token int32, logProb float32, err error) {
	if p.Temperature == 0 {
		token = largest(logits)
		logProb, err = s.logProb(logits, token)
		return token, logProb, err
	}
	if p.Temperature != 1 {
		// Relative to the largest logit, so that no temperature can overflow.
		top := logits[largest(logits)]
		for i, l := range logits {
			logits[i] = (l - top) / p.Temperature
		}
	}
	topK := p.TopK > 0 && p.TopK < len(logits)
	topP := p.TopP > 0 && p.TopP < 1
	if topK || topP {
		if slices.ContainsFunc(logits, func(l float32) bool { return l != l }) {
			return 0, 0, ErrNotFinite // a NaN has no place in the order of tokens
		}
		s.truncate(logits, p, topK, topP)
	}
	peak, sum := s.parts(logits)
	if !finite(sum) {
		return 0, 0, ErrNotFinite
	}
	token = invert(s.exps, draw.Float32(key, uint64(position)))
	return token, transformer.LogProb(logits[token], peak, sum), nil
}

// logProb is the canonical log-prob of a token at temperature 1.
func (s *sampler) logProb(logits []float32, token int32) (float32, error) {
	peak, sum := s.parts(logits)
	l := transformer.LogProb(logits[token], peak, sum)
	if !finite(sum) || !finite(l) {
		return 0, ErrNotFinite
	}
	return l, nil
}

// parts sets s.exps to exp(logit - peak) and returns peak, the largest logit, and their sum, as the canonical log-prob needs them.
func (s *sampler) parts(logits []float32) (peak, sum float32) {
	s.exps = append(s.exps[:0], logits...)
	return kernel.LogSoftmaxParts(s.exps)
}

func finite(x float32) bool { return x-x == 0 }

// largest is the id of the largest logit, the lowest among equals.
func largest(logits []float32) int32 {
	best := 0
	for i, l := range logits {
		if l > logits[best] || logits[best] != logits[best] {
			best = i
		}
	}
	return int32(best)
}

// invert returns the first id at which the cumulative sum of weights exceeds the share u of their total.
func invert(weights []float32, u float32) int32 {
	total := 0.0
	for _, w := range weights {
		total += float64(w)
	}
	target, sum, last := float64(u)*total, 0.0, 0
	for i, w := range weights {
		if w > 0 {
			sum += float64(w)
			last = i
			if sum > target {
				break
			}
		}
	}
	return int32(last)
}

// truncate sets the logits outside top-k, and then outside top-p of what top-k left, to minus infinity. The likelier
// token goes first, among equals the lower id.
func (s *sampler) truncate(logits []float32, p policy.Sampling, topK, topP bool) {
	s.heapify(logits)
	s.order = s.order[:0]
	kept := len(logits)
	if topK {
		kept = p.TopK
		for range kept {
			s.order = append(s.order, s.pop(logits))
		}
		s.mask(logits)
	}
	if !topP {
		return
	}
	s.parts(logits)
	total := 0.0
	for _, w := range s.exps {
		total += float64(w)
	}
	target, n := float64(p.TopP)*total, 0
	for sum := 0.0; n < kept && sum < target; n++ {
		if n == len(s.order) {
			s.order = append(s.order, s.pop(logits))
		}
		sum += float64(s.exps[s.order[n]])
	}
	s.order = s.order[:n]
	s.mask(logits)
}

// mask sets all logits but those in s.order to minus infinity.
func (s *sampler) mask(logits []float32) {
	s.exps = append(s.exps[:0], logits...)
	for i := range logits {
		logits[i] = minusInfinity
	}
	for _, id := range s.order {
		logits[id] = s.exps[id]
	}
}

// heapify fills s.heap with all ids, the likeliest on top.
func (s *sampler) heapify(logits []float32) {
	s.heap = s.heap[:0]
	for i := range logits {
		s.heap = append(s.heap, int32(i))
	}
	for i := len(s.heap)/2 - 1; i >= 0; i-- {
		s.sink(logits, i)
	}
}

// pop removes the likeliest id.
func (s *sampler) pop(logits []float32) int32 {
	top, last := s.heap[0], len(s.heap)-1
	s.heap[0] = s.heap[last]
	s.heap = s.heap[:last]
	s.sink(logits, 0)
	return top
}

func (s *sampler) sink(logits []float32, i int) {
	before := func(a, b int32) bool {
		return logits[a] > logits[b] || logits[a] == logits[b] && a < b
	}
	for {
		child := 2*i + 1
		if child >= len(s.heap) {
			return
		}
		if child+1 < len(s.heap) && before(s.heap[child+1], s.heap[child]) {
			child++
		}
		if !before(s.heap[child], s.heap[i]) {
			return
		}
		s.heap[i], s.heap[child] = s.heap[child], s.heap[i]
		i = child
	}
}
