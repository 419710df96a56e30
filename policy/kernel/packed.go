package kernel

import (
	"fmt"
	"math"
	"unsafe"
)

// Packed is the right-hand matrix B [k, n] of a product, stored in the order in which a kernel reads it: panels of
// consecutive columns, each panel row after row, the last panel padded with zeros. The panel width belongs to the path
// that was active when it was packed. The zero value is an empty matrix; packing again reuses its memory.
//
// A matrix of bfloat16 values can be kept in pairs: a panel row is then half as many words, and word j holds column j in
// its low half and column j + width/2 in its high half.
type Packed struct {
	path  path
	n     int
	k     int
	step  int       // elements of data, or of pairs, from one panel to the next
	data  []float32 // what Pack stores
	pairs []uint32  // what PackBF16 stores instead; nil after Pack
}

// Pack stores a copy of B [k, n]. If trans is set, b holds Bᵀ [n, k] with row distance ldb >= k, as weights [out, in]
// do; otherwise b holds B [k, n] with ldb >= n.
func (p *Packed) Pack(trans bool, n, k int, b []float32, ldb int) {
	if trans {
		checkMatrix("Pack: b", len(b), n, k, ldb)
	} else {
		checkMatrix("Pack: b", len(b), k, n, ldb)
	}
	*p = Packed{path: current(), n: n, k: k, data: p.data}
	width := p.path.width()
	p.step = k * width
	p.data = room(p.data, (n+width-1)/width*p.step)
	if n == 0 || k == 0 {
		return
	}
	for j := 0; j < n; j += width {
		columns := min(width, n-j)
		panel := p.data[j*k : (j+width)*k]
		if columns < width {
			clear(panel)
		}
		if trans {
			packTransposed(p.path, panel, width, columns, k, b[j*ldb:], ldb)
		} else {
			packRows(p.path, panel, width, columns, k, b[j:], ldb)
		}
	}
}

// PackBF16 is Pack for a matrix whose elements are bfloat16 values, such as released weights. It takes half of the
// memory. Products have the same bits, and those of few rows, which wait for memory, come faster. PackBF16 panics if an
// element is no bfloat16 value.
func (p *Packed) PackBF16(trans bool, n, k int, b []float32, ldb int) {
	row, column := ldb, 1 // distances of b's elements
	if trans {
		checkMatrix("PackBF16: b", len(b), n, k, ldb)
		row, column = 1, ldb
	} else {
		checkMatrix("PackBF16: b", len(b), k, n, ldb)
	}
	*p = Packed{path: current(), n: n, k: k, pairs: p.pairs}
	width := p.path.width()
	p.step = k * width / 2
	p.pairs = room(p.pairs, (n+width-1)/width*p.step)
	clear(p.pairs)
	if k == 0 {
		return
	}
	if p.packPairs(b, row, column)&0xffff != 0 {
		panic("kernel: PackBF16: an element is not a bfloat16 value")
	}
}

// packPairs fills pairs, which are zero, from the elements of b with these distances, and returns all their bits together.
//
//go:norace
func (p *Packed) packPairs(b []float32, row, column int) (all uint32) {
	width := p.path.width()
	half := width / 2
	for j := range p.n {
		to := p.pairs[j/width*p.step+j%half:]
		shift := j % width / half * 16
		for i := range p.k {
			bits := math.Float32bits(b[i*row+j*column])
			all |= bits
			to[i*half] |= bits >> 16 << shift
		}
	}
	return all
}

// at is where a kernel starts to read panel number panel from row k0 on.
func (p *Packed) at(panel, k0 int) unsafe.Pointer {
	if p.pairs != nil {
		return unsafe.Pointer(&p.pairs[panel*p.step+k0*p.path.width()/2])
	}
	return unsafe.Pointer(&p.data[panel*p.step+k0*p.path.width()])
}

// Alloc returns n zeros that start at a multiple of 64 bytes, the width of the widest vector load. No function needs
// aligned memory, but products on it are up to a tenth faster.
func Alloc(n int) []float32 { return alloc[float32](n) }

func alloc[T float32 | uint32](n int) []T {
	const pad = 15
	s := make([]T, n+pad)
	at := uintptr(unsafe.Pointer(unsafe.SliceData(s))) / 4
	skip := int(-at & pad)
	return s[skip : skip+n : skip+n]
}

// room returns n elements with arbitrary values, s's memory if that suffices. It is not nil.
func room[T float32 | uint32](s []T, n int) []T {
	if s == nil || cap(s) < n {
		return alloc[T](n)
	}
	return s[:n]
}

//go:norace
func packTransposedPortable(panel []float32, width, columns, k int, b []float32, ldb int) {
	for j := range columns {
		row := b[j*ldb : j*ldb+k]
		at := j
		for _, v := range row {
			panel[at] = v
			at += width
		}
	}
}

//go:norace
func packRowsPortable(panel []float32, width, columns, k int, b []float32, ldb int) {
	for i := range k {
		copy(panel[i*width:i*width+columns], b[i*ldb:i*ldb+columns])
	}
}

// checkMatrix panics unless a slice of have elements holds rows x columns elements with row distance ld.
func checkMatrix(what string, have, rows, columns, ld int) {
	if rows < 0 || columns < 0 || rows > 0 && columns > 0 && (ld < columns || have < (rows-1)*ld+columns) {
		panic(fmt.Sprintf("kernel: %s: %d elements with row distance %d do not hold %d x %d", what, have, ld, rows, columns))
	}
}

// checkLength panics unless a slice has exactly the length it needs.
func checkLength(what string, have, need int) {
	if have != need {
		panic(fmt.Sprintf("kernel: %s: length %d, need %d", what, have, need))
	}
}
