package meter

import "encoding/binary"

// Opcodes that the rewriting treats or writes.
const (
	opUnreachable = 0x00
	opBlock       = 0x02
	opLoop        = 0x03
	opIf          = 0x04
	opElse        = 0x05
	opEnd         = 0x0b
	opBr          = 0x0c
	opBrIf        = 0x0d
	opBrTable     = 0x0e
	opReturn      = 0x0f
	opCall        = 0x10
	opDrop        = 0x1a
	opSelect      = 0x1b
	opLocalGet    = 0x20
	opLocalSet    = 0x21
	opLocalTee    = 0x22
	opGlobalGet   = 0x23
	opGlobalSet   = 0x24
	opMemoryGrow  = 0x40
	opI32Const    = 0x41
	opI64Const    = 0x42
	opF32Const    = 0x43
	opF64Const    = 0x44
	opI32GtU      = 0x4b
	opI64LtS      = 0x53
	opF32Eq       = 0x5b
	opF64Eq       = 0x61
	opI32Add      = 0x6a
	opI32Sub      = 0x6b
	opI32Or       = 0x72
	opI64Sub      = 0x7d
	opI64Shl      = 0x86
	opI64ShrU     = 0x88
	opExtendU     = 0xad // i64.extend_i32_u
	opBulk        = 0xfc
	opVector      = 0xfd

	empty = 0x40 // the type of a block without results
)

// callCost is what a call costs in depth besides the callee's parameters and locals.
const callCost = 16

// function rewrites one function's body.
type function struct {
	*module
	in      *reader
	locals  uint32 // parameters included
	added   []byte // types of the locals that the rewriting adds
	nesting uint32 // blocks that are open

	out []byte
	// The segment being read: instructions that run one after the other, once the first does.
	segment []byte
	cost    int64
	check   check // before the segment
}

// check is what a segment begins with.
type check uint8

const (
	noCheck check = iota
	checkSteps
	checkBoth
)

// code rewrites all functions.
func (m *module) code(sections map[byte]*reader) []byte {
	r := sections[codeSection]
	if r == nil {
		if len(m.funcs) > 0 {
			(&reader{}).fail("the module has functions without code")
		}
		r = &reader{b: []byte{0}}
	}
	n := r.count()
	if int(n) != len(m.funcs) {
		r.fail("%d bodies of %d functions", n, len(m.funcs))
	}
	content := appendU32(make([]byte, 0, len(r.b)*2), n+1)
	for i := range n {
		body := m.function(r.part(r.u32()), m.funcs[i])
		content = appendU32(content, uint32(len(body)))
		content = append(content, body...)
	}
	r.done()
	body := m.refill()
	content = appendU32(content, uint32(len(body)))
	return append(content, body...)
}

// refill is the body of the function that is called when a limit is reached. It traps if the depth is; otherwise it asks
// the host for steps.
func (m *module) refill() []byte {
	b := m.global([]byte{0}, opGlobalGet, 1)
	b = appendSigned(append(b, opI32Const), int64(m.depth))
	b = append(b, opI32GtU, opIf, empty, opUnreachable, opEnd)
	yield := Yield
	b = appendSigned(append(b, opI32Const), int64(int32(yield)))
	b = append(b, opI32Const, 0, opI32Const, 0, opI32Const, 0)
	b = appendU32(append(b, opCall), uint32(m.read))
	return append(b, opDrop, opEnd)
}

// function rewrites a body of a type. The body becomes a block inside a new one, so that everything that leaves it passes
// the place where the call's cost is given back.
func (m *module) function(r *reader, t uint32) []byte {
	f := &function{module: m, in: r, locals: uint32(len(m.types[t].params)), check: checkBoth}
	groups := r.count()
	list := r.at
	for range groups {
		n := r.u32()
		if n > maxLocals || f.locals+n > maxLocals {
			r.fail("a function with more than %d locals: split it", maxLocals)
		}
		f.locals += n
		r.valueType()
	}
	declared := r.b[list:r.at]

	for {
		op := f.instruction()
		if op == opEnd && f.nesting == 0 {
			break
		}
		switch op {
		case opBlock, opLoop, opIf:
			f.nesting++
		case opEnd:
			f.nesting--
		}
		switch op {
		case opLoop:
			f.flush(checkSteps)
		case opIf, opElse, opEnd, opBr, opBrIf, opBrTable, opReturn, opUnreachable:
			f.flush(noCheck)
		}
	}
	f.flush(noCheck)
	r.done()

	body := appendU32(nil, groups+uint32(len(f.added)))
	body = append(body, declared...)
	for _, t := range f.added {
		body = append(body, 1, t)
	}
	cost := callCost + f.locals
	body = f.moveDepth(body, opI32Add, cost)
	body = append(body, opBlock)
	body = append(body, m.blockType(t)...)
	body = append(body, f.out...)
	body = f.moveDepth(body, opI32Sub, cost)
	return append(body, opEnd)
}

// blockType is the type of a block that takes nothing and leaves a function type's results.
func (m *module) blockType(t uint32) []byte {
	results := m.types[t].results
	switch len(results) {
	case 0:
		return []byte{empty}
	case 1:
		return results
	}
	index, ok := m.blocks[t]
	if !ok {
		index = uint32(len(m.types) + len(m.extra))
		m.blocks[t] = index
		m.extra = append(m.extra, signature{results: results})
	}
	return appendSigned(nil, int64(index))
}

func (f *function) moveDepth(b []byte, op byte, cost uint32) []byte {
	b = f.global(b, opGlobalGet, 1)
	b = appendSigned(append(b, opI32Const), int64(cost))
	return f.global(append(b, op), opGlobalSet, 1)
}

// global writes an access to one of the meter's globals: 0 the steps, 1 the depth.
func (m *module) global(b []byte, op byte, which uint32) []byte {
	return appendU32(append(b, op), m.globals+which)
}

// flush writes the segment behind what it costs, and begins the next one with a check.
func (f *function) flush(next check) {
	if f.cost > 0 {
		f.out = f.global(f.out, opGlobalGet, 0)
		f.out = appendSigned(append(f.out, opI64Const), f.cost)
		f.out = f.global(append(f.out, opI64Sub), opGlobalSet, 0)
	}
	if f.check != noCheck {
		f.out = f.writeCheck(f.out, f.check)
	}
	f.out = append(f.out, f.segment...)
	f.segment, f.cost, f.check = f.segment[:0], 0, next
}

func (f *function) writeCheck(b []byte, c check) []byte {
	b = f.global(b, opGlobalGet, 0)
	b = append(b, opI64Const, 0, opI64LtS)
	if c == checkBoth {
		b = f.global(b, opGlobalGet, 1)
		b = appendSigned(append(b, opI32Const), int64(f.depth))
		b = append(b, opI32GtU, opI32Or)
	}
	b = appendU32(append(b, opIf, empty, opCall), uint32(f.imported+len(f.funcs)))
	return append(b, opEnd)
}

// local is the index of a local of a type for the rewriting's use. Nothing is kept in it from one use to the next.
func (f *function) local(t byte) uint32 {
	for i, have := range f.added {
		if have == t {
			return f.locals + uint32(i)
		}
	}
	f.added = append(f.added, t)
	return f.locals + uint32(len(f.added)-1)
}

// chargeTop charges for the number on top of the stack, an i32, shifted.
func (f *function) chargeTop(shift byte, shiftOp byte) {
	t := f.local(i32)
	b := appendU32(append(f.segment, opLocalTee), t)
	b = f.global(b, opGlobalGet, 0)
	b = appendU32(append(b, opLocalGet), t)
	b = append(b, opExtendU, opI64Const, shift, shiftOp, opI64Sub)
	b = f.global(b, opGlobalSet, 0)
	f.segment = f.writeCheck(b, checkSteps)
}

// canonical makes a result that is not a number the canonical one.
func (f *function) canonical(t byte, wide bool) {
	local := f.local(t)
	b := appendU32(append(f.segment, opLocalTee), local)
	var eq, choose []byte
	nan32 := binary.LittleEndian.AppendUint32(nil, 0x7fc00000)
	nan64 := binary.LittleEndian.AppendUint64(nil, 0x7ff8000000000000)
	switch t {
	case f32:
		b = append(append(b, opF32Const), nan32...)
		eq, choose = []byte{opF32Eq}, []byte{opSelect}
	case f64:
		b = append(append(b, opF64Const), nan64...)
		eq, choose = []byte{opF64Eq}, []byte{opSelect}
	default:
		b = append(b, opVector, 12)
		eq, choose = []byte{opVector, 0x41}, []byte{opVector, 0x52}
		if wide {
			b = append(append(b, nan64...), nan64...)
			eq[1] = 0x47
		} else {
			b = append(append(append(append(b, nan32...), nan32...), nan32...), nan32...)
		}
	}
	b = appendU32(append(b, opLocalGet), local)
	b = appendU32(append(b, opLocalGet), local)
	b = append(b, eq...)
	f.segment = append(b, choose...)
}
