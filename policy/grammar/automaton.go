package grammar

import (
	"encoding/binary"
	"slices"
	"sync"
)

const (
	// maxThreads bounds the ways in which one text can be understood so far; of more, those that end soonest are kept.
	maxThreads = 256
	// maxStates bounds the states that an automaton remembers, and maxKept their threads, the tokens that they allow and the
	// words of their masks, in all. Others are worked out each time.
	maxStates = 1 << 14
	maxKept   = 1 << 20
)

// Automaton is a grammar over a vocabulary: which tokens are allowed next, worked out as it is asked and remembered.
// It is safe for concurrent use.
type Automaton struct {
	grammar   *Grammar
	vocab     *Vocabulary
	distances distances
	kinds     [symbols]uint16 // symbols of one kind lead to the same states everywhere
	kindCount int

	mu     sync.Mutex
	frames map[frameKey]*frame // guarded by mu, like everything below
	states map[string]*state
	start  *state
	kept   int
	work   int
	bound  int // of work; 0 for none
	// Memory of step, close and measure:
	key   []byte
	next  []thread
	seen  map[thread]struct{}
	open  []thread
	stack []*state
}

// frame is a call that has not returned.
type frame struct {
	key    frameKey
	number uint32 // of the frame within its automaton
	depth  int    // how many more calls may be open below
	rest   int32  // the distance from its return to the completion's end
}

type frameKey struct {
	back   int32 // where it returns to
	parent *frame
}

// thread is one way to understand a text so far: an instruction, and the calls around it, nil for none.
type thread struct {
	pc    int32
	frame *frame
}

// state is what a text so far means: all threads, each before an instruction that takes a symbol.
type state struct {
	threads  []thread
	ends     bool  // the completion may end here
	distance int32 // to the end, in tokens
	next     []*state
	choice   *choice
}

// dead is the state of a text that is not allowed.
var dead = &state{distance: never}

// choice is what may come after a state.
type choice struct {
	all    Mask
	tokens []int32
	after  []int32 // the distance to the end after each token
	near   int32   // the least of them
	far    int32   // the largest
}

// NewAutomaton joins a grammar and a vocabulary.
func NewAutomaton(g *Grammar, v *Vocabulary) *Automaton {
	a := &Automaton{
		grammar: g, vocab: v, distances: newDistances(g, v),
		frames: make(map[frameKey]*frame), states: make(map[string]*state), seen: make(map[thread]struct{}),
	}
	a.sort()
	a.work = 8 * len(a.distances) * len(g.code) // the time of so many steps
	return a
}

// sort finds the kinds of symbols.
func (a *Automaton) sort() {
	var single [symbols]bool
	for _, i := range a.grammar.code {
		if i.op == opByte || i.op == opMark {
			single[i.arg] = true
		}
	}
	type signature struct {
		classes uint64
		single  int
	}
	numbers := make(map[signature]uint16)
	for s := range symbols {
		sig := signature{single: -1}
		if single[s] {
			sig.single = s
		}
		for i, c := range a.grammar.classes {
			if c.has(s) {
				sig.classes |= 1 << i
			}
		}
		if _, ok := numbers[sig]; !ok {
			numbers[sig] = uint16(len(numbers))
		}
		a.kinds[s] = numbers[sig]
	}
	a.kindCount = len(numbers)
}

// Work counts the steps that the automaton has made: what it and its answers have cost so far.
func (a *Automaton) Work() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.work
}

// Bound lets the automaton make at most so many more steps, roughly. From then on it allows nothing, and says so. What
// comes from outside is bounded; without a bound, one that was made for it could take minutes for a token.
func (a *Automaton) Bound(steps int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.bound = a.work + steps
}

// Spent says that the bound is reached.
func (a *Automaton) Spent() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.spent()
}

// spent is Spent. a.mu is held.
func (a *Automaton) spent() bool { return a.bound > 0 && a.work > a.bound }

// Full says that the automaton remembers as much as it may: a new one is quicker.
func (a *Automaton) Full() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.states) == maxStates || a.kept >= maxKept
}

// first is the state before a completion. a.mu is held.
func (a *Automaton) first() *state {
	if a.start == nil {
		a.next = a.next[:0]
		clear(a.seen)
		ends := a.close(thread{})
		a.start = a.intern(ends)
	}
	return a.start
}

// step is the state after one more symbol. a.mu is held.
func (a *Automaton) step(s *state, symbol int) *state {
	kind := a.kinds[symbol]
	if s == dead || a.spent() {
		return dead
	}
	if s.next != nil && s.next[kind] != nil {
		return s.next[kind]
	}
	a.next = a.next[:0]
	clear(a.seen)
	ends := false
	for _, t := range s.threads {
		if a.takes(t.pc, symbol) {
			ends = a.close(thread{t.pc + 1, t.frame}) || ends
		}
	}
	a.work += len(s.threads)
	to := a.intern(ends)
	if len(a.states) < maxStates && a.kept < maxKept {
		if s.next == nil {
			s.next = make([]*state, a.kindCount)
		}
		s.next[kind] = to
	}
	return to
}

func (a *Automaton) takes(pc int32, symbol int) bool {
	i := a.grammar.code[pc]
	if i.op == opClass {
		return a.grammar.classes[i.arg].has(symbol)
	}
	return int(i.arg) == symbol
}

// close adds to a.next all threads that a thread leads to before a symbol is taken, in order, without those that
// cannot come to an end within the depth. It says whether the completion may end. a.mu is held.
func (a *Automaton) close(from thread) (ends bool) {
	a.open = append(a.open[:0], from)
	for len(a.open) > 0 {
		t := a.open[len(a.open)-1]
		a.open = a.open[:len(a.open)-1]
		if _, was := a.seen[t]; was || a.distance(t) >= never {
			continue
		}
		a.seen[t] = struct{}{}
		a.work++
		switch i := a.grammar.code[t.pc]; i.op {
		case opReturn:
			if t.frame == nil {
				ends = true
			} else {
				a.open = append(a.open, thread{t.frame.key.back, t.frame.key.parent})
			}
		case opJump:
			a.open = append(a.open, thread{i.arg, t.frame})
		case opSplit:
			a.open = append(a.open, thread{i.arg, t.frame}, thread{t.pc + 1, t.frame})
		case opCall:
			if a.depth(t.frame) > 0 {
				a.open = append(a.open, thread{i.arg, a.call(t)})
			}
		default:
			a.next = append(a.next, t)
		}
	}
	return ends
}

func (a *Automaton) depth(f *frame) int {
	if f == nil {
		return maxDepth
	}
	return f.depth
}

// distance is how many tokens, at most, a thread is from the completion's end.
func (a *Automaton) distance(t thread) int32 {
	d := a.distances.at(a.depth(t.frame), t.pc)
	if t.frame != nil {
		d += t.frame.rest
	}
	return d
}

// call is the frame of the call at a thread. a.mu is held.
func (a *Automaton) call(t thread) *frame {
	key := frameKey{t.pc + 1, t.frame}
	f := a.frames[key]
	if f == nil {
		f = &frame{key, uint32(len(a.frames)), a.depth(t.frame) - 1, a.distance(thread{t.pc + 1, t.frame})}
		a.frames[key] = f
	}
	return f
}

// intern makes a state of a.next. a.mu is held.
func (a *Automaton) intern(ends bool) *state {
	if len(a.next) == 0 && !ends {
		return dead
	}
	slices.SortStableFunc(a.next, func(x, y thread) int { return int(a.distance(x) - a.distance(y)) })
	a.next = a.next[:min(len(a.next), maxThreads)]
	a.key = a.key[:0]
	if ends {
		a.key = append(a.key, 1)
	}
	for _, t := range a.next {
		number := uint32(0)
		if t.frame != nil {
			number = t.frame.number + 1
		}
		a.key = binary.LittleEndian.AppendUint32(a.key, uint32(t.pc))
		a.key = binary.LittleEndian.AppendUint32(a.key, number)
	}
	if s, ok := a.states[string(a.key)]; ok {
		return s
	}
	s := &state{threads: slices.Clone(a.next), ends: ends}
	if !ends {
		s.distance = a.distance(a.next[0])
	}
	if len(a.states) < maxStates && a.kept < maxKept {
		a.kept += len(s.threads)
		a.states[string(a.key)] = s
	}
	return s
}

// choose works out what may come after a state. a.mu is held.
func (a *Automaton) choose(s *state) *choice {
	if s.choice != nil {
		return s.choice
	}
	c := &choice{all: newMask(a.vocab.size), near: never}
	// a.stack holds the states after each byte of the token on the way.
	a.stack = append(a.stack[:0], s)
	for at := int32(0); int(at) < len(a.vocab.nodes); {
		n := a.vocab.nodes[at]
		to := a.step(a.stack[n.depth], int(n.symbol))
		a.work++
		if to == dead {
			at = n.skip
			continue
		}
		a.stack = append(a.stack[:n.depth+1], to)
		if n.token >= 0 {
			c.tokens = append(c.tokens, n.token)
			c.after = append(c.after, to.distance)
			c.all.add(n.token)
			c.near, c.far = min(c.near, to.distance), max(c.far, to.distance)
		}
		at++
	}
	if s.ends {
		c.all.add(a.vocab.marks.End)
	}
	if a.kept < maxKept && !a.spent() {
		a.kept += len(c.tokens) + len(c.all)
		s.choice = c
	}
	return c
}
