//go:build !purego

package kernel

import "unsafe"

func matMul(on path, m, n, k int, a []float32, rs, cs int, b *Packed, c []float32, ldc int, accumulate bool) {
	switch on {
	case avx512:
		if m == 1 {
			rowAVX512(n, k, a, cs, b, c, accumulate)
		} else {
			matMulAVX512(m, n, k, a, rs, cs, b, c, ldc, accumulate)
		}
	case avx2:
		if m == 1 {
			rowAVX2(n, k, a, cs, b, c, accumulate)
		} else {
			matMulAVX2(m, n, k, a, rs, cs, b, c, ldc, accumulate)
		}
	default:
		matMulPortable(m, n, k, a, rs, cs, b, c, ldc, accumulate)
	}
}

func matMulAVX512(m, n, k int, a []float32, rs, cs int, b *Packed, c []float32, ldc int, accumulate bool) {
	const w = widthAVX512
	half := flag(b.pairs != nil)
	for block := range blocks(m, k) {
		load := flag(accumulate || block.k0 > 0)
		for j := 0; j < n; j += w {
			panel := b.at(j/w, block.k0)
			columns := min(w, n-j)
			mask := 1<<columns - 1
			for i := block.i0; i < block.i1; i += rowsAVX512 {
				rows := min(rowsAVX512, block.i1-i)
				from, to := &a[i*rs+block.k0*cs], &c[i*ldc+j]
				if columns > w/2 {
					tileWideAVX512(rows, block.links, from, rs, cs, panel, to, ldc, load, half, mask)
				} else {
					tileNarrowAVX512(rows, block.links, from, rs, cs, panel, to, ldc, load, half, mask)
				}
			}
		}
	}
}

// rowAVX512 is the product for one row of A: four panels at a time while there are as many.
func rowAVX512(n, k int, a []float32, cs int, b *Packed, c []float32, accumulate bool) {
	const w = widthAVX512
	load, half := flag(accumulate), flag(b.pairs != nil)
	j := 0
	for ; j+4*w <= n; j += 4 * w {
		rowPanels4AVX512(k, &a[0], cs, b.at(j/w, 0), b.step, &c[j], load, half)
	}
	if j+2*w <= n {
		rowPanels2AVX512(k, &a[0], cs, b.at(j/w, 0), b.step, &c[j], load, half)
		j += 2 * w
	}
	for ; j < n; j += w {
		mask := 1<<min(w, n-j) - 1
		tileWideAVX512(1, k, &a[0], 0, cs, b.at(j/w, 0), &c[j], 0, load, half, mask)
	}
}

func matMulAVX2(m, n, k int, a []float32, rs, cs int, b *Packed, c []float32, ldc int, accumulate bool) {
	for block := range blocks(m, k) {
		for j := 0; j < n; j += widthAVX2 {
			panelAVX2(block, j, n, a, rs, cs, b, c, ldc, accumulate || block.k0 > 0)
		}
	}
}

// panelAVX2 computes a block of the panel whose first column is j.
func panelAVX2(part block, j, n int, a []float32, rs, cs int, b *Packed, c []float32, ldc int, accumulate bool) {
	const w = widthAVX2
	load, half := flag(accumulate), flag(b.pairs != nil)
	panel, columns := b.at(j/w, part.k0), min(w, n-j)
	for i := part.i0; i < part.i1; i += rowsAVX2 {
		rows := min(rowsAVX2, part.i1-i)
		from := &a[i*rs+part.k0*cs]
		if columns == w {
			tileAVX2(rows, part.links, from, rs, cs, panel, &c[i*ldc+j], ldc, load, half)
			continue
		}
		// The last panel is wider than C: work on a copy.
		var edge [rowsAVX2 * w]float32
		copyTile(edge[:], w, c[i*ldc+j:], ldc, rows, columns)
		tileAVX2(rows, part.links, from, rs, cs, panel, &edge[0], w, load, half)
		copyTile(c[i*ldc+j:], ldc, edge[:], w, rows, columns)
	}
}

// rowAVX2 is the product for one row of A: four panels at a time while there are as many.
func rowAVX2(n, k int, a []float32, cs int, b *Packed, c []float32, accumulate bool) {
	const w = widthAVX2
	load, half := flag(accumulate), flag(b.pairs != nil)
	j := 0
	for ; j+4*w <= n; j += 4 * w {
		rowPanels4AVX2(k, &a[0], cs, b.at(j/w, 0), b.step, &c[j], load, half)
	}
	if j+2*w <= n {
		rowPanels2AVX2(k, &a[0], cs, b.at(j/w, 0), b.step, &c[j], load, half)
		j += 2 * w
	}
	for ; j < n; j += w {
		panelAVX2(block{0, 1, 0, k}, j, n, a, 0, cs, b, c, 0, accumulate)
	}
}

func vecMat(on path, k, n int, a, b []float32, ldb int, c []float32, accumulate bool) {
	load := flag(accumulate)
	j := 0
	switch on {
	case avx512:
		for ; j+128 <= n; j += 128 {
			vecMat8AVX512(k, &a[0], &b[j], ldb, &c[j], load)
		}
		if j+64 <= n {
			vecMat4AVX512(k, &a[0], &b[j], ldb, &c[j], load)
			j += 64
		}
		for ; j < n; j += 32 {
			vecMatRestAVX512(k, &a[0], &b[j], ldb, &c[j], load, min(32, n-j))
		}
	case avx2:
		for ; j+64 <= n; j += 64 {
			vecMat8AVX2(k, &a[0], &b[j], ldb, &c[j], load)
		}
		if j+32 <= n {
			vecMat4AVX2(k, &a[0], &b[j], ldb, &c[j], load)
			j += 32
		}
		for ; j < n; j += 16 {
			vecMatRestAVX2(k, &a[0], &b[j], ldb, &c[j], load, min(16, n-j))
		}
	default:
		vecMatPortable(k, n, a, b, ldb, c, accumulate)
	}
}

//go:noescape
func tileWideAVX512(rows, k int, a *float32, rs, cs int, b unsafe.Pointer, c *float32, ldc, load, half, mask int)

//go:noescape
func tileNarrowAVX512(rows, k int, a *float32, rs, cs int, b unsafe.Pointer, c *float32, ldc, load, half, mask int)

//go:noescape
func tileAVX2(rows, k int, a *float32, rs, cs int, b unsafe.Pointer, c *float32, ldc, load, half int)

//go:noescape
func rowPanels4AVX512(k int, a *float32, cs int, b unsafe.Pointer, step int, c *float32, load, half int)

//go:noescape
func rowPanels2AVX512(k int, a *float32, cs int, b unsafe.Pointer, step int, c *float32, load, half int)

//go:noescape
func rowPanels4AVX2(k int, a *float32, cs int, b unsafe.Pointer, step int, c *float32, load, half int)

//go:noescape
func rowPanels2AVX2(k int, a *float32, cs int, b unsafe.Pointer, step int, c *float32, load, half int)

//go:noescape
func vecMat8AVX512(k int, a, b *float32, ldb int, c *float32, load int)

//go:noescape
func vecMat4AVX512(k int, a, b *float32, ldb int, c *float32, load int)

//go:noescape
func vecMatRestAVX512(k int, a, b *float32, ldb int, c *float32, load int, columns int)

//go:noescape
func vecMat8AVX2(k int, a, b *float32, ldb int, c *float32, load int)

//go:noescape
func vecMat4AVX2(k int, a, b *float32, ldb int, c *float32, load int)

//go:noescape
func vecMatRestAVX2(k int, a, b *float32, ldb int, c *float32, load int, columns int)
