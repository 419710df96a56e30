package learner

import (
	"fmt"

	"github.com/lightswarm/lightswarm/learner/row"
	"github.com/lightswarm/lightswarm/policy/grammar"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

const (
	// keptGrammars is how many grammars are remembered at a time; a group's calls rarely have more.
	keptGrammars = 4
	// maxGrammarWork bounds the steps of following one bundle's grammars, at 20 to 60 ns each: a second or two. What one
	// schema takes is a thousandth of it.
	maxGrammarWork = 1 << 25
)

// grammars checks the completions of one bundle against their grammars.
type grammars struct {
	cache *grammar.Cache
	work  int
	// counted is how much of each automaton's work is in work.
	counted map[*grammar.Automaton]int
}

func newGrammars(v *grammar.Vocabulary) *grammars {
	return &grammars{cache: grammar.NewCache(v, keptGrammars), counted: make(map[*grammar.Automaton]int)}
}

// check judges a call whose tokens are known to be in range.
func (g *grammars) check(c *bundle.Call, room int) Verdict {
	if c.Grammar == "" {
		return Verdict{Reason: Admitted}
	}
	a, err := g.cache.Parse(c.Grammar)
	if err != nil {
		return Verdict{WrongGrammar, err.Error()}
	}
	g.count(a)
	a.Bound(max(1, maxGrammarWork-g.work))
	defer g.count(a)
	m := a.NewMatcher(room)
	for i, token := range c.Completion {
		if !m.Advance(token) {
			if a.Spent() {
				return Verdict{WrongGrammar, "following the grammars takes too much work"}
			}
			return Verdict{WrongGrammar, fmt.Sprintf("token %d of the completion is %d, which the grammar does not allow there", i, token)}
		}
	}
	return Verdict{Reason: Admitted}
}

// count adds what an automaton has done since it was counted last.
func (g *grammars) count(a *grammar.Automaton) {
	work := a.Work()
	g.work += work - g.counted[a]
	g.counted[a] = work
}

// allowed is what each trained token of a row was sampled from: nil for the whole vocabulary, or if that is so for all.
func allowed(cache *grammar.Cache, r *row.Row) ([][]uint64, error) {
	if len(r.Grammars) == 0 {
		return nil, nil
	}
	sets := make([][]uint64, len(r.Positions))
	for _, g := range r.Grammars {
		a, err := cache.Parse(g.Encoded)
		if err != nil {
			return nil, err
		}
		m := a.NewMatcher(g.Room)
		for i := g.From; i < g.From+g.Tokens; i++ {
			sets[i] = m.Allowed()
			m.Advance(r.Tokens[r.Positions[i]])
		}
	}
	return sets, nil
}
