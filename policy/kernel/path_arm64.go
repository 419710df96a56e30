//go:build !purego

package kernel

import "unsafe"

// A NEON panel is four vectors wide; a tile has up to four rows.
const (
	widthNEON = 16
	rowsNEON  = 4
)

// Every arm64 processor has NEON.
var supported = []path{portable, neon}

// width is the panel width of a Packed on this path.
func (p path) width() int {
	if p == neon {
		return widthNEON
	}
	return portableWidth
}

func packTransposed(_ path, panel []float32, width, columns, k int, b []float32, ldb int) {
	packTransposedPortable(panel, width, columns, k, b, ldb)
}

func packRows(_ path, panel []float32, width, columns, k int, b []float32, ldb int) {
	packRowsPortable(panel, width, columns, k, b, ldb)
}

func matMul(on path, m, n, k int, a []float32, rs, cs int, b *Packed, c []float32, ldc int, accumulate bool) {
	if on == portable {
		matMulPortable(m, n, k, a, rs, cs, b, c, ldc, accumulate)
		return
	}
	const w = widthNEON
	var edge [rowsNEON * w]float32
	half := flag(b.pairs != nil)
	for block := range blocks(m, k) {
		load := flag(accumulate || block.k0 > 0)
		for j := 0; j < n; j += w {
			panel := b.at(j/w, block.k0)
			columns := min(w, n-j)
			for i := block.i0; i < block.i1; i += rowsNEON {
				rows := min(rowsNEON, block.i1-i)
				from := &a[i*rs+block.k0*cs]
				if columns == w {
					tileNEON(rows, block.links, from, rs, cs, panel, &c[i*ldc+j], ldc, load, half)
					continue
				}
				// The last panel is wider than C: work on a copy.
				copyTile(edge[:], w, c[i*ldc+j:], ldc, rows, columns)
				tileNEON(rows, block.links, from, rs, cs, panel, &edge[0], w, load, half)
				copyTile(c[i*ldc+j:], ldc, edge[:], w, rows, columns)
			}
		}
	}
}

func vecMat(on path, k, n int, a, b []float32, ldb int, c []float32, accumulate bool) {
	j := 0
	if on == neon {
		for ; j+16 <= n; j += 16 {
			vecMat16NEON(k, &a[0], &b[j], ldb, &c[j], flag(accumulate))
		}
	}
	if j < n {
		vecMatPortable(k, n-j, a, b[j:], ldb, c[j:], accumulate)
	}
}

func sumSquares(_ path, x []float32) float64 { return sumSquaresPortable(x) }

//go:noescape
func tileNEON(rows, k int, a *float32, rs, cs int, b unsafe.Pointer, c *float32, ldc, load, half int)

//go:noescape
func vecMat16NEON(k int, a, b *float32, ldb int, c *float32, load int)
