package main

import "fmt"

// arm64 is the machine of NEON. A reg is four V registers of four lanes; the mask of the rest is V24-V27, V28-V31 are
// scratch. Go's assembler lacks the vector instructions on floats, so they are encoded here.
//
// General registers: R0-R4 pointers, R5 n, R6 byte offset, R7 counter, R8 address, R9 lanes in the rest, R10-R13
// scratch, R14 constants, R15 the frame's buffer of 16 lanes, through which the rest is loaded and stored.
type arm64 struct {
	text
	k    *kernel
	at   map[string]int
	tail bool
}

func newARM64() *arm64 { return &arm64{} }

// Encodings of vector instructions on four float32 lanes (Arm Architecture Reference Manual, C7.2).
const (
	fadd  = 0x4e20d400
	fsub  = 0x4ea0d400
	fmul  = 0x6e20dc00
	fdiv  = 0x6e20fc00
	fmin  = 0x4ea0f400
	fmax  = 0x4e20f400
	fcmgt = 0x6ea0e400
	fsqrt = 0x6ea1f800
	vbit  = 0x6ea01c00
)

// three emits d = n op m.
func (t *text) three(code uint32, d, n, m int) {
	t.op("WORD $0x%08x", code|uint32(m)<<16|uint32(n)<<5|uint32(d))
}

func (m *arm64) constants() string {
	var t text
	for i, c := range table {
		for j := 0; j < 16; j += 8 {
			fmt.Fprintf(&t, "DATA constants<>+%d(SB)/8, $0x%08x%08x\n", 16*i+j, c.bits, c.bits)
		}
	}
	fmt.Fprintf(&t, "GLOBL constants<>(SB), RODATA|NOPTR, $%d\n\n", 16*len(table))
	return t.String() + maskTable
}

func (m *arm64) begin(k *kernel) {
	m.k = k
	var size int
	m.at, size = frame(k)
	fmt.Fprintf(&m.text, "// func %sNEON%s\n", k.name, signature(k))
	fmt.Fprintf(&m.text, "TEXT ·%sNEON(SB), NOSPLIT, $64-%d\n", k.name, size)
	for i, p := range k.pointers {
		m.op("MOVD %s+%d(FP), R%d", p, m.at[p], i)
	}
	m.op("MOVD n+%d(FP), R5", m.at["n"])
	m.op("AND $15, R5, R9")
	m.op("MOVD $constants<>(SB), R14")
	m.op("MOVD $buffer-64(SP), R15")
	m.op("MOVD $mask<>+64(SB), R8")
	m.op("SUB R9<<2, R8, R8")
	m.op("VLD1 (R8), [V24.S4, V25.S4, V26.S4, V27.S4]")
}

func (m *arm64) end() {
	m.op("RET")
	m.WriteString("\n")
}

func (m *arm64) pass(body func()) {
	loop, rest, done := m.fresh("loop"), m.fresh("rest"), m.fresh("done")
	m.op("MOVD $0, R6")
	m.op("LSR $4, R5, R7")
	m.op("CBZ R7, %s", rest)
	m.label(loop)
	body()
	m.op("ADD $64, R6")
	m.op("SUB $1, R7")
	m.op("CBNZ R7, %s", loop)
	m.label(rest)
	m.op("CBZ R9, %s", done)
	m.tail = true
	body()
	m.tail = false
	m.label(done)
}

func (m *arm64) address(pointer string) {
	for i, p := range m.k.pointers {
		if p == pointer {
			m.op("ADD R6, R%d, R8", i)
			return
		}
	}
	panic("no pointer " + pointer)
}

func list(r reg) string {
	return fmt.Sprintf("[V%d.S4, V%d.S4, V%d.S4, V%d.S4]", 4*r, 4*r+1, 4*r+2, 4*r+3)
}

// move copies the rest's lanes one by one from the address in from to that in to.
func (m *arm64) move(from, to string) {
	loop := m.fresh("lane")
	m.op("MOVD %s, R10", from)
	m.op("MOVD %s, R11", to)
	m.op("MOVD R9, R12")
	m.label(loop)
	m.op("MOVWU.P 4(R10), R13")
	m.op("MOVW.P R13, 4(R11)")
	m.op("SUB $1, R12")
	m.op("CBNZ R12, %s", loop)
}

func (m *arm64) load(d reg, pointer string) {
	m.address(pointer)
	if !m.tail {
		m.op("VLD1 (R8), %s", list(d))
		return
	}
	m.set(7, nil)
	m.op("VST1 [V28.S4, V29.S4, V30.S4, V31.S4], (R15)")
	m.move("R8", "R15")
	m.op("VLD1 (R15), %s", list(d))
}

func (m *arm64) store(s reg, pointer string) {
	m.address(pointer)
	if !m.tail {
		m.op("VST1 %s, (R8)", list(s))
		return
	}
	m.op("VST1 %s, (R15)", list(s))
	m.move("R15", "R8")
}

// fetch brings a constant or scalar into all lanes of V28 and returns 28.
func (m *arm64) fetch(x any) int {
	switch x := x.(type) {
	case constant:
		for i, c := range table {
			if c.name == x {
				m.op("FMOVQ %d(R14), F28", 16*i)
				return 28
			}
		}
	case scalar:
		m.op("FMOVS %s+%d(FP), F28", string(x), m.at[string(x)])
		m.op("VDUP V28.S[0], V28.S4")
		return 28
	}
	panic(fmt.Sprintf("not in memory: %v", x))
}

func (m *arm64) set(d reg, x any) {
	if x == nil {
		for i := range 4 {
			m.op("VEOR V%d.B16, V%d.B16, V%d.B16", 4*int(d)+i, 4*int(d)+i, 4*int(d)+i)
		}
		return
	}
	from := m.fetch(x)
	for i := range 4 {
		m.op("VMOV V%d.B16, V%d.B16", from, 4*int(d)+i)
	}
}

func (m *arm64) binary(code uint32, d, a reg, x any) {
	r, isReg := x.(reg)
	from := 0
	if !isReg {
		from = m.fetch(x)
	}
	for i := range 4 {
		if isReg {
			from = 4*int(r) + i
		}
		m.three(code, 4*int(d)+i, 4*int(a)+i, from)
	}
}

func (m *arm64) add(d, a reg, x any) { m.binary(fadd, d, a, x) }
func (m *arm64) sub(d, a reg, x any) { m.binary(fsub, d, a, x) }
func (m *arm64) mul(d, a reg, x any) { m.binary(fmul, d, a, x) }
func (m *arm64) div(d, a reg, x any) { m.binary(fdiv, d, a, x) }

func (m *arm64) sqrt(d, a reg) {
	for i := range 4 {
		m.three(fsqrt, 4*int(d)+i, 4*int(a)+i, 0)
	}
}

func (m *arm64) atMost(d reg, c constant)  { m.binary(fmin, d, d, c) }
func (m *arm64) atLeast(d reg, c constant) { m.binary(fmax, d, d, c) }

func (m *arm64) negate(d, a reg) {
	from := m.fetch(constant("signBit"))
	for i := range 4 {
		m.op("VEOR V%d.B16, V%d.B16, V%d.B16", from, 4*int(a)+i, 4*int(d)+i)
	}
}

func (m *arm64) powerOfTwo(d reg) {
	from := m.fetch(constant("bias"))
	for i := range 4 {
		v := 4*int(d) + i
		m.op("VSHL $23, V%d.S4, V%d.S4", v, v)
		m.op("VADD V%d.S4, V%d.S4, V%d.S4", from, v, v)
	}
}

func (m *arm64) sum(acc, x reg) {
	for i := range 4 {
		from := 4*int(x) + i
		if m.tail {
			m.op("VAND V%d.B16, V%d.B16, V28.B16", 24+i, from)
			from = 28
		}
		m.three(fadd, 4*int(acc)+i, 4*int(acc)+i, from)
	}
}

func (m *arm64) larger(acc, x reg) {
	for i := range 4 {
		from, to := 4*int(x)+i, 4*int(acc)+i
		m.three(fcmgt, 28, from, to)
		if m.tail {
			m.op("VAND V%d.B16, V28.B16, V28.B16", 24+i)
		}
		m.three(vbit, to, from, 28)
	}
}

// fold emits the tree; combine folds register b into a.
func (m *arm64) fold(r reg, combine func(a, b int)) {
	v := 4 * int(r)
	combine(v, v+2)
	combine(v+1, v+3)
	combine(v, v+1)
	m.op("VEXT $8, V%d.B16, V%d.B16, V29.B16", v, v)
	combine(v, 29)
	m.op("VDUP V%d.S[1], V29.S4", v)
	combine(v, 29)
	m.op("VDUP V%d.S[0], V%d.S4", v, v)
	for i := 1; i < 4; i++ {
		m.op("VMOV V%d.B16, V%d.B16", v, v+i)
	}
}

func (m *arm64) foldSum(r reg) {
	m.fold(r, func(a, b int) { m.three(fadd, a, a, b) })
}

func (m *arm64) foldMax(r reg) {
	m.fold(r, func(a, b int) {
		m.three(fcmgt, 28, b, a)
		m.three(vbit, a, b, 28)
	})
}

func (m *arm64) result(name string, r reg) {
	m.op("FMOVS F%d, %s+%d(FP)", 4*r, name, m.at[name])
}
