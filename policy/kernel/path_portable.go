//go:build purego || !(amd64 || arm64)

package kernel

// width is the panel width of a Packed on this path.
func (path) width() int { return portableWidth }

func packTransposed(_ path, panel []float32, width, columns, k int, b []float32, ldb int) {
	packTransposedPortable(panel, width, columns, k, b, ldb)
}

func packRows(_ path, panel []float32, width, columns, k int, b []float32, ldb int) {
	packRowsPortable(panel, width, columns, k, b, ldb)
}

func matMul(_ path, m, n, k int, a []float32, rs, cs int, b *Packed, c []float32, ldc int, accumulate bool) {
	matMulPortable(m, n, k, a, rs, cs, b, c, ldc, accumulate)
}

func vecMat(_ path, k, n int, a, b []float32, ldb int, c []float32, accumulate bool) {
	vecMatPortable(k, n, a, b, ldb, c, accumulate)
}

func sumSquares(_ path, x []float32) float64 { return sumSquaresPortable(x) }
