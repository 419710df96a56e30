package kernel

import (
	"fmt"
	"iter"
	"math"
)

// MatMul computes C = op(A)·B, or C += op(A)·B if accumulate is set: C is [m, n], op(A) is [m, k]. If transA is set, a
// holds [k, m] and op(A) = Aᵀ. n and k may be smaller than b's: then the first n columns and the first k rows of B are
// used. With k = 0, C is set to zero or left alone. a and c must not overlap.
//
// Each element is the chain of rule 1 of the package: c = round(c + round(a*b)) over rising k.
func MatMul(transA bool, m, n, k int, a []float32, lda int, b *Packed, c []float32, ldc int, accumulate bool) {
	if n > b.n || k > b.k {
		panic(fmt.Sprintf("kernel: MatMul: B has %d x %d elements, need %d x %d", b.k, b.n, k, n))
	}
	if transA {
		checkMatrix("MatMul: a", len(a), k, m, lda)
	} else {
		checkMatrix("MatMul: a", len(a), m, k, lda)
	}
	checkMatrix("MatMul: c", len(c), m, n, ldc)
	if m == 0 || n == 0 {
		return
	}
	if k == 0 {
		if !accumulate {
			for i := range m {
				clear(c[i*ldc : i*ldc+n])
			}
		}
		return
	}
	rs, cs := lda, 1 // distances of a's rows and columns after the transposition
	if transA {
		rs, cs = 1, lda
	}
	matMul(b.path, m, n, k, a, rs, cs, b, c, ldc, accumulate)
}

// VecMat computes c = a·B, or c += a·B if accumulate is set: a is [k], B is [k, n] in place with row distance ldb >= n,
// c is [n]. It reads and writes nothing beyond column n, so it can run on a cache that is still being filled. Its
// elements have the same bits as MatMul's. c must not overlap a or b.
func VecMat(k, n int, a, b []float32, ldb int, c []float32, accumulate bool) {
	checkMatrix("VecMat: a", len(a), 1, k, k)
	checkMatrix("VecMat: b", len(b), k, n, ldb)
	checkMatrix("VecMat: c", len(c), 1, n, n)
	if n == 0 {
		return
	}
	if k == 0 {
		if !accumulate {
			clear(c[:n])
		}
		return
	}
	vecMat(current(), k, n, a, b, ldb, c, accumulate)
}

// portableWidth is the panel width of the portable path; its micro-kernel computes tiles of 4 x 4.
const portableWidth = 4

// A product is computed in blocks, which changes nothing but speed: depth links of a panel stay in the first-level cache
// while height rows of A pass by, and those rows stay in the second-level cache while all panels pass by.
const (
	depth  = 256
	height = 240 // a multiple of every path's rows of a tile
)

// block is the part of a product that covers rows [i0, i1) of C and links of the chains from k0 on.
type block struct{ i0, i1, k0, links int }

// blocks lists the blocks of a product; for each row, those of lower k0 come first.
func blocks(m, k int) iter.Seq[block] {
	return func(yield func(block) bool) {
		for i0 := 0; i0 < m; i0 += height {
			for k0 := 0; k0 < k; k0 += depth {
				if !yield(block{i0, min(i0+height, m), k0, min(depth, k-k0)}) {
					return
				}
			}
		}
	}
}

//go:norace
func matMulPortable(m, n, k int, a []float32, rs, cs int, b *Packed, c []float32, ldc int, accumulate bool) {
	const w = portableWidth
	var edge [w]float32
	var scratch [depth * w]float32
	for block := range blocks(m, k) {
		load := accumulate || block.k0 > 0
		for j := 0; j < n; j += w {
			panel := b.portablePanel(j/w, block.k0, block.links, &scratch)
			columns := min(w, n-j)
			i := block.i0
			for ; i+4 <= block.i1 && columns == w; i += 4 {
				tilePortable(panel, a[i*rs+block.k0*cs:], rs, cs, c[i*ldc+j:], ldc, load)
			}
			for ; i < block.i1; i++ {
				row := c[i*ldc+j:][:columns]
				clear(edge[:])
				if load {
					copy(edge[:], row)
				}
				rowPortable(panel, a[i*rs+block.k0*cs:], cs, edge[:])
				copy(row, edge[:columns])
			}
		}
	}
}

// portablePanel returns rows [k0, k0+links) of a panel as float32, in scratch if they are stored in pairs.
//
//go:norace
func (p *Packed) portablePanel(panel, k0, links int, scratch *[depth * portableWidth]float32) []float32 {
	const w = portableWidth
	if p.pairs == nil {
		return p.data[panel*p.step+k0*w:][:links*w]
	}
	words := p.pairs[panel*p.step+k0*w/2:][:links*w/2]
	out := scratch[:links*w]
	for i := 0; i < len(words); i += w / 2 {
		for j, word := range words[i : i+w/2] {
			out[2*i+j] = math.Float32frombits(word << 16)
			out[2*i+j+w/2] = math.Float32frombits(word >> 16 << 16)
		}
	}
	return out
}

// tilePortable runs the links of one panel on 4 rows of A.
//
//go:norace
func tilePortable(panel, a []float32, rs, cs int, c []float32, ldc int, load bool) {
	c0, c1, c2, c3 := c[:4], c[ldc:][:4], c[2*ldc:][:4], c[3*ldc:][:4]
	var s00, s01, s02, s03, s10, s11, s12, s13, s20, s21, s22, s23, s30, s31, s32, s33 float32
	if load {
		s00, s01, s02, s03 = c0[0], c0[1], c0[2], c0[3]
		s10, s11, s12, s13 = c1[0], c1[1], c1[2], c1[3]
		s20, s21, s22, s23 = c2[0], c2[1], c2[2], c2[3]
		s30, s31, s32, s33 = c3[0], c3[1], c3[2], c3[3]
	}
	a0, a1, a2, a3 := a, a[rs:], a[2*rs:], a[3*rs:]
	at := 0
	for ; len(panel) >= 4; panel = panel[4:] {
		b0, b1, b2, b3 := panel[0], panel[1], panel[2], panel[3]
		x := a0[at]
		s00 += float32(x * b0)
		s01 += float32(x * b1)
		s02 += float32(x * b2)
		s03 += float32(x * b3)
		x = a1[at]
		s10 += float32(x * b0)
		s11 += float32(x * b1)
		s12 += float32(x * b2)
		s13 += float32(x * b3)
		x = a2[at]
		s20 += float32(x * b0)
		s21 += float32(x * b1)
		s22 += float32(x * b2)
		s23 += float32(x * b3)
		x = a3[at]
		s30 += float32(x * b0)
		s31 += float32(x * b1)
		s32 += float32(x * b2)
		s33 += float32(x * b3)
		at += cs
	}
	c0[0], c0[1], c0[2], c0[3] = s00, s01, s02, s03
	c1[0], c1[1], c1[2], c1[3] = s10, s11, s12, s13
	c2[0], c2[1], c2[2], c2[3] = s20, s21, s22, s23
	c3[0], c3[1], c3[2], c3[3] = s30, s31, s32, s33
}

// rowPortable runs the links of one panel on one row of A, adding to c [4].
//
//go:norace
func rowPortable(panel, a []float32, cs int, c []float32) {
	s0, s1, s2, s3 := c[0], c[1], c[2], c[3]
	at := 0
	for ; len(panel) >= 4; panel = panel[4:] {
		x := a[at]
		s0 += float32(x * panel[0])
		s1 += float32(x * panel[1])
		s2 += float32(x * panel[2])
		s3 += float32(x * panel[3])
		at += cs
	}
	c[0], c[1], c[2], c[3] = s0, s1, s2, s3
}

//go:norace
func vecMatPortable(k, n int, a, b []float32, ldb int, c []float32, accumulate bool) {
	c = c[:n]
	if !accumulate {
		clear(c)
	}
	for i, x := range a[:k] {
		row := b[i*ldb:][:n]
		for j, y := range row {
			c[j] += float32(x * y)
		}
	}
}
