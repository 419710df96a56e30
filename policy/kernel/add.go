package kernel

// Add sets dst[i] += x[i]. The slices have the same length; they may be the same.
func Add(dst, x []float32) {
	checkLength("Add: x", len(x), len(dst))
	if len(x) == 0 {
		return
	}
	addEach(current(), dst, x)
}

//go:norace
func addEachPortable(dst, x []float32) {
	for i, v := range x {
		dst[i] += v
	}
}

// SumSquares returns Σ x[i]² in float64, in canonical lanes. (A square of a float32 is exact in float64.)
func SumSquares(x []float32) float64 {
	if len(x) == 0 {
		return 0
	}
	return sumSquares(current(), x)
}

//go:norace
func sumSquaresPortable(x []float32) float64 {
	var l [16]float64
	addSquares(&l, x)
	return foldSquares(&l)
}

// addSquares adds the squares of x to lanes; x[0] belongs to lane 0.
//
//go:norace
func addSquares(l *[16]float64, x []float32) {
	for i, v := range x {
		l[i%16] += float64(float64(v) * float64(v))
	}
}

// foldSquares is the fixed tree in float64.
//
//go:norace
func foldSquares(l *[16]float64) float64 {
	for step := 8; step > 0; step /= 2 {
		for i := range step {
			l[i] += l[i+step]
		}
	}
	return l[0]
}
