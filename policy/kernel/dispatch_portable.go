package kernel

var supported = []path{portable}

// width is the panel width of a Packed on this path.
func (path) width() int { return portableWidth }

func packTransposed(_ path, panel []float32, width, columns, k int, b []float32, ldb int) {
	packTransposedPortable(panel, width, columns, k, b, ldb)
}

func packRows(_ path, panel []float32, width, columns, k int, b []float32, ldb int) {
	packRowsPortable(panel, width, columns, k, b, ldb)
}

func matMul(_ path, m, n, k int, a []float32, rs, cs int, b []float32, step int, c []float32, ldc int, accumulate bool) {
	matMulPortable(m, n, k, a, rs, cs, b, step, c, ldc, accumulate)
}

func vecMat(_ path, k, n int, a, b []float32, ldb int, c []float32, accumulate bool) {
	vecMatPortable(k, n, a, b, ldb, c, accumulate)
}

func expVector(_ path, dst, x []float32)                       { expPortable(dst, x) }
func softmaxScaled(_ path, row []float32, scale float32)       { softmaxScaledPortable(row, scale) }
func softmaxBackward(_ path, dp, p []float32, scale float32)   { softmaxBackwardPortable(dp, p, scale) }
func logSoftmaxParts(_ path, row []float32) (max, sum float32) { return logSoftmaxPartsPortable(row) }
func siluMul(_ path, dst, gate, up []float32)                  { siluMulPortable(dst, gate, up) }
func siluMulBackward(_ path, dGate, dUp, dOut, gate, up []float32) {
	siluMulBackwardPortable(dGate, dUp, dOut, gate, up)
}
func dot(_ path, a, b []float32) float32                   { return dotPortable(a, b) }
func scaleGain(_ path, y, x, gain []float32, rstd float32) { scaleGainPortable(y, x, gain, rstd) }
func normSum(_ path, dGain, dy, x, gain []float32, rstd float32) float32 {
	return normSumPortable(dGain, dy, x, gain, rstd)
}
func normGradient(_ path, dx, dy, x, gain []float32, rstd, c float32, accumulate bool) {
	normGradientPortable(dx, dy, x, gain, rstd, c, accumulate)
}
func rotate(_ path, a, b, cos, sin []float32, inverse bool) { rotatePortable(a, b, cos, sin, inverse) }
func addVector(_ path, dst, x []float32)                    { addPortable(dst, x) }
func addScaled(_ path, dst, x []float32, s float32)         { addScaledPortable(dst, x, s) }
func sumSquares(_ path, x []float32) float64                { return sumSquaresPortable(x) }
func adamW(_ path, p, m, v, g []float32, h AdamWStep)       { adamWPortable(p, m, v, g, h) }
