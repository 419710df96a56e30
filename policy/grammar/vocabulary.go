package grammar

import (
	"fmt"
	"slices"

	"github.com/lightswarm/lightswarm/policy/tokenizer"
)

// Marks are the special tokens of a chat template that a grammar is about.
type Marks struct {
	// Call comes before a tool's name and Args before its arguments; End ends the completion.
	Call, Args, End int32
}

// Vocabulary is the tokens of a policy as what they write. It is immutable and safe for concurrent use.
type Vocabulary struct {
	tok   *tokenizer.Tokenizer
	marks Marks
	size  int
	nodes []node
	texts map[string]struct{} // what tokens write, for those that are more than a byte
	most  int                 // bytes of the longest
}

// node is one of the trie of all tokens, which is stored in preorder.
type node struct {
	symbol int16
	depth  int16
	token  int32 // that ends here, -1 if none does
	skip   int32 // the next node that is not below this one
}

// NewVocabulary is the vocabulary of a tokenizer, for a model with size token ids; size is at least the tokenizer's.
// Ids that stand for no text, like special tokens other than the marks, are allowed nowhere.
func NewVocabulary(tok *tokenizer.Tokenizer, size int, marks Marks) *Vocabulary {
	if size < tok.VocabSize() {
		panic(fmt.Sprintf("grammar: NewVocabulary: %d ids for %d tokens", size, tok.VocabSize()))
	}
	v := &Vocabulary{tok: tok, marks: marks, size: size, texts: make(map[string]struct{})}
	type word struct {
		text  string
		token int32
	}
	var words []word
	for id := range int32(tok.VocabSize()) {
		if tok.IsSpecial(id) {
			continue
		}
		text := string(tok.Token(id))
		words = append(words, word{text, id})
		if len(text) > 1 {
			v.texts[text] = struct{}{}
			v.most = max(v.most, len(text))
		}
	}
	slices.SortFunc(words, func(a, b word) int {
		if a.text < b.text {
			return -1
		}
		return 1 // no two are equal
	})
	var open []int32 // the nodes on the way to the last one
	closeTo := func(depth int) {
		for len(open) > depth {
			v.nodes[open[len(open)-1]].skip = int32(len(v.nodes))
			open = open[:len(open)-1]
		}
	}
	last := ""
	for _, w := range words {
		shared := 0
		for shared < min(len(last), len(w.text)) && last[shared] == w.text[shared] {
			shared++
		}
		closeTo(shared)
		for i := shared; i < len(w.text); i++ {
			open = append(open, int32(len(v.nodes)))
			v.nodes = append(v.nodes, node{symbol: int16(w.text[i]), depth: int16(i), token: -1})
		}
		v.nodes[open[len(w.text)-1]].token = w.token
		last = w.text
	}
	closeTo(0)
	v.mark(markCall, marks.Call)
	v.mark(markArgs, marks.Args)
	return v
}

// mark adds a token that is a symbol of its own.
func (v *Vocabulary) mark(symbol int16, token int32) {
	v.nodes = append(v.nodes, node{symbol: symbol, token: token, skip: int32(len(v.nodes)) + 1})
}

// End is the token that ends a completion.
func (v *Vocabulary) End() int32 { return v.marks.End }

// Size is the number of the model's token ids.
func (v *Vocabulary) Size() int { return v.size }
