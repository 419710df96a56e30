package kernel

import (
	"fmt"
	"unsafe"
)

// Packed is the right-hand matrix B [k, n] of a product, stored in the order in which a kernel reads it: panels of
// consecutive columns, each panel row after row, the last panel padded with zeros. The panel width belongs to the path
// that was active when it was packed. The zero value is an empty matrix; packing again reuses its memory.
type Packed struct {
	path path
	n    int
	k    int
	step int // elements from one panel to the next
	data []float32
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
	panels := (n + width - 1) / width
	p.step = k * width
	if need := panels * p.step; cap(p.data) < need {
		p.data = Alloc(need)
	} else {
		p.data = p.data[:need]
	}
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

// Alloc returns n zeros that start at a multiple of 64 bytes, the width of the widest vector load. No function needs
// aligned memory, but products on it are up to a tenth faster.
func Alloc(n int) []float32 {
	const pad = 15
	s := make([]float32, n+pad)
	at := uintptr(unsafe.Pointer(unsafe.SliceData(s))) / 4
	skip := int(-at & pad)
	return s[skip : skip+n : skip+n]
}

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
