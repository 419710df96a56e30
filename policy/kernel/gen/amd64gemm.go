package main

import "fmt"

// The matrix kernels of amd64. Per row of A and step of k, one element is broadcast, multiplied with the vectors of B's
// panel row and added to the row's accumulators: a multiplication and an addition for each vector, which the two vector
// ports share, so that nothing else (loads, broadcasts, loop) is the limit once there are enough accumulators to
// hide the addition's latency of four cycles.

// vectors names the registers of a set, the instruction that clears one, and what keeps the high half of each word.
type vectors struct {
	suffix string
	name   string
	bytes  int
	clear  string
	high   string
}

var (
	zmm = vectors{"AVX512", "Z", 64, "VPXORD", "VPANDD.BCST"}
	ymm = vectors{"AVX2", "Y", 32, "VXORPS", "VPAND"}
)

// highHalf is the constant of vectors.high.
var highHalf = func() string {
	var t text
	for i := 0; i < 32; i += 8 {
		fmt.Fprintf(&t, "DATA highHalf<>+%d(SB)/8, $0xffff0000ffff0000\n", i)
	}
	t.WriteString("GLOBL highHalf<>(SB), RODATA|NOPTR, $32\n\n")
	return t.String()
}()

// split emits what turns pairs of bfloat16 at an address into the float32 of their low and high halves.
func (v vectors) split(t *text, at, low, high string) {
	t.op("VMOVUPS %s, %s", at, high)
	t.op("VPSLLD $16, %s, %s", high, low)
	t.op("%s highHalf<>(SB), %s, %s", v.high, high, high)
}

func (v vectors) reg(i int) string { return fmt.Sprintf("%s%d", v.name, i) }

// panelRow is the length of a panel row in bytes.
func (v vectors) panelRow(half bool) int {
	if half {
		return v.bytes
	}
	return 2 * v.bytes
}

// address returns i vectors behind a base register.
func (v vectors) address(base string, i int) string {
	if i == 0 {
		return "(" + base + ")"
	}
	return fmt.Sprintf("%d(%s)", i*v.bytes, base)
}

func gemmAVX512() string {
	var t text
	// Two vectors wide with a mask, for any number of columns up to 32, and one vector wide for up to 16.
	tile(&t, zmm, "tileWide", 12, 2, true)
	tile(&t, zmm, "tileNarrow", 12, 1, true)
	panels(&t, zmm, "rowPanels4", 4)
	panels(&t, zmm, "rowPanels2", 2)
	inPlace(&t, zmm, "vecMat8", 8, false)
	inPlace(&t, zmm, "vecMat4", 4, false)
	inPlace(&t, zmm, "vecMatRest", 2, true)
	copyRows(&t, zmm)
	squares(&t, zmm)
	return highHalf + t.String()
}

func gemmAVX2() string {
	var t text
	tile(&t, ymm, "tile", 6, 2, false)
	panels(&t, ymm, "rowPanels4", 4)
	panels(&t, ymm, "rowPanels2", 2)
	inPlace(&t, ymm, "vecMat8", 8, false)
	inPlace(&t, ymm, "vecMat4", 4, false)
	inPlace(&t, ymm, "vecMatRest", 2, true)
	copyRows(&t, ymm)
	transpose(&t)
	squares(&t, ymm)
	return maskTable + highHalf + t.String()
}

// begin emits a function's head and loads its arguments; each argument is "name register".
func begin(t *text, name, signature string, arguments ...[2]string) {
	fmt.Fprintf(t, "// func %s%s\nTEXT ·%s(SB), NOSPLIT, $0-%d\n", name, signature, name, 8*len(arguments))
	for i, a := range arguments {
		if a[1] != "" {
			t.op("MOVQ %s+%d(FP), %s", a[0], 8*i, a[1])
		}
	}
}

func end(t *text) {
	t.op("VZEROUPPER")
	t.op("RET")
	t.WriteString("\n")
}

// tile emits C[rows, columns] = (C or 0) + A·panel for every number of rows up to most. rs and cs are the distances of
// A's rows and columns, ldc that of C's rows, in elements; a panel row is always two vectors, or one of pairs if half is
// set.
func tile(t *text, v vectors, name string, most, wide int, masked bool) {
	name += v.suffix
	arguments := [][2]string{
		{"rows", "AX"}, {"k", "CX"}, {"a", "SI"}, {"rs", "R8"}, {"cs", "R11"}, {"b", "DI"}, {"c", "DX"}, {"ldc", "R12"}, {"load", "R14"}, {"half", ""},
	}
	signature := "(rows, k int, a *float32, rs, cs int, b unsafe.Pointer, c *float32, ldc, load, half int"
	if masked {
		arguments = append(arguments, [2]string{"mask", "BX"})
		signature += ", mask int"
	}
	begin(t, name, signature+")", arguments...)
	if masked {
		t.op("KMOVW BX, K1")
		t.op("SHRL $16, BX")
		t.op("KMOVW BX, K2")
	}
	t.op("SHLQ $2, R8")
	t.op("SHLQ $2, R11")
	t.op("SHLQ $2, R12")
	t.op("LEAQ (R8)(R8*2), R9")  // 3 rows
	t.op("LEAQ (R8)(R8*4), R10") // 5 rows
	if most > 6 {
		t.op("LEAQ (SI)(R9*2), R13") // row 6
	}
	t.op("CMPQ half+72(FP), $0")
	t.op("JNE half%s", name)
	for _, half := range []bool{false, true} {
		label := "rows%d" + name
		if half {
			label = "half%d" + name
			t.label("half" + name)
		}
		for rows := most; rows > 1; rows-- {
			t.op("CMPQ AX, $%d", rows)
			t.op("JEQ "+label, rows)
		}
		for rows := 1; rows <= most; rows++ {
			t.label(fmt.Sprintf(label, rows))
			tileRows(t, v, rows, wide, masked, half)
		}
	}
}

func tileRows(t *text, v vectors, rows, wide int, masked, half bool) {
	acc := func(i, j int) string { return v.reg(i*wide + j) }
	next := rows * wide
	free := func() string { next++; return v.reg(next - 1) }
	zero, loop := t.fresh("zero"), t.fresh("loop")
	c := func(load bool) {
		for i := range rows {
			for j := range wide {
				at := v.address("BX", j)
				switch {
				case load && masked:
					t.op("VMOVUPS.Z %s, K%d, %s", at, j+1, acc(i, j))
				case load:
					t.op("VMOVUPS %s, %s", at, acc(i, j))
				case masked:
					t.op("VMOVUPS %s, K%d, %s", acc(i, j), j+1, at)
				default:
					t.op("VMOVUPS %s, %s", acc(i, j), at)
				}
			}
			if i < rows-1 {
				t.op("ADDQ R12, BX")
			}
		}
	}
	t.op("MOVQ DX, BX")
	t.op("TESTQ R14, R14")
	t.op("JZ %s", zero)
	c(true)
	t.op("MOVQ DX, BX")
	t.op("JMP %s", loop)
	t.label(zero)
	for i := range rows * wide {
		t.op("%s %s, %s, %s", v.clear, v.reg(i), v.reg(i), v.reg(i))
	}
	t.label(loop)
	b := make([]string, wide)
	for j := range b {
		b[j] = free()
	}
	element, product := free(), free()
	switch {
	case half && wide == 1:
		t.op("VMOVUPS (DI), %s", b[0])
		t.op("VPSLLD $16, %s, %s", b[0], b[0])
	case half:
		v.split(t, "(DI)", b[0], b[1])
	default:
		for j := range b {
			t.op("VMOVUPS %s, %s", v.address("DI", j), b[j])
		}
	}
	// With A transposed, each step of k reads another row of memory, too far away for the processor to foresee.
	if rows > 2 {
		t.op("PREFETCHT0 (SI)(R11*8)")
	}
	if rows > 6 {
		t.op("PREFETCHT0 (R13)(R11*8)")
	}
	for i := range rows {
		base := "SI"
		if i >= 6 {
			base = "R13"
		}
		t.op("VBROADCASTSS %s, %s", [...]string{"(" + base + ")", "(" + base + ")(R8*1)", "(" + base + ")(R8*2)",
			"(" + base + ")(R9*1)", "(" + base + ")(R8*4)", "(" + base + ")(R10*1)"}[i%6], element)
		for j := range wide {
			t.op("VMULPS %s, %s, %s", b[j], element, product)
			t.op("VADDPS %s, %s, %s", product, acc(i, j), acc(i, j))
		}
	}
	t.op("ADDQ $%d, DI", v.panelRow(half))
	t.op("ADDQ R11, SI")
	if rows > 6 {
		t.op("ADDQ R11, R13")
	}
	t.op("DECQ CX")
	t.op("JNZ %s", loop)
	c(false)
	end(t)
}

// panels emits the product of one row of A with count whole panels side by side, so that a single row, too, has enough
// accumulators. step is the distance of panels, in elements or pairs, cs that of A's elements.
func panels(t *text, v vectors, name string, count int) {
	name += v.suffix
	begin(t, name, "(k int, a *float32, cs int, b unsafe.Pointer, step int, c *float32, load, half int)",
		[2]string{"k", "CX"}, [2]string{"a", "SI"}, [2]string{"cs", "R11"}, [2]string{"b", "DI"}, [2]string{"step", "R8"},
		[2]string{"c", "DX"}, [2]string{"load", "R14"}, [2]string{"half", ""})
	t.op("SHLQ $2, R11")
	t.op("SHLQ $2, R8")
	t.op("LEAQ (DI)(R8*2), R9") // panel 2
	t.op("CMPQ half+56(FP), $0")
	t.op("JNE half%s", name)
	for _, half := range []bool{false, true} {
		if half {
			t.label("half" + name)
		}
		accumulators(t, v, 2*count, func(element, product string) {
			for i := range count {
				at := [...]string{"(DI)", "(DI)(R8*1)", "(R9)", "(R9)(R8*1)"}[i]
				from := [2]string{at, fmt.Sprintf("%d%s", v.bytes, at)}
				if half {
					from = [2]string{v.reg(8 + i%2*2), v.reg(9 + i%2*2)}
					v.split(t, at, from[0], from[1])
				}
				for j := range 2 {
					t.op("VMULPS %s, %s, %s", from[j], element, product)
					t.op("VADDPS %s, %s, %s", product, v.reg(2*i+j), v.reg(2*i+j))
				}
			}
			t.op("ADDQ $%d, DI", v.panelRow(half))
			t.op("ADDQ $%d, R9", v.panelRow(half))
			t.op("ADDQ R11, SI")
		}, nil)
	}
}

// inPlace emits the product of a vector with count vectors of columns of an unpacked matrix; with rest, with fewer
// columns than that, given by a mask (AVX-512) or their number (AVX2).
func inPlace(t *text, v vectors, name string, count int, rest bool) {
	signature := "(k int, a, b *float32, ldb int, c *float32, load int"
	arguments := [][2]string{{"k", "CX"}, {"a", "SI"}, {"b", "DI"}, {"ldb", "R8"}, {"c", "DX"}, {"load", "R14"}}
	if rest {
		signature += ", columns int"
		arguments = append(arguments, [2]string{"columns", "AX"})
	}
	begin(t, name+v.suffix, signature+")", arguments...)
	t.op("SHLQ $2, R8")
	var mask func(j int) string
	if rest && v == zmm {
		mask = func(j int) string { return fmt.Sprintf("K%d", j+1) }
		t.op("XCHGQ AX, CX") // the shift count must be in CX
		t.op("MOVQ $1, BX")
		t.op("SHLQ CX, BX")
		t.op("DECQ BX")
		t.op("MOVQ AX, CX")
		t.op("KMOVW BX, K1")
		t.op("SHRQ $16, BX")
		t.op("KMOVW BX, K2")
	} else if rest {
		mask = func(j int) string { return fmt.Sprintf("Y%d", 12+j) }
		t.op("NEGQ AX")
		t.op("LEAQ mask<>+64(SB), BX")
		for j := range count {
			t.op("VMOVDQU %d(BX)(AX*4), %s", 32*j, mask(j))
		}
	}
	accumulators(t, v, count, func(element, product string) {
		for j := range count {
			switch {
			case mask == nil:
				t.op("VMULPS %s, %s, %s", v.address("DI", j), element, product)
			case v == zmm:
				t.op("VMULPS.Z %s, %s, %s, %s", v.address("DI", j), element, mask(j), product)
			default:
				t.op("VMASKMOVPS %s, %s, %s", v.address("DI", j), mask(j), product)
				t.op("VMULPS %s, %s, %s", product, element, product)
			}
			t.op("VADDPS %s, %s, %s", product, v.reg(j), v.reg(j))
		}
		t.op("ADDQ R8, DI")
		t.op("ADDQ $4, SI")
	}, mask)
}

// accumulators emits a loop over k around body with count accumulators that start from C or from zero and end in C.
func accumulators(t *text, v vectors, count int, body func(element, product string), mask func(j int) string) {
	zero, loop := t.fresh("zero"), t.fresh("loop")
	t.op("TESTQ R14, R14")
	t.op("JZ %s", zero)
	for j := range count {
		at := v.address("DX", j)
		switch {
		case mask == nil:
			t.op("VMOVUPS %s, %s", at, v.reg(j))
		case v == zmm:
			t.op("VMOVUPS.Z %s, %s, %s", at, mask(j), v.reg(j))
		default:
			t.op("VMASKMOVPS %s, %s, %s", at, mask(j), v.reg(j))
		}
	}
	t.op("JMP %s", loop)
	t.label(zero)
	for j := range count {
		t.op("%s %s, %s, %s", v.clear, v.reg(j), v.reg(j), v.reg(j))
	}
	t.label(loop)
	element, product := v.reg(14), v.reg(15)
	t.op("VBROADCASTSS (SI), %s", element)
	body(element, product)
	t.op("DECQ CX")
	t.op("JNZ %s", loop)
	for j := range count {
		at := v.address("DX", j)
		switch {
		case mask == nil:
			t.op("VMOVUPS %s, %s", v.reg(j), at)
		case v == zmm:
			t.op("VMOVUPS %s, %s, %s", v.reg(j), mask(j), at)
		default:
			t.op("VMASKMOVPS %s, %s, %s", v.reg(j), mask(j), at)
		}
	}
	end(t)
}
