package transformer

import "github.com/lightswarm/lightswarm/policy/kernel"

// rotary holds the cosines and sines of the rotary position embedding (Su et al., 2021), [Context][HeadDim/2] each, in
// the half-split layout of the Llama family: element i of a head turns together with element i+HeadDim/2.
type rotary struct {
	cos, sin []float32
	half     int
}

// newRotary computes the tables in float64, with functions that are the same on every machine.
func newRotary(c Config) rotary {
	half := c.HeadDim / 2
	r := rotary{make([]float32, c.Context*half), make([]float32, c.Context*half), half}
	for i := range half {
		frequency := kernel.Pow(c.RopeTheta, -float64(i)/float64(half))
		for t := range c.Context {
			sin, cos := kernel.SinCos(float64(t) * frequency)
			r.cos[t*half+i], r.sin[t*half+i] = float32(cos), float32(sin)
		}
	}
	return r
}

// at returns the cosines and sines of a position.
func (r rotary) at(position int) (cos, sin []float32) {
	from, to := position*r.half, (position+1)*r.half
	return r.cos[from:to], r.sin[from:to]
}
