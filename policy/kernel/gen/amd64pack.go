package main

import "fmt"

// copyRows emits the packing of rows that are exactly one panel wide.
func copyRows(t *text, v vectors) {
	begin(t, "copyRows"+v.suffix, "(k int, dst, src *float32, ld int)",
		[2]string{"k", "CX"}, [2]string{"dst", "DI"}, [2]string{"src", "SI"}, [2]string{"ld", "R8"})
	t.op("SHLQ $2, R8")
	loop := t.fresh("loop")
	t.label(loop)
	t.op("VMOVUPS (SI), %s", v.reg(0))
	t.op("VMOVUPS %d(SI), %s", v.bytes, v.reg(1))
	t.op("VMOVUPS %s, (DI)", v.reg(0))
	t.op("VMOVUPS %s, %d(DI)", v.reg(1), v.bytes)
	t.op("ADDQ R8, SI")
	t.op("ADDQ $%d, DI", 2*v.bytes)
	t.op("DECQ CX")
	t.op("JNZ %s", loop)
	end(t)
}

// transpose emits the transposition of eight rows of src, 8·blocks long, into eight columns of dst.
func transpose(t *text) {
	begin(t, "transposeAVX2", "(blocks int, dst *float32, width int, src *float32, ld int)",
		[2]string{"blocks", "CX"}, [2]string{"dst", "DI"}, [2]string{"width", "R11"}, [2]string{"src", "SI"}, [2]string{"ld", "R8"})
	t.op("SHLQ $2, R8")
	t.op("SHLQ $2, R11")
	t.op("LEAQ (R8)(R8*2), R9")
	t.op("LEAQ (SI)(R8*4), R10")
	t.op("LEAQ (R11)(R11*2), R12")
	loop := t.fresh("loop")
	t.label(loop)
	at := func(low, high, one, three string, i int) string {
		base := low
		if i >= 4 {
			base = high
		}
		return [...]string{"(" + base + ")", "(" + base + ")(" + one + "*1)", "(" + base + ")(" + one + "*2)", "(" + base + ")(" + three + "*1)"}[i%4]
	}
	// Pairs of rows interleave (8-15), quadruples interleave (0-7), then 128-bit halves change places.
	for i := range 8 {
		t.op("VMOVUPS %s, Y%d", at("SI", "R10", "R8", "R9", i), i)
	}
	for i := 0; i < 8; i += 2 {
		t.op("VUNPCKLPS Y%d, Y%d, Y%d", i+1, i, 8+i)
		t.op("VUNPCKHPS Y%d, Y%d, Y%d", i+1, i, 9+i)
	}
	for i := 0; i < 8; i += 4 {
		for h := range 2 {
			low, high := 8+i+h, 8+i+2+h
			t.op("VSHUFPS $0x44, Y%d, Y%d, Y%d", high, low, i+2*h)
			t.op("VSHUFPS $0xee, Y%d, Y%d, Y%d", high, low, i+2*h+1)
		}
	}
	t.op("LEAQ (DI)(R11*4), R13")
	for i := range 4 {
		t.op("VPERM2F128 $0x20, Y%d, Y%d, Y%d", 4+i, i, 8+i)
		t.op("VPERM2F128 $0x31, Y%d, Y%d, Y%d", 4+i, i, 12+i)
	}
	for i := range 8 {
		t.op("VMOVUPS Y%d, %s", 8+i, at("DI", "R13", "R11", "R12", i))
	}
	t.op("ADDQ $32, SI")
	t.op("ADDQ $32, R10")
	t.op("LEAQ (DI)(R11*8), DI")
	t.op("DECQ CX")
	t.op("JNZ %s", loop)
	end(t)
}

// squares emits the sums of squares in 16 float64 lanes over whole groups of 16 elements.
func squares(t *text, v vectors) {
	begin(t, "squares"+v.suffix, "(groups int, x *float32, sums *[16]float64)",
		[2]string{"groups", "CX"}, [2]string{"x", "SI"}, [2]string{"sums", "DI"})
	count, source := 128/v.bytes, "X"
	if v == zmm {
		source = "Y"
	}
	for i := range count {
		t.op("%s %s, %s, %s", v.clear, v.reg(i), v.reg(i), v.reg(i))
	}
	loop := t.fresh("loop")
	t.label(loop)
	for i := range count {
		t.op("VMOVUPS %d(SI), %s%d", i*v.bytes/2, source, 8+i)
		t.op("VCVTPS2PD %s%d, %s", source, 8+i, v.reg(8+i))
		t.op("VMULPD %s, %s, %s", v.reg(8+i), v.reg(8+i), v.reg(8+i))
		t.op("VADDPD %s, %s, %s", v.reg(8+i), v.reg(i), v.reg(i))
	}
	t.op("ADDQ $64, SI")
	t.op("DECQ CX")
	t.op("JNZ %s", loop)
	for i := range count {
		t.op("VMOVUPD %s, %s", v.reg(i), fmt.Sprintf("%d(DI)", i*v.bytes))
	}
	end(t)
}
