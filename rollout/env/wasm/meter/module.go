package meter

import "bytes"

// The globals that a rewritten module exports.
const (
	// Steps is an i64, at first 0: how many steps are left. Hosts may change it while they are called.
	Steps = "lightswarm.steps"
	// Depth is an i32: the cost of all calls that run. Above the limit the module has trapped for it.
	Depth = "lightswarm.depth"
)

// Yield is the descriptor with which a module that has no steps left calls fd_read.
const Yield = ^uint32(1)

// What a module has to import, so that there is a function to call.
const (
	importFrom = "wasi_snapshot_preview1"
	importName = "fd_read"
)

// Limits on modules.
const (
	// MaxModuleBytes bounds a module.
	MaxModuleBytes = 32 << 20
	// maxLocals bounds the locals of a function, so that the cost of a call follows what machines need for it.
	maxLocals = 8192
	// maxTable bounds a table's elements.
	maxTable = 1 << 20
	maxTypes = 1 << 16
)

// Section ids, in the order in which sections have to come.
var order = []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 10, 11}

const (
	typeSection   = 1
	importSection = 2
	funcSection   = 3
	tableSection  = 4
	memorySection = 5
	globalSection = 6
	exportSection = 7
	codeSection   = 10
	dataSection   = 11

	dataCountSection = 12
)

// module is what has to be known of a module to rewrite its functions.
type module struct {
	depth    int32
	types    []signature
	imported int      // functions
	read     int      // the index of fd_read among them, -1 if it is not there
	funcs    []uint32 // types of the module's own functions
	globals  uint32
	// blocks are types of blocks that leave more than one result, by the index of the function type that has these; extra
	// are those types, to be added to the module's.
	blocks map[uint32]uint32
	extra  []signature
}

type signature struct{ params, results []byte }

// Rewrite returns the module with meters and a limit, at least 1, of the depth; see the package comment. Its error is an
// *Error.
func Rewrite(code []byte, depth int32) (rewritten []byte, err error) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case *Error:
			rewritten, err = nil, v
		default:
			panic(v)
		}
	}()
	if depth < 1 {
		panic("meter: a depth below 1")
	}
	r := &reader{b: code}
	if len(code) > MaxModuleBytes {
		r.fail("the module has %d bytes; at most %d MiB are allowed", len(code), MaxModuleBytes>>20)
	}
	r.header()
	m := &module{depth: depth, read: -1, blocks: map[uint32]uint32{}}
	sections := r.sections()
	m.survey(sections)
	if m.read < 0 {
		r.at = 0
		r.fail("the module does not import %s of %s, so that it cannot be asked for anything: build a command for wasip1", importName, importFrom)
	}

	// The functions come first: they say which types are needed.
	bodies := m.code(sections)
	m.nothing()
	out := append(make([]byte, 0, len(code)*2), code[:8]...)
	for _, id := range order {
		var content []byte
		switch id {
		case typeSection:
			content = m.typeSection(sections[id])
		case funcSection:
			content = m.funcSection(sections[id])
		case globalSection:
			content = m.globalSection(sections[id])
		case exportSection:
			content = m.exportSection(sections[id])
		case codeSection:
			content = bodies
		case dataSection:
			// With a count of segments ahead of the code, the code may use them by number.
			if s := sections[id]; s != nil && sections[dataCountSection] == nil {
				content = joined(s)
			} else if s != nil {
				content = s.b
			}
		default:
			if s := sections[id]; s != nil {
				content = s.b
			}
		}
		if content != nil {
			out = append(out, id)
			out = appendU32(out, uint32(len(content)))
			out = append(out, content...)
		}
	}
	return out, nil
}

func (r *reader) header() {
	header := r.take(uint32(min(8, len(r.b))))
	switch {
	case len(header) < 8 || string(header[:4]) != "\x00asm":
		r.at = 0
		r.fail("this is no WebAssembly module")
	case !bytes.Equal(header[4:], []byte{1, 0, 0, 0}):
		r.at = 4
		r.fail("this is a WebAssembly component or a newer format; build a core module, for wasip1 (GOOS=wasip1 GOARCH=wasm, or --target wasm32-wasip1)")
	}
}

// sections splits the module. Custom sections say nothing that changes what a module does, and are left out.
func (r *reader) sections() map[byte]*reader {
	found := map[byte]*reader{}
	next := 0
	for r.more() {
		id := r.byte()
		part := r.part(r.u32())
		if id == 0 {
			continue
		}
		at := bytes.IndexByte(order, id)
		if at < 0 {
			part.fail("a section of kind %d: the module uses what is newer than WebAssembly 2.0", id)
		}
		if at < next {
			part.fail("a section of kind %d is not in its place", id)
		}
		next = at + 1
		found[id] = part
	}
	return found
}

// survey reads what the functions are rewritten by, and checks what is imported and sized.
func (m *module) survey(sections map[byte]*reader) {
	if r := sections[typeSection]; r != nil {
		for range r.count() {
			if form := r.byte(); form != 0x60 {
				r.fail("type form 0x%02x is not of WebAssembly 2.0", form)
			}
			m.types = append(m.types, signature{r.valueTypes(), r.valueTypes()})
		}
		r.done()
		if len(m.types) > maxTypes {
			r.fail("%d types; at most %d are allowed", len(m.types), maxTypes)
		}
	}
	if r := sections[importSection]; r != nil {
		for range r.count() {
			from, name := r.name(), r.name()
			if kind := r.byte(); kind != 0 {
				r.fail("the module imports %q.%q, which is no function; only functions can be imported", from, name)
			}
			t := r.u32()
			m.checkType(r, t)
			if s := m.types[t]; from == importFrom && name == importName &&
				string(s.params) == string([]byte{i32, i32, i32, i32}) && string(s.results) == string([]byte{i32}) {
				m.read = m.imported
			}
			m.imported++
		}
		r.done()
	}
	if r := sections[funcSection]; r != nil {
		for range r.count() {
			t := r.u32()
			m.checkType(r, t)
			m.funcs = append(m.funcs, t)
		}
		r.done()
	}
	if r := sections[tableSection]; r != nil {
		for range r.count() {
			r.valueType()
			if least := r.limits(); least > maxTable {
				r.fail("a table of %d elements; at most %d are allowed", least, maxTable)
			}
		}
		r.done()
	}
	if r := sections[memorySection]; r != nil {
		if n := r.count(); n > 1 {
			r.fail("%d memories; one is allowed", n)
		}
	}
	if r := sections[globalSection]; r != nil {
		m.globals = r.count()
		for range m.globals {
			r.valueType()
			r.byte()
			m.constant(r)
		}
		r.done()
	}
}

func (m *module) checkType(r *reader, t uint32) {
	if t >= uint32(len(m.types)) {
		r.fail("type %d of %d", t, len(m.types))
	}
}

func (r *reader) valueTypes() []byte {
	n := r.count()
	start := r.at
	for range n {
		r.valueType()
	}
	return r.b[start:r.at]
}

func (r *reader) limits() (least uint32) {
	flag := r.byte()
	if flag > 1 {
		r.fail("the module shares its memory between threads, or has one of 64 bits; build without")
	}
	least = r.u32()
	if flag == 1 {
		r.u32()
	}
	return least
}

// constant reads an expression that initialises something.
func (m *module) constant(r *reader) {
	f := &function{module: m, in: r}
	for {
		if op := f.instruction(); op == opEnd {
			return
		}
	}
}

func (m *module) typeSection(r *reader) []byte {
	if r == nil {
		return nil
	}
	content := appendU32(nil, uint32(len(m.types)+len(m.extra)))
	rest := &reader{b: r.b}
	rest.u32()
	content = append(content, rest.b[rest.at:]...)
	for _, s := range m.extra {
		content = append(content, 0x60)
		for _, list := range [][]byte{s.params, s.results} {
			content = appendU32(content, uint32(len(list)))
			content = append(content, list...)
		}
	}
	return content
}

// funcSection is the section with one more function, refill.
func (m *module) funcSection(r *reader) []byte {
	content := appendU32(nil, uint32(len(m.funcs)+1))
	if r != nil {
		rest := &reader{b: r.b}
		rest.u32()
		content = append(content, rest.b[rest.at:]...)
	}
	return appendU32(content, m.nothing())
}

// nothing is the type of a function without parameters and results.
func (m *module) nothing() uint32 {
	for i, s := range m.types {
		if len(s.params)+len(s.results) == 0 {
			return uint32(i)
		}
	}
	const none = ^uint32(0)
	if _, ok := m.blocks[none]; !ok {
		m.blocks[none] = uint32(len(m.types) + len(m.extra))
		m.extra = append(m.extra, signature{})
	}
	return m.blocks[none]
}

func (m *module) globalSection(r *reader) []byte {
	content := appendU32(nil, m.globals+2)
	if r != nil {
		rest := &reader{b: r.b}
		rest.u32()
		content = append(content, rest.b[rest.at:]...)
	}
	return append(content, i64, 1, opI64Const, 0, opEnd, i32, 1, opI32Const, 0, opEnd)
}

func (m *module) exportSection(r *reader) []byte {
	var list []byte
	n := uint32(0)
	if r != nil {
		n = r.count()
		start := r.at
		for range n {
			if name := r.name(); name == Steps || name == Depth {
				r.fail("the module exports %q, which is the meter's name; export another one", name)
			}
			if kind, index := r.byte(), r.u32(); kind == 3 && index >= m.globals {
				r.fail("global %d of %d", index, m.globals)
			}
		}
		r.done()
		list = r.b[start:]
	}
	content := append(appendU32(nil, n+2), list...)
	for i, name := range []string{Steps, Depth} {
		content = appendU32(content, uint32(len(name)))
		content = append(content, name...)
		content = appendU32(append(content, 3), m.globals+uint32(i))
	}
	return content
}
