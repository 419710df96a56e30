package grammar

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// Bounds of a grammar. A grammar that is over one is refused, by Compile and by Parse.
const (
	// MaxBytes bounds a grammar's encoding.
	MaxBytes = 16 << 10
	// maxInstructions bounds its program.
	maxInstructions = 1 << 14
	// maxClasses bounds the sets of bytes that it tells apart.
	maxClasses = 64
	// maxReach bounds how many instructions lie between one symbol and all that may be the next.
	maxReach = 1 << 10
	// maxDepth bounds how deeply rules call one another, and with it how deeply JSON of any form nests.
	maxDepth = 20
)

// ErrGrammar says that bytes are no grammar.
var ErrGrammar = errors.New("bad grammar")

// Symbols are bytes, and behind them the marks of the chat template.
const (
	markCall = 256 + iota
	markArgs
	symbols
)

// op is what an instruction does.
type op uint8

const (
	opReturn op = iota // ends the rule, or the completion
	opByte             // takes the byte arg
	opClass            // takes a byte of the class arg
	opMark             // takes the symbol arg
	opJump             // goes on at arg
	opSplit            // goes on behind it, or at arg
	opCall             // runs the rule at arg, then goes on behind it
)

type instruction struct {
	op  op
	arg int32
}

// takes says that the instruction consumes a symbol.
func (i instruction) takes() bool { return i.op == opByte || i.op == opClass || i.op == opMark }

// class is a set of bytes: ranges that ascend, with gaps between them.
type class []byteRange

type byteRange struct{ low, high byte }

func (c class) has(b int) bool {
	for _, r := range c {
		if b >= int(r.low) && b <= int(r.high) {
			return true
		}
	}
	return false
}

// Grammar is the set of the completions that are allowed. It is immutable and safe for concurrent use.
type Grammar struct {
	cut     bool // a completion may be cut: no way to its end is kept open
	classes []class
	code    []instruction
	encoded string
}

// Bytes is the grammar's canonical encoding, which Parse reads: equal programs have equal bytes.
func (g *Grammar) Bytes() string { return g.encoded }

// version is the first byte of an encoding. Another one means something else by the same bytes.
const version = 1

// The encoding is the version; 1 if a completion may be cut, else 0; then as unsigned varints the number of classes, for
// each the number of ranges and each range as its two bytes; the number of instructions; then the instructions, each one
// byte for what it does and its argument as a varint, if it has one. Bytes that follow one another are one entry: opByte,
// how many, the bytes.
func encode(cut bool, classes []class, code []instruction) string {
	out := []byte{version, 0}
	if cut {
		out[1] = 1
	}
	put := func(n int) { out = binary.AppendUvarint(out, uint64(n)) }
	put(len(classes))
	for _, c := range classes {
		put(len(c))
		for _, r := range c {
			out = append(out, r.low, r.high)
		}
	}
	put(len(code))
	for at := 0; at < len(code); at++ {
		i := code[at]
		out = append(out, byte(i.op))
		switch i.op {
		case opReturn:
		case opByte:
			end := at + 1
			for end < len(code) && code[end].op == opByte {
				end++
			}
			put(end - at)
			for _, literal := range code[at:end] {
				out = append(out, byte(literal.arg))
			}
			at = end - 1
		default:
			put(int(i.arg))
		}
	}
	return string(out)
}

// Parse reads a grammar. It fails with ErrGrammar for anything but what Bytes gives: of what it returns every
// completion can be brought to an end, in bounded memory.
func Parse(encoded string) (*Grammar, error) {
	if len(encoded) > MaxBytes {
		return nil, fmt.Errorf("%w: it has %d bytes, at most %d", ErrGrammar, len(encoded), MaxBytes)
	}
	d := decoder{rest: []byte(encoded)}
	if d.byte() != version {
		return nil, fmt.Errorf("%w: its version is unknown to this version of lightswarm", ErrGrammar)
	}
	cut := d.number(1) == 1
	classes := make([]class, d.number(maxClasses))
	for i := range classes {
		for range d.number(128) {
			classes[i] = append(classes[i], byteRange{d.byte(), d.byte()})
		}
	}
	length := d.number(maxInstructions)
	var code []instruction
	for len(code) < length && !d.failed {
		switch o := op(d.byte()); o {
		case opReturn:
			code = append(code, instruction{op: o})
		case opByte:
			for range d.number(length - len(code)) {
				code = append(code, instruction{o, int32(d.byte())})
			}
		case opClass:
			code = append(code, instruction{o, int32(d.number(len(classes) - 1))})
		case opMark:
			code = append(code, instruction{o, int32(d.number(symbols - 1))})
		case opJump, opSplit, opCall:
			code = append(code, instruction{o, int32(d.number(length - 1))})
		default:
			d.failed = true
		}
	}
	if d.failed || len(d.rest) > 0 {
		return nil, fmt.Errorf("%w: it is cut, or has something that makes no sense", ErrGrammar)
	}
	return assemble(cut, classes, code, encoded)
}

// assemble makes a grammar of its parts. encoded is what they were read from, "" if they are new.
func assemble(cut bool, classes []class, code []instruction, encoded string) (*Grammar, error) {
	g := &Grammar{cut, classes, code, encode(cut, classes, code)}
	switch {
	case len(g.encoded) > MaxBytes || len(code) > maxInstructions || len(classes) > maxClasses:
		return nil, fmt.Errorf("%w: it is too large", ErrGrammar)
	case encoded != "" && encoded != g.encoded:
		return nil, fmt.Errorf("%w: it is not in its canonical form", ErrGrammar)
	}
	if err := g.check(); err != nil {
		return nil, err
	}
	return g, nil
}

// check refuses programs that run off their end, that do not take a symbol where they have to, that have too many ways
// to go on, or that no completion satisfies.
func (g *Grammar) check() error {
	for i, c := range g.classes {
		for j, r := range c {
			if r.low > r.high || j > 0 && int(r.low) <= int(c[j-1].high)+1 {
				return fmt.Errorf("%w: class %d is not a set of ranges in order", ErrGrammar, i)
			}
		}
		if len(c) == 0 {
			return fmt.Errorf("%w: class %d is empty", ErrGrammar, i)
		}
	}
	n := len(g.code)
	if n == 0 || g.code[n-1].op != opReturn && g.code[n-1].op != opJump {
		return fmt.Errorf("%w: it runs off its end", ErrGrammar)
	}
	for _, i := range g.code {
		if i.op == opMark && i.arg < markCall {
			return fmt.Errorf("%w: a byte is written as a mark", ErrGrammar)
		}
	}
	r := reach{grammar: g, seen: make([]int32, n)}
	checked := make(map[int32]bool) // rules
	for at, i := range g.code {
		// Ways begin where a symbol was taken or a rule has ended.
		if begins := at == 0 || g.code[at-1].takes() || g.code[at-1].op == opCall; begins && !r.walk(int32(at)) {
			return fmt.Errorf("%w: it has more than %d ways to go on", ErrGrammar, maxReach)
		}
		if i.op != opCall || checked[i.arg] {
			continue
		}
		checked[i.arg] = true
		// Rules that can end, or call themselves, before they have taken anything would never get on.
		if !r.walk(i.arg) || r.returned || slices.Contains(r.called, i.arg) {
			return fmt.Errorf("%w: a rule can take nothing", ErrGrammar)
		}
	}
	if newDistances(g, nil).at(maxDepth, 0) == never {
		return fmt.Errorf("%w: no completion satisfies it", ErrGrammar)
	}
	return nil
}

// reach finds the instructions that can run before the next symbol is taken. It follows calls, not returns.
type reach struct {
	grammar  *Grammar
	seen     []int32 // by instruction: the last walk that came by
	walks    int32
	stack    []int32
	returned bool    // a return can be reached
	called   []int32 // the rules that are called
}

// walk starts at an instruction. It returns false if there are more than maxReach.
func (r *reach) walk(from int32) bool {
	r.walks++
	r.returned, r.called = false, r.called[:0]
	r.stack = append(r.stack[:0], from)
	for count := 0; len(r.stack) > 0; {
		at := r.stack[len(r.stack)-1]
		r.stack = r.stack[:len(r.stack)-1]
		if r.seen[at] == r.walks {
			continue
		}
		r.seen[at] = r.walks
		if count++; count > maxReach {
			return false
		}
		switch i := r.grammar.code[at]; i.op {
		case opReturn:
			r.returned = true
		case opJump:
			r.stack = append(r.stack, i.arg)
		case opSplit:
			r.stack = append(r.stack, i.arg, at+1)
		case opCall:
			r.called = append(r.called, i.arg)
			r.stack = append(r.stack, i.arg)
		}
	}
	return true
}

// decoder reads an encoding. The first failure sticks.
type decoder struct {
	rest   []byte
	failed bool
}

func (d *decoder) byte() byte {
	if len(d.rest) == 0 {
		d.failed = true
		return 0
	}
	b := d.rest[0]
	d.rest = d.rest[1:]
	return b
}

// number reads a number of at most limit.
func (d *decoder) number(limit int) int {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 || limit < 0 || v > uint64(limit) || n > 1 && d.rest[n-1] == 0 {
		d.failed, d.rest = true, nil
		return 0
	}
	d.rest = d.rest[n:]
	return int(v)
}
