package kernel

// SoftmaxScaled replaces row by softmax(scale·row), scale > 0: with m the canonical maximum of row,
// e[i] = Exp1(round(row[i]·scale) - round(m·scale)) and row[i] = e[i]·(1/Σe), Σ in canonical lanes.
func SoftmaxScaled(row []float32, scale float32) {
	if len(row) == 0 {
		return
	}
	softmaxScaled(current(), row, scale)
}

//go:norace
func softmaxScaledPortable(row []float32, scale float32) {
	shift := float32(maxPortable(row) * scale)
	var l lanes
	for i, v := range row {
		e := Exp1(float32(v*scale) - shift)
		row[i] = e
		l[i%16] += e
	}
	inverse := 1 / l.sum()
	for i := range row {
		row[i] = float32(row[i] * inverse)
	}
}

// SoftmaxBackward turns the gradient of probabilities into the gradient of the scores they came from:
// dp[i] = round(p[i]·(dp[i] - d))·scale with d = Σ p·dp in canonical lanes. dp and p have the same length.
func SoftmaxBackward(dp, p []float32, scale float32) {
	checkLength("SoftmaxBackward: p", len(p), len(dp))
	if len(p) == 0 {
		return
	}
	softmaxBackward(current(), dp, p, scale)
}

//go:norace
func softmaxBackwardPortable(dp, p []float32, scale float32) {
	var l lanes
	for i, v := range p {
		l[i%16] += float32(v * dp[i])
	}
	d := l.sum()
	for i, v := range p {
		dp[i] = float32(float32(v*(dp[i]-d)) * scale)
	}
}

// LogSoftmaxParts replaces row by e[i] = Exp1(row[i] - max) and returns the canonical maximum of row and the sum of e
// in canonical lanes. The log-probability of entry i is then row[i] - max - Log(sum), and its probability e[i]/sum. An
// empty row gives -Inf and 0.
func LogSoftmaxParts(row []float32) (max, sum float32) {
	if len(row) == 0 {
		return negInf, 0
	}
	return logSoftmaxParts(current(), row)
}

//go:norace
func logSoftmaxPartsPortable(row []float32) (max, sum float32) {
	max = maxPortable(row)
	var l lanes
	for i, v := range row {
		e := Exp1(v - max)
		row[i] = e
		l[i%16] += e
	}
	return max, l.sum()
}
