package grammar

import (
	"slices"
	"sync"
)

// Cache keeps the automata that were asked for last: agents send the same few schemas again and again. It is safe for
// concurrent use.
type Cache struct {
	vocabulary *Vocabulary
	limit      int

	mu   sync.Mutex
	kept []cached // guarded by mu; the most recent last
}

type cached struct {
	encoded   string
	automaton *Automaton
}

// NewCache keeps at most limit automata over a vocabulary.
func NewCache(v *Vocabulary, limit int) *Cache { return &Cache{vocabulary: v, limit: limit} }

// Vocabulary is that of the automata.
func (c *Cache) Vocabulary() *Vocabulary { return c.vocabulary }

// Automaton is a grammar's. One that remembers all that it may gives way to a new one.
func (c *Cache) Automaton(g *Grammar) *Automaton {
	a, _ := c.get(g.Bytes(), func() (*Grammar, error) { return g, nil })
	return a
}

// Parse is the automaton of a grammar that is given by its encoding. It fails with ErrGrammar.
func (c *Cache) Parse(encoded string) (*Automaton, error) {
	return c.get(encoded, func() (*Grammar, error) { return Parse(encoded) })
}

func (c *Cache) get(encoded string, parse func() (*Grammar, error)) (*Automaton, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := slices.IndexFunc(c.kept, func(k cached) bool { return k.encoded == encoded })
	var k cached
	if at >= 0 {
		k = c.kept[at]
		c.kept = slices.Delete(c.kept, at, at+1)
	}
	if k.automaton == nil || k.automaton.Full() {
		g, err := parse()
		if err != nil {
			return nil, err
		}
		k = cached{g.Bytes(), NewAutomaton(g, c.vocabulary)}
	}
	if c.kept = append(c.kept, k); len(c.kept) > c.limit {
		c.kept = slices.Delete(c.kept, 0, 1)
	}
	return k.automaton, nil
}
