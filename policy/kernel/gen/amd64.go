package main

import "fmt"

// amd64 is the machine of AVX2 and AVX-512. A reg is one Z register, or the pair Y(2r), Y(2r+1). Scratch is 6 (Z6, or
// Y12); masks for the rest are K1, or Y14 and Y15.
//
// General registers: DX n, AX byte offset, CX and BX scratch, the others pointers.
type amd64 struct {
	text
	suffix string
	wide   bool // AVX-512
	k      *kernel
	at     map[string]int
	tail   bool
}

func newAMD64(suffix string, wide bool) *amd64 { return &amd64{suffix: suffix, wide: wide} }

var pointerAMD64 = []string{"SI", "DI", "R8", "R9", "R10"}

func (m *amd64) constants() string {
	var t text
	for _, c := range table {
		for i := 0; i < 32; i += 8 {
			fmt.Fprintf(&t, "DATA %s<>+%d(SB)/8, $0x%08x%08x\n", c.name, i, c.bits, c.bits)
		}
		fmt.Fprintf(&t, "GLOBL %s<>(SB), RODATA|NOPTR, $32\n\n", c.name)
	}
	if !m.wide {
		t.WriteString(maskTable)
	}
	return t.String()
}

// maskTable starts with 16 lanes on, followed by 16 lanes off: a mask of the first n lanes starts at 16-n.
var maskTable = func() string {
	var t text
	for i := 0; i < 128; i += 8 {
		v := "ffffffffffffffff"
		if i >= 64 {
			v = "0000000000000000"
		}
		fmt.Fprintf(&t, "DATA mask<>+%d(SB)/8, $0x%s\n", i, v)
	}
	t.WriteString("GLOBL mask<>(SB), RODATA|NOPTR, $128\n\n")
	return t.String()
}()

func (m *amd64) begin(k *kernel) {
	m.k = k
	var size int
	m.at, size = frame(k)
	fmt.Fprintf(&m.text, "// func %s%s%s\n", k.name, m.suffix, signature(k))
	fmt.Fprintf(&m.text, "TEXT ·%s%s(SB), NOSPLIT, $0-%d\n", k.name, m.suffix, size)
	for i, p := range k.pointers {
		m.op("MOVQ %s+%d(FP), %s", p, m.at[p], pointerAMD64[i])
	}
	m.op("MOVQ n+%d(FP), DX", m.at["n"])
	if m.wide {
		m.op("MOVL DX, CX")
		m.op("ANDL $15, CX")
		m.op("MOVL $1, BX")
		m.op("SHLL CX, BX")
		m.op("DECL BX")
		m.op("KMOVW BX, K1")
		return
	}
	m.op("MOVQ DX, CX")
	m.op("ANDQ $15, CX")
	m.op("NEGQ CX")
	m.op("LEAQ mask<>+64(SB), BX")
	m.op("VMOVDQU (BX)(CX*4), Y14")
	m.op("VMOVDQU 32(BX)(CX*4), Y15")
}

func (m *amd64) end() {
	m.op("VZEROUPPER")
	m.op("RET")
	m.WriteString("\n")
}

func (m *amd64) pass(body func()) {
	loop, rest, done := m.fresh("loop"), m.fresh("rest"), m.fresh("done")
	m.op("XORL AX, AX")
	m.op("MOVQ DX, CX")
	m.op("SHRQ $4, CX")
	m.op("JZ %s", rest)
	m.label(loop)
	body()
	m.op("ADDQ $64, AX")
	m.op("DECQ CX")
	m.op("JNZ %s", loop)
	m.label(rest)
	m.op("TESTQ $15, DX")
	m.op("JZ %s", done)
	m.tail = true
	body()
	m.tail = false
	m.label(done)
}

// parts lists the machine registers of r.
func (m *amd64) parts(r reg) []string {
	if m.wide {
		return []string{fmt.Sprintf("Z%d", r)}
	}
	return []string{fmt.Sprintf("Y%d", 2*r), fmt.Sprintf("Y%d", 2*r+1)}
}

func (m *amd64) address(pointer string, part int) string {
	for i, p := range m.k.pointers {
		if p == pointer {
			if part == 0 {
				return fmt.Sprintf("(%s)(AX*1)", pointerAMD64[i])
			}
			return fmt.Sprintf("%d(%s)(AX*1)", 32*part, pointerAMD64[i])
		}
	}
	panic("no pointer " + pointer)
}

func (m *amd64) load(d reg, pointer string) {
	for i, r := range m.parts(d) {
		switch {
		case !m.tail:
			m.op("VMOVUPS %s, %s", m.address(pointer, i), r)
		case m.wide:
			m.op("VMOVUPS.Z %s, K1, %s", m.address(pointer, i), r)
		default:
			m.op("VMASKMOVPS %s, Y%d, %s", m.address(pointer, i), 14+i, r)
		}
	}
}

func (m *amd64) store(s reg, pointer string) {
	for i, r := range m.parts(s) {
		switch {
		case !m.tail:
			m.op("VMOVUPS %s, %s", r, m.address(pointer, i))
		case m.wide:
			m.op("VMOVUPS %s, K1, %s", r, m.address(pointer, i))
		default:
			m.op("VMASKMOVPS %s, Y%d, %s", r, 14+i, m.address(pointer, i))
		}
	}
}

func (m *amd64) memory(x any) string {
	switch x := x.(type) {
	case constant:
		return string(x) + "<>(SB)"
	case scalar:
		return fmt.Sprintf("%s+%d(FP)", string(x), m.at[string(x)])
	}
	panic(fmt.Sprintf("not in memory: %v", x))
}

func (m *amd64) set(d reg, x any) {
	for _, r := range m.parts(d) {
		switch {
		case x == nil && m.wide:
			m.op("VPXORD %s, %s, %s", r, r, r)
		case x == nil:
			m.op("VXORPS %s, %s, %s", r, r, r)
		default:
			m.op("VBROADCASTSS %s, %s", m.memory(x), r)
		}
	}
}

// binary emits d = a op x.
func (m *amd64) binary(op string, d, a reg, x any) {
	if r, ok := x.(reg); ok {
		for i := range m.parts(d) {
			m.op("%s %s, %s, %s", op, m.parts(r)[i], m.parts(a)[i], m.parts(d)[i])
		}
		return
	}
	if m.wide {
		m.op("%s.BCST %s, %s, %s", op, m.memory(x), m.parts(a)[0], m.parts(d)[0])
		return
	}
	from := m.memory(x)
	if _, ok := x.(scalar); ok {
		m.op("VBROADCASTSS %s, Y12", from)
		from = "Y12"
	}
	for i := range m.parts(d) {
		m.op("%s %s, %s, %s", op, from, m.parts(a)[i], m.parts(d)[i])
	}
}

func (m *amd64) add(d, a reg, x any) { m.binary("VADDPS", d, a, x) }
func (m *amd64) sub(d, a reg, x any) { m.binary("VSUBPS", d, a, x) }
func (m *amd64) mul(d, a reg, x any) { m.binary("VMULPS", d, a, x) }
func (m *amd64) div(d, a reg, x any) { m.binary("VDIVPS", d, a, x) }

func (m *amd64) sqrt(d, a reg) {
	for i := range m.parts(d) {
		m.op("VSQRTPS %s, %s", m.parts(a)[i], m.parts(d)[i])
	}
}

// clamp relies on VMINPS and VMAXPS giving their last source, here d, when one is NaN.
func (m *amd64) clamp(op string, d reg, c constant) {
	limit := "Y12"
	if m.wide {
		limit = "Z6"
	}
	m.op("VBROADCASTSS %s, %s", m.memory(c), limit)
	for _, r := range m.parts(d) {
		m.op("%s %s, %s, %s", op, r, limit, r)
	}
}

func (m *amd64) atMost(d reg, c constant)  { m.clamp("VMINPS", d, c) }
func (m *amd64) atLeast(d reg, c constant) { m.clamp("VMAXPS", d, c) }

func (m *amd64) negate(d, a reg) {
	op := "VXORPS"
	if m.wide {
		op = "VPXORD"
	}
	m.binary(op, d, a, constant("signBit"))
}

func (m *amd64) powerOfTwo(d reg) {
	for _, r := range m.parts(d) {
		m.op("VPSLLD $23, %s, %s", r, r)
	}
	m.binary("VPADDD", d, d, constant("bias"))
}

func (m *amd64) sum(acc, x reg) {
	for i, r := range m.parts(acc) {
		from := m.parts(x)[i]
		switch {
		case !m.tail:
			m.op("VADDPS %s, %s, %s", from, r, r)
		case m.wide:
			m.op("VADDPS %s, %s, K1, %s", from, r, r)
		default:
			m.op("VANDPS Y%d, %s, Y12", 14+i, from)
			m.op("VADDPS Y12, %s, %s", r, r)
		}
	}
}

func (m *amd64) larger(acc, x reg) {
	for i, r := range m.parts(acc) {
		from := m.parts(x)[i]
		switch {
		case !m.tail:
			m.op("VMAXPS %s, %s, %s", r, from, r)
		case m.wide:
			m.op("VMAXPS %s, %s, K1, %s", r, from, r)
		default:
			m.op("VMAXPS %s, %s, Y12", r, from)
			m.op("VBLENDVPS Y%d, Y12, %s, %s", 14+i, r, r)
		}
	}
}

// fold emits the tree; op takes the upper lanes as its first source.
func (m *amd64) fold(op string, r reg) {
	x := 2 * r
	if m.wide {
		x = r
		m.op("VEXTRACTF64X4 $1, Z%d, Y12", x)
	} else {
		m.op("VMOVAPS Y%d, Y12", x+1)
	}
	m.op("%s Y%d, Y12, Y%d", op, x, x)
	m.op("VEXTRACTF128 $1, Y%d, X12", x)
	m.op("%s X%d, X12, X%d", op, x, x)
	m.op("VMOVHLPS X%d, X%d, X12", x, x)
	m.op("%s X%d, X12, X%d", op, x, x)
	m.op("VMOVSHDUP X%d, X12", x)
	m.op("%s X%d, X12, X%d", op, x, x)
	for _, p := range m.parts(r) {
		m.op("VBROADCASTSS X%d, %s", x, p)
	}
}

func (m *amd64) foldSum(r reg) { m.fold("VADDPS", r) }
func (m *amd64) foldMax(r reg) { m.fold("VMAXPS", r) }

func (m *amd64) result(name string, r reg) {
	x := r
	if !m.wide {
		x = 2 * r
	}
	m.op("VMOVSS X%d, %s+%d(FP)", x, name, m.at[name])
}
