package kernel

// lanes are the 16 partial results of a reduction (rule 3 of the package).
type lanes [16]float32

// sum folds the lanes with the fixed tree.
//
//go:norace
func (l *lanes) sum() float32 {
	for step := 8; step > 0; step /= 2 {
		for i := range step {
			l[i] += l[i+step]
		}
	}
	return l[0]
}

// max folds the lanes with the fixed tree.
//
//go:norace
func (l *lanes) max() float32 {
	for step := 8; step > 0; step /= 2 {
		for i := range step {
			if l[i+step] > l[i] {
				l[i] = l[i+step]
			}
		}
	}
	return l[0]
}

// maxPortable is the canonical maximum of x; -Inf if x is empty or has nothing above it.
//
//go:norace
func maxPortable(x []float32) float32 {
	l := lanes{
		negInf, negInf, negInf, negInf, negInf, negInf, negInf, negInf,
		negInf, negInf, negInf, negInf, negInf, negInf, negInf, negInf,
	}
	for i, v := range x {
		if v > l[i%16] {
			l[i%16] = v
		}
	}
	return l.max()
}
