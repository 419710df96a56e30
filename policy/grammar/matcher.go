package grammar

import "math/bits"

// Mask is a set of token ids: bit i%64 of element i/64 is id i. It is not changed once it was handed out.
type Mask []uint64

func newMask(size int) Mask { return make(Mask, (size+63)/64) }

func (m Mask) add(id int32) { m[id>>6] |= 1 << (id & 63) }

// Has says whether an id is in the set.
func (m Mask) Has(id int32) bool {
	return id >= 0 && int(id>>6) < len(m) && m[id>>6]>>(id&63)&1 != 0
}

// Len is the number of ids in the set.
func (m Mask) Len() int {
	n := 0
	for _, w := range m {
		n += bits.OnesCount64(w)
	}
	return n
}

// Matcher follows one completion token by token. It is used by one goroutine; several may follow one automaton.
type Matcher struct {
	automaton *Automaton
	state     *state
	room      int32
	ended     bool
	allowed   Mask // what Allowed returns, nil until it is asked
}

// NewMatcher follows a completion that may have room tokens, its end included.
//
// Tokens after which the room would be too little for the shortest way to the end are not allowed, so a completion whose
// room is enough for it ends. Where no token leaves room enough, those that bring the end nearest are allowed.
func (a *Automaton) NewMatcher(room int) *Matcher {
	a.mu.Lock()
	defer a.mu.Unlock()
	return &Matcher{automaton: a, state: a.first(), room: int32(min(room, int(never)))}
}

// Allowed is the tokens that may come next: at least one until the completion has ended or its room is used up.
func (m *Matcher) Allowed() Mask {
	if m.allowed == nil {
		m.allowed = m.allow()
	}
	return m.allowed
}

func (m *Matcher) allow() Mask {
	a := m.automaton
	if m.ended || m.room < 1 || m.state == dead {
		return newMask(a.vocab.size)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.choose(m.state)
	if a.spent() {
		return newMask(a.vocab.size)
	}
	// What follows the next token has to fit behind it, and the end after that. If nothing does, it shall come near.
	limit := m.room - 2
	if !m.state.ends {
		limit = max(limit, c.near)
	}
	if a.grammar.cut || c.far <= limit {
		return c.all
	}
	some := newMask(a.vocab.size)
	for i, token := range c.tokens {
		if c.after[i] <= limit {
			some.add(token)
		}
	}
	if m.state.ends {
		some.add(a.vocab.marks.End)
	}
	return some
}

// Advance takes the next token. It returns false, and allows nothing any more, if the token was not allowed.
func (m *Matcher) Advance(token int32) bool {
	ok := m.Allowed().Has(token)
	m.allowed = nil
	if !ok {
		m.state = dead
		return false
	}
	m.room--
	a := m.automaton
	a.mu.Lock()
	defer a.mu.Unlock()
	switch marks := a.vocab.marks; token {
	case marks.End:
		m.ended = true
	case marks.Call:
		m.state = a.step(m.state, markCall)
	case marks.Args:
		m.state = a.step(m.state, markArgs)
	default:
		for _, b := range a.vocab.tok.Token(token) {
			m.state = a.step(m.state, int(b))
		}
	}
	return true
}

// Ended says that the completion has come to its end.
func (m *Matcher) Ended() bool { return m.ended }
