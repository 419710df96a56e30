package main

import "fmt"

// gemmNEON emits the matrix kernels of arm64: tiles of up to four rows by one panel of 16 columns, and the product of a
// vector with 16 columns of an unpacked matrix.
func gemmNEON() string {
	var t text
	// Accumulators V0-V15, B's row V16-V19, elements of A V20-V23, products V24-V31; or products V24-V27 and in V31 the
	// mask of the high halves.
	begin := func(name, signature string, arguments ...string) {
		fmt.Fprintf(&t, "// func %s%s\nTEXT ·%s(SB), NOSPLIT, $0-%d\n", name, signature, name, 8*len(arguments))
		for i, a := range arguments {
			t.op("MOVD %s+%d(FP), R%d", a, 8*i, i)
		}
	}
	links := func(rows, products int) {
		for i := range rows {
			for j := range 4 {
				t.three(fmul, 24+(4*i+j)%products, 16+j, 20+i)
			}
			for j := range 4 {
				t.three(fadd, 4*i+j, 4*i+j, 24+(4*i+j)%products)
			}
		}
	}
	group := func(i int) string { return list(reg(i)) }

	begin("tileNEON", "(rows, k int, a *float32, rs, cs int, b unsafe.Pointer, c *float32, ldc, load, half int)",
		"rows", "k", "a", "rs", "cs", "b", "c", "ldc", "load", "half")
	t.op("MOVD R9, R15")
	t.op("LSL $2, R3")
	t.op("LSL $2, R4")
	t.op("LSL $2, R7")
	for i := 1; i < 4; i++ { // rows of A in R2, R9, R10, R11; of C in R6, R12, R13, R14
		t.op("ADD R3, R%d, R%d", [...]int{0, 2, 9, 10}[i], 8+i)
		t.op("ADD R7, R%d, R%d", [...]int{0, 6, 12, 13}[i], 11+i)
	}
	a, c := [...]int{2, 9, 10, 11}, [...]int{6, 12, 13, 14}
	body := func(rows int, half bool) {
		zero, loop := t.fresh("zero"), t.fresh("loop")
		t.op("CBZ R8, %s", zero)
		for i := range rows {
			t.op("VLD1 (R%d), %s", c[i], group(i))
		}
		t.op("B %s", loop)
		t.label(zero)
		for i := range 4 * rows {
			t.op("VEOR V%d.B16, V%d.B16, V%d.B16", i, i, i)
		}
		t.label(loop)
		if half {
			t.op("VLD1.P 32(R5), [V18.S4, V19.S4]")
			for j := 16; j < 18; j++ {
				t.op("VSHL $16, V%d.S4, V%d.S4", j+2, j)
				t.op("VAND V31.B16, V%d.B16, V%d.B16", j+2, j+2)
			}
		} else {
			t.op("VLD1.P 64(R5), %s", group(4))
		}
		for i := range rows {
			t.op("VLD1R (R%d), [V%d.S4]", a[i], 20+i)
			t.op("ADD R4, R%d", a[i])
		}
		if half {
			links(rows, 4)
		} else {
			links(rows, 8)
		}
		t.op("SUB $1, R1")
		t.op("CBNZ R1, %s", loop)
		for i := range rows {
			t.op("VST1 %s, (R%d)", group(i), c[i])
		}
		t.op("RET")
	}
	t.op("CBNZ R15, half")
	for _, half := range []bool{false, true} {
		label := "rows%d"
		if half {
			label = "half%d"
			t.label("half")
			t.op("MOVD $0xffff0000ffff0000, R15")
			t.op("VDUP R15, V31.D2")
		}
		for rows := 4; rows > 1; rows-- {
			t.op("CMP $%d, R0", rows)
			t.op("BEQ "+label, rows)
		}
		for rows := 1; rows <= 4; rows++ {
			t.label(fmt.Sprintf(label, rows))
			body(rows, half)
		}
	}
	t.WriteString("\n")

	begin("vecMat16NEON", "(k int, a, b *float32, ldb int, c *float32, load int)", "k", "a", "b", "ldb", "c", "load")
	t.op("LSL $2, R3")
	t.op("CBZ R5, zero")
	t.op("VLD1 (R4), %s", group(0))
	t.op("B loop")
	t.label("zero")
	for i := range 4 {
		t.op("VEOR V%d.B16, V%d.B16, V%d.B16", i, i, i)
	}
	t.label("loop")
	t.op("VLD1 (R2), %s", group(4))
	t.op("ADD R3, R2")
	t.op("VLD1R.P 4(R1), [V20.S4]")
	links(1, 8)
	t.op("SUB $1, R0")
	t.op("CBNZ R0, loop")
	t.op("VST1 %s, (R4)", group(0))
	t.op("RET")
	return t.String()
}
