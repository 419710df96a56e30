package meter

// instruction reads the next instruction and appends it, rewritten, to the segment. It returns the opcode, of those with
// a prefix the prefix.
func (f *function) instruction() byte {
	r := f.in
	start := r.at
	op := r.byte()
	f.cost++
	switch op {
	case opReturn:
		f.segment = appendU32(append(f.segment, opBr), f.nesting)
		return op
	case opMemoryGrow:
		f.chargeTop(13, opI64Shl)
		f.memoryIndex()
	case opBulk:
		f.bulk()
	case opVector:
		f.vector(start)
		return op
	default:
		f.plain(op)
	}
	f.segment = append(f.segment, r.b[start:r.at]...)
	switch {
	case op >= 0x8d && op <= 0x97, op == 0xb6:
		f.canonical(f32, false)
	case op >= 0x9b && op <= 0xa5, op == 0xbb:
		f.canonical(f64, false)
	}
	return op
}

// plain reads the immediates of an instruction without a prefix.
func (f *function) plain(op byte) {
	r := f.in
	switch {
	case op == opBlock || op == opLoop || op == opIf:
		f.readBlockType()
	case op == opBr || op == opBrIf:
		f.label()
	case op == opBrTable:
		for range r.count() {
			f.label()
		}
		f.label()
	case op == 0x10, op == 0xd2: // call, ref.func
		if i := r.u32(); uint64(i) >= uint64(f.imported)+uint64(len(f.funcs)) {
			r.fail("function %d of %d", i, f.imported+len(f.funcs))
		}
	case op == 0x11: // call_indirect
		f.checkType(r, r.u32())
		r.u32()
	case op == 0x1c: // select of a type
		for range r.count() {
			r.valueType()
		}
	case op >= opLocalGet && op <= opLocalTee:
		if i := r.u32(); i >= f.locals {
			r.fail("local %d of %d", i, f.locals)
		}
	case op == opGlobalGet || op == opGlobalSet:
		if i := r.u32(); i >= f.globals {
			r.fail("global %d of %d", i, f.globals)
		}
	case op == 0x25 || op == 0x26: // table.get, table.set
		r.u32()
	case op >= 0x28 && op <= 0x3e: // loads and stores
		f.memoryArgument()
	case op == 0x3f: // memory.size
		f.memoryIndex()
	case op == opI32Const:
		r.skipSigned(5)
	case op == opI64Const:
		r.skipSigned(10)
	case op == opF32Const:
		r.take(4)
	case op == opF64Const:
		r.take(8)
	case op == 0xd0: // ref.null
		r.valueType()
	case op == opUnreachable, op == 0x01, op == opElse, op == opEnd, op == 0x1a, op == opSelect, op == 0xd1,
		op >= 0x45 && op <= 0xc4:
	default:
		r.at--
		r.fail("instruction 0x%02x is not of WebAssembly 2.0: build without threads, exceptions, tail calls and other newer features", op)
	}
}

// readBlockType reads the type of a block.
func (f *function) readBlockType() {
	r := f.in
	start := r.at
	if c := r.byte(); c == empty || c >= 0x40 && c < 0x80 {
		if c != empty {
			r.at--
			r.valueType()
		}
		return
	}
	r.at = start
	f.checkType(r, r.u32())
}

func (f *function) label() {
	if l := f.in.u32(); l > f.nesting {
		f.in.fail("label %d of %d", l, f.nesting+1)
	}
}

func (f *function) memoryArgument() {
	if align := f.in.u32(); align > 4 {
		f.in.fail("alignment %d: one memory is allowed", align)
	}
	f.in.u32()
}

func (f *function) memoryIndex() {
	if f.in.byte() != 0 {
		f.in.fail("one memory is allowed")
	}
}

// bulk reads an instruction behind the prefix 0xfc, and charges for what it moves.
func (f *function) bulk() {
	r := f.in
	op := r.u32()
	const shift = 3
	switch op {
	case 0, 1, 2, 3, 4, 5, 6, 7: // conversions that saturate
	case 8: // memory.init
		f.chargeTop(shift, opI64ShrU)
		r.u32()
		f.memoryIndex()
	case 9, 13, 16: // data.drop, elem.drop, table.size
		r.u32()
	case 10: // memory.copy
		f.chargeTop(shift, opI64ShrU)
		f.memoryIndex()
		f.memoryIndex()
	case 11: // memory.fill
		f.chargeTop(shift, opI64ShrU)
		f.memoryIndex()
	case 12, 14: // table.init, table.copy
		f.chargeTop(0, opI64ShrU)
		r.u32()
		r.u32()
	case 17: // table.fill
		f.chargeTop(0, opI64ShrU)
		r.u32()
	case 15:
		r.fail("the module has a table that grows: build without reference types")
	default:
		r.fail("instruction 0xfc %d is not of WebAssembly 2.0", op)
	}
}

// vector reads an instruction behind the prefix 0xfd.
func (f *function) vector(start int) {
	r := f.in
	op := r.u32()
	switch {
	case op <= 11, op == 92, op == 93: // loads and stores
		f.memoryArgument()
	case op == 12, op == 13: // v128.const, i8x16.shuffle
		r.take(16)
	case op >= 21 && op <= 34: // lanes
		r.byte()
	case op >= 84 && op <= 91: // loads and stores of a lane
		f.memoryArgument()
		r.byte()
	case op > 255:
		r.fail("the module uses relaxed vector instructions, whose results differ between machines: build without")
	}
	f.segment = append(f.segment, r.b[start:r.at]...)
	switch {
	case op >= 0x67 && op <= 0x6a, op >= 0xe3 && op <= 0xe9, op == 0x5e:
		f.canonical(v128, false)
	case op == 0x74, op == 0x75, op == 0x7a, op == 0x94, op >= 0xef && op <= 0xf5, op == 0x5f:
		f.canonical(v128, true)
	}
}
