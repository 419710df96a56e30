package grammar

import (
	"maps"
	"slices"
	"strconv"
)

// program is a grammar in the making.
type program struct {
	cut     bool
	code    []instruction
	classes []class
	// rules are the rules that are called, by name; waiting those that are not written yet, calls where they are called.
	rules   map[string]int32
	waiting []rule
	calls   map[int32]string
	err     error // the first thing that was wrong
}

type rule struct {
	name  string
	write func()
}

func newProgram() *program {
	return &program{rules: make(map[string]int32), calls: make(map[int32]string)}
}

// finish writes the rules that wait and makes a grammar of all. What is no grammar then asks for too much.
func (p *program) finish() (*Grammar, error) {
	p.emit(opReturn, 0)
	for len(p.waiting) > 0 {
		r := p.waiting[0]
		p.waiting = p.waiting[1:]
		p.rules[r.name] = p.here()
		r.write()
		p.emit(opReturn, 0)
	}
	for at, name := range p.calls {
		p.code[at].arg = p.rules[name]
	}
	if p.err != nil {
		return nil, p.err
	}
	g, err := assemble(p.cut, p.classes, p.code, "")
	if err != nil {
		return nil, &UnsupportedError{Why: err.Error()}
	}
	return g, nil
}

func (p *program) here() int32 { return int32(len(p.code)) }

// emit appends an instruction and returns its place.
func (p *program) emit(o op, arg int32) int32 {
	// What is far too much is not kept; assemble refuses it.
	if len(p.code) > 2*maxInstructions {
		return int32(len(p.code) - 1)
	}
	p.code = append(p.code, instruction{o, arg})
	return p.here() - 1
}

// full says that the program is refused anyway, so that nobody goes on writing.
func (p *program) full() bool { return len(p.code) > maxInstructions }

func (p *program) text(s string) {
	for i := range len(s) {
		p.emit(opByte, int32(s[i]))
	}
}

// class takes a byte of some ranges, which are in order.
func (p *program) class(ranges ...byteRange) {
	if len(ranges) == 1 && ranges[0].low == ranges[0].high {
		p.emit(opByte, int32(ranges[0].low))
		return
	}
	at := slices.IndexFunc(p.classes, func(c class) bool { return slices.Equal(c, ranges) })
	if at < 0 {
		at = len(p.classes)
		p.classes = append(p.classes, ranges)
	}
	p.emit(opClass, int32(at))
}

// call calls the rule of a name; write writes it if it is new.
func (p *program) call(name string, write func()) {
	if _, known := p.rules[name]; !known {
		p.rules[name] = -1
		p.waiting = append(p.waiting, rule{name, write})
	}
	p.calls[p.emit(opCall, 0)] = name
}

// fresh is a name that no rule has.
func (p *program) fresh() string { return "rule " + strconv.Itoa(len(p.rules)) }

// choice takes one of several ways.
func (p *program) choice(ways ...func()) {
	var ends []int32
	for i, way := range ways {
		if i == len(ways)-1 {
			way()
			break
		}
		split := p.emit(opSplit, 0)
		way()
		ends = append(ends, p.emit(opJump, 0))
		p.code[split].arg = p.here()
	}
	for _, end := range ends {
		p.code[end].arg = p.here()
	}
}

// optional takes a way or none.
func (p *program) optional(way func()) {
	split := p.emit(opSplit, 0)
	way()
	p.code[split].arg = p.here()
}

// many takes a way any number of times.
func (p *program) many(way func()) {
	split := p.emit(opSplit, 0)
	way()
	p.emit(opJump, split)
	p.code[split].arg = p.here()
}

// upTo takes a way at most n times.
func (p *program) upTo(n int, way func()) {
	var splits []int32
	for range n {
		if p.full() {
			break
		}
		splits = append(splits, p.emit(opSplit, 0))
		way()
	}
	for _, split := range splits {
		p.code[split].arg = p.here()
	}
}

// oneOf takes one of some texts, of which what starts alike is written once.
func (p *program) oneOf(texts []string) {
	texts = slices.Compact(slices.Sorted(slices.Values(texts)))
	for len(texts) > 1 && shared(texts) > 0 {
		n := shared(texts)
		p.text(texts[0][:n])
		for i := range texts {
			texts[i] = texts[i][n:]
		}
	}
	switch {
	case len(texts) == 1:
		p.text(texts[0])
		return
	case texts[0] == "":
		p.optional(func() { p.oneOf(texts[1:]) })
		return
	}
	byFirst := make(map[byte][]string)
	for _, t := range texts {
		byFirst[t[0]] = append(byFirst[t[0]], t)
	}
	var ways []func()
	for _, first := range slices.Sorted(maps.Keys(byFirst)) {
		ways = append(ways, func() { p.oneOf(byFirst[first]) })
	}
	p.choice(ways...)
}

// shared is how many bytes all texts, which are in order, start with.
func shared(texts []string) int {
	first, last := texts[0], texts[len(texts)-1]
	n := 0
	for n < min(len(first), len(last)) && first[n] == last[n] {
		n++
	}
	return n
}
