package warmstart

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/policy/grammar"
	"github.com/lightswarm/lightswarm/policy/tokenizer"
)

const (
	// keptForms is how many automata are kept: agents ask for the same few forms again and again.
	keptForms = 64
	// formRoom is how many tokens a reply may have as far as its form is concerned, in bytes.
	formRoom = 1 << 20
	// shownTokens is how many tokens of a reply an error shows, of which most are bytes.
	shownTokens = 120
)

// forms knows which replies an agent's demands allow. It is safe for concurrent use.
type forms struct {
	// template is one over bytes: there is no other tokenizer yet.
	template *chat.Template
	automata *grammar.Cache
}

func newForms() (*forms, error) {
	marks := chat.Specials()
	tok, err := tokenizer.Train(slices.Values([]string(nil)), len(marks)+256, marks)
	if err != nil {
		return nil, err
	}
	template, err := chat.NewTemplate(chat.Lightswarm1, tok)
	if err != nil {
		return nil, err
	}
	var m grammar.Marks
	m.Call, m.Args, m.End = template.Marks()
	return &forms{template, grammar.NewCache(grammar.NewVocabulary(tok, tok.VocabSize(), m), keptForms)}, nil
}

// errForm says that a reply is not of the form that the agent demands of it.
var errForm = errors.New("the environment's reply has not the form that the agent demands")

// fit is a reply as the engine would write it within a grammar: JSON without white space, its strings without needless
// escapes. It fails with errForm, and says how far the reply was right.
func (f *forms) fit(g *grammar.Grammar, said chat.Message) (chat.Message, error) {
	if _, ok := f.allowed(g, said); ok {
		return said, nil
	}
	said.Content = compact(said.Content)
	said.ToolCalls = slices.Clone(said.ToolCalls)
	for i, c := range said.ToolCalls {
		said.ToolCalls[i].Arguments = compact(c.Arguments)
	}
	if right, ok := f.allowed(g, said); !ok {
		return said, fmt.Errorf("%w (its response_format, tool_choice or strict tools): it goes wrong at the end of %q", errForm, right)
	}
	return said, nil
}

// allowed says whether a grammar allows a reply, and if not, how it goes to where it is wrong: the end of what is right, and
// what comes next.
func (f *forms) allowed(g *grammar.Grammar, said chat.Message) (right string, ok bool) {
	matcher := f.automata.Automaton(g).NewMatcher(formRoom)
	tokens := f.template.RenderCompletion(said)
	for i, token := range tokens {
		if !matcher.Advance(token) {
			from, before := 0, ""
			if i+1 > shownTokens {
				from, before = i+1-shownTokens, "…"
			}
			return before + strings.ToValidUTF8(strings.Join(f.template.Pieces(tokens[from:i+1]), ""), "\uFFFD"), false
		}
	}
	return "", matcher.Ended()
}

// unescaped takes back the escapes that encoding/json writes for JavaScript's sake, and that no grammar has.
var unescaped = strings.NewReplacer(`\\`, `\\`, `\u2028`, "\u2028", `\u2029`, "\u2029")

// compact writes JSON anew, without white space, members in their order and numbers as they are. What is no JSON stays as it
// is.
func compact(text string) string {
	if !json.Valid([]byte(text)) {
		return text
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var out bytes.Buffer
	type level struct {
		object bool
		n      int // of keys and values so far
	}
	var open []level
	write := func(token json.Token) error {
		var text strings.Builder
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(token); err != nil {
			return err
		}
		_, err := unescaped.WriteString(&out, strings.TrimSuffix(text.String(), "\n"))
		return err
	}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return out.String()
		} else if err != nil {
			return text
		}
		delim, isDelim := token.(json.Delim)
		if isDelim && (delim == '}' || delim == ']') {
			open = open[:len(open)-1]
			out.WriteByte(byte(delim))
			continue
		}
		if len(open) > 0 {
			at := &open[len(open)-1]
			switch {
			case at.object && at.n%2 == 1:
				out.WriteByte(':')
			case at.n > 0:
				out.WriteByte(',')
			}
			at.n++
		}
		if isDelim {
			open = append(open, level{object: delim == '{'})
			out.WriteByte(byte(delim))
			continue
		}
		if err := write(token); err != nil {
			return text
		}
	}
}
