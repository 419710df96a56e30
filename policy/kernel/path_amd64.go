//go:build !purego

package kernel

import "golang.org/x/sys/cpu"

// Panel widths: two vectors.
const (
	widthAVX512 = 32
	widthAVX2   = 16
)

// Most rows of a tile: as many as leave registers for B's vectors, A's element and a product.
const (
	rowsAVX512 = 12
	rowsAVX2   = 6
)

var supported = detect()

func detect() []path {
	found := []path{portable}
	if cpu.X86.HasAVX2 {
		found = append(found, avx2)
		if cpu.X86.HasAVX512F {
			found = append(found, avx512)
		}
	}
	return found
}

// width is the panel width of a Packed on this path.
func (p path) width() int {
	switch p {
	case avx512:
		return widthAVX512
	case avx2:
		return widthAVX2
	default:
		return portableWidth
	}
}

func packTransposed(on path, panel []float32, width, columns, k int, b []float32, ldb int) {
	if on == portable {
		packTransposedPortable(panel, width, columns, k, b, ldb)
		return
	}
	blocks := k / 8
	j := 0
	if blocks > 0 {
		for ; j+8 <= columns; j += 8 {
			transposeAVX2(blocks, &panel[j], width, &b[j*ldb], ldb)
		}
		if rest := k % 8; rest > 0 {
			packTransposedPortable(panel[blocks*8*width:], width, j, rest, b[blocks*8:], ldb)
		}
	}
	if j < columns {
		packTransposedPortable(panel[j:], width, columns-j, k, b[j*ldb:], ldb)
	}
}

func packRows(on path, panel []float32, width, columns, k int, b []float32, ldb int) {
	switch {
	case columns < width || on == portable:
		packRowsPortable(panel, width, columns, k, b, ldb)
	case on == avx512:
		copyRowsAVX512(k, &panel[0], &b[0], ldb)
	default:
		copyRowsAVX2(k, &panel[0], &b[0], ldb)
	}
}

func sumSquares(on path, x []float32) float64 {
	groups := len(x) / 16
	if groups == 0 || on == portable {
		return sumSquaresPortable(x)
	}
	var sums [16]float64
	if on == avx512 {
		squaresAVX512(groups, &x[0], &sums)
	} else {
		squaresAVX2(groups, &x[0], &sums)
	}
	addSquares(&sums, x[groups*16:])
	return foldSquares(&sums)
}

//go:noescape
func transposeAVX2(blocks int, dst *float32, width int, src *float32, ld int)

//go:noescape
func copyRowsAVX512(k int, dst, src *float32, ld int)

//go:noescape
func copyRowsAVX2(k int, dst, src *float32, ld int)

//go:noescape
func squaresAVX512(groups int, x *float32, sums *[16]float64)

//go:noescape
func squaresAVX2(groups int, x *float32, sums *[16]float64)
