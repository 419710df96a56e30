package credit

import (
	"fmt"
	"math"
	"slices"
)

// Memory is what a value head is fitted to: sums over the calls that were seen, where older ones count less. It is a value:
// nothing here changes one that it was given. The zero Memory has seen nothing.
type Memory struct {
	// Gram is the lower triangle, row by row, of the sum of phi phi^T, and Moments the sum of phi G, over calls with features
	// phi and return G.
	Gram, Moments []float64
}

// Check says whether the sums can belong together, for one that comes from a file.
func (m Memory) Check() error {
	if n := len(m.Moments); len(m.Gram) != triangle(n) {
		return fmt.Errorf("a critic has %d sums of products for %d features, not %d", len(m.Gram), n, triangle(n))
	}
	return nil
}

// Fit returns the head w that minimises 1/2 sum (w phi - G)^2 + ridge/2 |w|^2 over what was seen. ridge is positive.
func (m Memory) Fit(ridge float64) Head { return solve(m.Gram, ridge, m.Moments) }

// aged returns a copy whose sums count decay, with room for the features of a state of some numbers.
func (m Memory) aged(decay float64, numbers int) Memory {
	if m.Moments == nil {
		return Memory{make([]float64, triangle(numbers+1)), make([]float64, numbers+1)}
	}
	m = Memory{slices.Clone(m.Gram), slices.Clone(m.Moments)}
	for _, sums := range [...][]float64{m.Gram, m.Moments} {
		for i := range sums {
			sums[i] *= decay
		}
	}
	return m
}

// add adds a call to sums that nobody else has.
func (m Memory) add(phi []float64, value float64) {
	at := 0
	for i, a := range phi {
		for j, b := range phi[:i+1] {
			m.Gram[at+j] += float64(a * b)
		}
		at += i + 1
		m.Moments[i] += float64(a * value)
	}
}

// Head is a linear value head: a weight for each feature. None says 0 of every state.
type Head []float64

// Value returns what a head says of a state: a call without one is worth 0. It panics if the head is of states of another
// length.
func (h Head) Value(state []float32) float64 {
	if len(h) == 0 || len(state) == 0 {
		return 0
	}
	if len(h) != len(state)+1 {
		panic(fmt.Sprintf("credit: a head of %d weights is asked of a state of %d numbers", len(h), len(state)))
	}
	value := 0.0
	for i, f := range features(state) {
		value += float64(h[i] * f)
	}
	return value
}

// Values implements Critic.
func (h Head) Values(group []Rollout) [][]float64 {
	values := make([][]float64, len(group))
	for i, r := range group {
		values[i] = make([]float64, len(r.Calls))
		for j, c := range r.Calls {
			values[i][j] = h.Value(c.State)
		}
	}
	return values
}

// features are a state's numbers over the square root of how many there are, and a constant. After a norm with gains of
// about 1, which makes the mean square of the numbers 1, their own squares sum to 2 for any length: a ridge weighs alike for
// small models and large ones.
func features(state []float32) []float64 {
	phi := make([]float64, len(state)+1)
	scale := 1 / math.Sqrt(float64(len(state)))
	for i, v := range state {
		phi[i] = float64(scale * float64(v))
	}
	phi[len(state)] = 1
	return phi
}

// triangle is the number of elements of the lower triangle of a square matrix of n rows.
func triangle(n int) int { return n * (n + 1) / 2 }

// solve returns the x of (A + ridge I) x = b by Cholesky's factorisation, A = L L^T. a is the lower triangle of A by rows, A
// positive semidefinite. Each sum is one chain in a fixed order.
func solve(a []float64, ridge float64, b []float64) []float64 {
	l, x := slices.Clone(a), slices.Clone(b)
	row := func(i int) []float64 { return l[triangle(i):triangle(i+1)] }
	for i := range b {
		at := row(i)
		at[i] += ridge
		for j := range i {
			at[j] = less(at[j], at, row(j), j) / row(j)[j]
		}
		at[i] = math.Sqrt(less(at[i], at, at, i))
	}
	for i := range b { // L y = b
		x[i] = less(x[i], row(i), x, i) / row(i)[i]
	}
	for i := len(b) - 1; i >= 0; i-- { // L^T x = y
		for k := i + 1; k < len(b); k++ {
			x[i] -= float64(row(k)[i] * x[k])
		}
		x[i] /= row(i)[i]
	}
	return x
}

// less subtracts the product of the first n elements of two vectors from a sum.
func less(sum float64, a, b []float64, n int) float64 {
	for k := range n {
		sum -= float64(a[k] * b[k])
	}
	return sum
}
