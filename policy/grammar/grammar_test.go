package grammar

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/policy/tokenizer"
)

// vocabulary is that of a tokenizer that has seen some JSON; the model has ids that the tokenizer lacks.
func vocabulary(t testing.TB, tokens int) (*Vocabulary, *chat.Template) {
	t.Helper()
	texts := []string{
		strings.Repeat(`{"name":"value","list":[1,2,3],"other":{"a":true,"b":null}},"name":"`, 3),
		strings.Repeat(`{"expression":"12*3"} answer false -0.5e10 "explanation":"the answer is é 你好"`, 3),
	}
	tok, err := tokenizer.Train(slices.Values(texts), tokens, chat.Specials())
	if err != nil {
		t.Fatal(err)
	}
	template, err := chat.NewTemplate(chat.Lightswarm1, tok)
	if err != nil {
		t.Fatal(err)
	}
	call, args, end := template.Marks()
	marks := Marks{Call: call, Args: args, End: end}
	return NewVocabulary(tok, tok.VocabSize()+7, marks), template
}

// sample draws a completion uniformly from what is allowed.
func sample(t interface{ Fatalf(string, ...any) }, a *Automaton, room int, random *rand.Rand) (tokens []int32, ended bool) {
	m := a.NewMatcher(room)
	for range room {
		var allowed []int32
		mask := m.Allowed()
		for id := range int32(a.vocab.Size()) {
			if mask.Has(id) {
				allowed = append(allowed, id)
			}
		}
		if len(allowed) == 0 || len(allowed) != mask.Len() {
			t.Fatalf("%d tokens are allowed, %d by the count, after %v", len(allowed), mask.Len(), tokens)
		}
		token := allowed[random.IntN(len(allowed))]
		tokens = append(tokens, token)
		if !m.Advance(token) {
			t.Fatalf("token %d was allowed and is not", token)
		}
		if m.Ended() {
			return tokens, true
		}
	}
	return tokens, false
}

// shortest is the room that a grammar needs for sure.
func shortest(a *Automaton) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return int(a.first().distance) + 1
}

func compile(t testing.TB, d Demand) *Grammar {
	t.Helper()
	g, err := Compile(d)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse(g.Bytes())
	if err != nil || again.Bytes() != g.Bytes() || !slices.Equal(again.code, g.code) {
		t.Fatalf("the encoding does not come back: %v", err)
	}
	return g
}

// accepts says whether a text, written in single bytes, is a completion of the grammar.
func accepts(a *Automaton, text string) bool {
	m := a.NewMatcher(1 << 20)
	for _, id := range a.vocab.tok.Encode(text) {
		if !m.Advance(id) {
			return false
		}
	}
	return m.Advance(a.vocab.marks.End)
}

func TestSchemas(t *testing.T) {
	v, _ := vocabulary(t, 330)
	for name, c := range map[string]struct {
		schema string
		yes    []string
		no     []string
	}{
		"anything":   {`true`, []string{`null`, `{"a":[1,{}]}`, `"x"`, `-1.5e-3`, `[]`}, []string{``, ` 1`, `[1, 2]`, `01`, `"\u0041"`, `nul`, `1e+5`, `{"a":}`, "\"\n\""}},
		"object":     {`{"type":"object"}`, []string{`{}`, `{"a":1,"a":{"b":[]}}`}, []string{`[]`, `{"a"}`, `{,}`}},
		"closed":     {`{"type":"object","properties":{},"additionalProperties":false}`, []string{`{}`}, []string{`{"a":1}`}},
		"required":   {`{"type":"object","properties":{"b":{"type":"integer"},"a":{"type":"string"}},"required":["a","b"]}`, []string{`{"b":-12,"a":"\u001f\n"}`, `{"b":0,"a":"é\\"}`}, []string{`{"a":"","b":1}`, `{"b":1}`, `{"b":1.0,"a":""}`, `{"b":-0,"a":""}`, `{"b":01,"a":""}`}},
		"optional":   {`{"properties":{"a":{"type":"null"},"b":{"type":"null"},"c":{"type":"null"}}}`, []string{`{}`, `{"a":null}`, `{"b":null}`, `{"c":null}`, `{"a":null,"c":null}`, `{"a":null,"b":null,"c":null}`, `{"b":null,"c":null}`}, []string{`{"a":null,}`, `{,"b":null}`, `{"c":null,"a":null}`, `{"d":null}`}},
		"mixed":      {`{"properties":{"a":{"type":"null"},"b":{"type":"null"},"c":{"type":"null"}},"required":["b"]}`, []string{`{"b":null}`, `{"a":null,"b":null}`, `{"b":null,"c":null}`}, []string{`{}`, `{"a":null}`, `{"c":null}`, `{"a":null,"c":null}`}},
		"undeclared": {`{"type":"object","required":["x"],"additionalProperties":{"type":"boolean"}}`, []string{`{"x":true}`}, []string{`{}`, `{"x":1}`}},
		"map":        {`{"type":"object","additionalProperties":{"type":"integer"}}`, []string{`{}`, `{"k":1,"l":2}`}, []string{`{"k":"1"}`}},
		"enum":       {`{"enum":["a","ab",1,12,null,{"x":[1, 2]}]}`, []string{`"a"`, `"ab"`, `1`, `12`, `null`, `{"x":[1,2]}`}, []string{`"abc"`, `2`, `{"x":[1, 2]}`}},
		"typed enum": {`{"type":["string","null"],"enum":["a",1,null]}`, []string{`"a"`, `null`}, []string{`1`}},
		"const":      {`{"const":"q\"\u0007"}`, []string{`"q\"\u0007"`}, []string{`"q"`}},
		"list":       {`{"type":"array","items":{"type":"boolean"},"minItems":1,"maxItems":3}`, []string{`[true]`, `[true,false,true]`}, []string{`[]`, `[true,]`, `[true,true,true,true]`, `[1]`}},
		"open list":  {`{"type":"array","minItems":2}`, []string{`[1,2]`, `[1,2,{},"x"]`}, []string{`[1]`}},
		"no items":   {`{"type":"array","maxItems":0}`, []string{`[]`}, []string{`[1]`}},
		"string":     {`{"type":"string","minLength":1,"maxLength":2}`, []string{`"é"`, `"\n你"`}, []string{`""`, `"abc"`}},
		"long":       {`{"type":"string","minLength":2}`, []string{`"ab"`, `"abcdefgh"`}, []string{`"a"`}},
		"range":      {`{"type":"integer","minimum":-2,"maximum":11}`, []string{`-2`, `0`, `11`, `1`}, []string{`-3`, `12`, `-`, ``}},
		"positive":   {`{"type":"integer","minimum":1}`, []string{`1`, `90`}, []string{`0`, `-1`}},
		"nullable":   {`{"type":["integer","null"]}`, []string{`1`, `null`}, []string{`"x"`}},
		"any of":     {`{"anyOf":[{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]},{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}]}`, []string{`{"a":1}`, `{"a":"1"}`}, []string{`{"a":null}`}},
		"one of all": {`{"allOf":[{"$ref":"#/$defs/x~1y"}],"$defs":{"x/y":{"type":"null"}}}`, []string{`null`}, []string{`1`}},
		"recursion":  {`{"$ref":"#/$defs/list","$defs":{"list":{"type":"object","properties":{"next":{"anyOf":[{"$ref":"#/$defs/list"},{"type":"null"}]}},"required":["next"],"additionalProperties":false}}}`, []string{`{"next":null}`, `{"next":{"next":{"next":null}}}`}, []string{`{}`, `{"next":1}`}},
		"pattern":    {`{"pattern":"^[a-c\"\\\\]+-\\d{2,3}(x|é|\\/)?$"}`, []string{`"abc-12"`, `"\"\\-123x"`, `"a-12é"`, `"a-12/"`}, []string{`"-12"`, `"a-1"`, `"a-1234"`, `"a-12xx"`, `"d-12"`, `""`}},
		"found":      {`{"type":"string","pattern":"x.y"}`, []string{`"xay"`, `"aax\"yé"`}, []string{`"xy"`, `"x\ny"`}},
		"not space":  {`{"pattern":"^\\S[^\\n]?$"}`, []string{`"a"`, `"a "`}, []string{`" "`, `"\u000b"`, `"a\n"`}},
		"few":        {`{"pattern":"^[\\né]$"}`, []string{`"\n"`, `"é"`}, []string{`"n"`}},
		"empty":      {`{"pattern":""}`, []string{`""`, `"é"`}, []string{`1`}},
		"nested":     {`{"pattern":"^(a*)*$"}`, []string{`""`, `"aaa"`}, []string{`"b"`}},
		"in a list":  {`{"anyOf":[{"type":"array","items":{"$ref":"#/anyOf/1"}},{"type":"null"}]}`, []string{`null`, `[null]`}, []string{`[[]]`}},
		"escaped":    {`{"anyOf":[{"$ref":"#/$defs/list%5Bof%20x%5D"},{"$ref":"#/$defs/50%"}],"$defs":{"list[of x]":{"type":"null"},"50%":{"const":1}}}`, []string{`null`, `1`}, []string{`2`}},
		"root":       {`{"type":"array","items":{"$ref":"#"}}`, []string{`[]`, `[[],[[]]]`}, []string{`[1]`}},
	} {
		a := NewAutomaton(compile(t, Demand{Schema: []byte(c.schema)}), v)
		for _, text := range c.yes {
			if !accepts(a, text) {
				t.Errorf("%s: %s is refused", name, text)
			}
		}
		for _, text := range c.no {
			if accepts(a, text) {
				t.Errorf("%s: %s is accepted", name, text)
			}
		}
	}
}

func TestSchemasThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ schema, keyword string }{
		"look ahead":     {`{"type":"object","properties":{"a":{"type":"string","pattern":"^(?=x)x"}}}`, "pattern"},
		"anchor inside":  {`{"pattern":"a|^b"}`, "pattern"},
		"word boundary":  {`{"pattern":"\\bx"}`, "pattern"},
		"other dialect":  {`{"pattern":"\\Ax"}`, "pattern"},
		"class by name":  {`{"pattern":"^[[:alpha:]]$"}`, "pattern"},
		"ignored case":   {`{"pattern":"(?i)x"}`, "pattern"},
		"broken":         {`{"pattern":"("}`, "pattern"},
		"only far away":  {`{"pattern":"^[а-я]$"}`, "pattern"},
		"and a length":   {`{"pattern":"x","minLength":1}`, "pattern"},
		"endless counts": {`{"pattern":"^(((a{100}){10}b){10}){10}$"}`, "pattern"},
		"one of":         {`{"oneOf":[{"type":"string"}]}`, "oneOf"},
		"unknown":        {`{"x-order":1}`, "x-order"},
		"bounds":         {`{"type":"number","minimum":1}`, "minimum"},
		"wide range":     {`{"type":"integer","minimum":1,"maximum":100000}`, "maximum"},
		"beside":         {`{"anyOf":[{"type":"string"}],"type":"string"}`, "type"},
		"two of all":     {`{"allOf":[true,true]}`, "allOf"},
		"tuple":          {`{"type":"array","items":[true]}`, "items"},
		"nothing":        {`false`, ""},
		"no end":         {`{"$ref":"#/$defs/a","$defs":{"a":{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"required":["a"]}}}`, ""},
		"itself":         {`{"$ref":"#"}`, ""},
		"itself or null": {`{"anyOf":[{"$ref":"#"},{"type":"null"}]}`, ""},
		"elsewhere":      {`{"$ref":"http://x"}`, "$ref"},
		"large":          {`{"type":"array","items":{"type":"string","minLength":1000,"maxLength":1000},"enum":["` + strings.Repeat("x", 20000) + `"]}`, "items"},
		"too many ways":  {manyOptional(1100), ""},
	} {
		_, err := Compile(Demand{Schema: []byte(c.schema)})
		var refused *UnsupportedError
		if !errors.As(err, &refused) || refused.Keyword != c.keyword {
			t.Errorf("%s: %v, want a refusal of %q", name, err, c.keyword)
		}
	}
	for _, schema := range []string{
		``, `{`, `1`, `{} {}`, `{"type":"int"}`, `{"type":[]}`, `{"enum":[]}`, `{"enum":1}`, `{"$ref":"#/a"}`, `{"$ref":"#/$ref/a"}`, `{"anyOf":[{"$ref":"#/anyOf/1"}]}`,
		`{"required":[1]}`, `{"anyOf":[]}`, `{"type":"array","minItems":-1}`, `{"a":1,"a":1}`, strings.Repeat("[", 100) + strings.Repeat("]", 100),
	} {
		if _, err := Compile(Demand{Object: true, Schema: []byte(schema)}); schema != "" && !errors.Is(err, ErrSchema) {
			t.Errorf("%s: %v", schema, err)
		}
	}
	for _, d := range []Demand{{}, {Calls: 1}, {Calls: 1, Tools: make([]Tool, MaxTools+1)}} {
		if _, err := Compile(d); err == nil {
			t.Errorf("%+v is compiled", d)
		}
	}
}

func manyOptional(n int) string {
	properties := map[string]any{}
	for i := range n {
		properties[string(rune('a'+i%26))+strings.Repeat("x", i/26)] = true
	}
	b, err := json.Marshal(map[string]any{"properties": properties})
	if err != nil {
		panic(err)
	}
	return string(b)
}

// Whatever a policy that knows nothing samples within its room is valid, and nothing is cut that has the room it needs.
func TestSamplesAreValid(t *testing.T) {
	small, _ := vocabulary(t, 270)
	large, _ := vocabulary(t, 420)
	rapid.Check(t, func(t *rapid.T) {
		schema := drawSchema(t)
		text, err := json.Marshal(schema)
		if err != nil {
			t.Fatal(err)
		}
		g, err := Compile(Demand{Schema: text})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if again, err := Parse(g.Bytes()); err != nil || again.Bytes() != g.Bytes() {
			t.Fatalf("the encoding does not come back: %v", err)
		}
		v := rapid.SampledFrom([]*Vocabulary{small, large}).Draw(t, "vocabulary")
		a := NewAutomaton(g, v)
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		need := shortest(a)
		for range 3 {
			room := rapid.IntRange(1, 2*need+40).Draw(t, "room")
			tokens, ended := sample(t, a, room, random)
			if !ended {
				if room >= need {
					t.Fatalf("%s: cut after %d tokens, %d are enough: %q", text, room, need, v.tok.Decode(tokens))
				}
				continue
			}
			said := v.tok.Decode(tokens[:len(tokens)-1])
			var value any
			if err := json.Unmarshal([]byte(said), &value); err != nil {
				t.Fatalf("%s: %q: %v", text, said, err)
			}
			if !validates(schema.(map[string]any), schema, value) {
				t.Fatalf("%s does not describe %s", text, said)
			}
		}
	})
}

// What is sampled by a pattern matches it.
func TestPatterns(t *testing.T) {
	v, _ := vocabulary(t, 330)
	for _, pattern := range []string{
		`^\d{4}-\d{2}-\d{2}$`, `^[\w.+-]+@[\w-]+\.[a-z]{2,}$`, `^(?:yes|no|maybe)$`, `^[^,]*,[^,]*$`, `^#?([a-f0-9]{6}|[a-f0-9]{3})$`,
		`ab|cd`, `^x`, `y$`, `\S+\s\S+`, `^(a?b)*c{0,2}$`, `["\\\t]`, `^\$\{\w+\}$`, `^.{3,5}$`, ``,
	} {
		schema, err := json.Marshal(map[string]any{"type": "string", "pattern": pattern})
		if err != nil {
			t.Fatal(err)
		}
		a := NewAutomaton(compile(t, Demand{Schema: schema}), v)
		matcher := regexp.MustCompile(pattern)
		random := rand.New(rand.NewPCG(3, 3))
		for i := range 60 {
			tokens, ended := sample(t, a, shortest(a)+i, random)
			var said string
			if err := json.Unmarshal([]byte(v.tok.Decode(tokens[:len(tokens)-1])), &said); err != nil || !ended {
				t.Fatalf("%s: %q: %v", pattern, v.tok.Decode(tokens), err)
			}
			if !matcher.MatchString(said) {
				t.Errorf("%s does not match %q", pattern, said)
			}
		}
	}
}

// What is allowed does not depend on what the automaton was asked before.
func TestMasksArePure(t *testing.T) {
	v, _ := vocabulary(t, 330)
	rapid.Check(t, func(t *rapid.T) {
		text, err := json.Marshal(drawSchema(t))
		if err != nil {
			t.Fatal(err)
		}
		g, err := Compile(Demand{Schema: text})
		if err != nil {
			t.Fatal(err)
		}
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		used := NewAutomaton(g, v)
		for range 4 {
			sample(t, used, 60, random)
		}
		tokens, _ := sample(t, used, 50, random)
		one, other := used.NewMatcher(50), NewAutomaton(g, v).NewMatcher(50)
		for _, token := range tokens {
			if !slices.Equal(one.Allowed(), other.Allowed()) {
				t.Fatalf("%s: masks differ", text)
			}
			one.Advance(token)
			other.Advance(token)
		}
	})
}

func TestCallsOfTools(t *testing.T) {
	v, template := vocabulary(t, 330)
	tools := []Tool{
		{Name: "calculator", Parameters: []byte(`{"type":"object","properties":{"expression":{"type":"string"}},"required":["expression"]}`), Strict: true},
		{Name: "calculator_2", Parameters: []byte(`{"type":"object","properties":{"x":{"oneOf":[true]}}}`)},
		{Name: "now"},
	}
	for name, d := range map[string]Demand{
		"required":       {Calls: 3, Tools: tools},
		"named":          {Calls: 1, Tools: tools[:1]},
		"calls or JSON":  {Calls: 2, Tools: tools, Object: true},
		"text and calls": {Text: true, Calls: 2, Tools: tools},
		"bad schema":     {Calls: 1, Tools: []Tool{{Name: "f", Parameters: []byte(`{"type":"int"}`)}}},
	} {
		a := NewAutomaton(compile(t, d), v)
		random := rand.New(rand.NewPCG(1, 2))
		calls := 0
		for i := range 200 {
			tokens, ended := sample(t, a, shortest(a)+i%30, random)
			if !ended {
				if d.Text {
					continue
				}
				t.Fatalf("%s: cut: %q", name, v.tok.Decode(tokens))
			}
			m, err := template.Parse(tokens)
			if err != nil {
				t.Fatalf("%s: %q: %v", name, v.tok.Decode(tokens), err)
			}
			calls += len(m.ToolCalls)
			if len(m.ToolCalls) > d.Calls || len(m.ToolCalls) == 0 && !d.Text && !d.Object {
				t.Fatalf("%s: %d calls", name, len(m.ToolCalls))
			}
			for _, c := range m.ToolCalls {
				var arguments map[string]any
				if err := json.Unmarshal([]byte(c.Arguments), &arguments); err != nil {
					t.Fatalf("%s: %q: %v", name, c.Arguments, err)
				}
				if _, is := arguments["expression"].(string); c.Name == "calculator" && (!is || len(arguments) != 1) || c.Name == "now" && len(arguments) > 0 {
					t.Fatalf("%s: %+v", name, c)
				}
			}
		}
		if calls == 0 {
			t.Errorf("%s: no tool was ever called", name)
		}
	}
	tools[1].Strict = true
	var refused *UnsupportedError
	if _, err := Compile(Demand{Calls: 1, Tools: tools}); !errors.As(err, &refused) || refused.Keyword != "oneOf" {
		t.Errorf("a strict tool with oneOf: %v", err)
	}
}

func TestCache(t *testing.T) {
	v, _ := vocabulary(t, 280)
	c := NewCache(v, 3)
	first := compile(t, Demand{Object: true})
	automaton := c.Automaton(first)
	for i := range 9 {
		c.Automaton(compile(t, Demand{Schema: fmt.Appendf(nil, `{"const":%d}`, i)}))
		if got, err := c.Parse(first.Bytes()); err != nil || got != automaton {
			t.Fatalf("a grammar that is in use was given up (%v)", err)
		}
	}
	if len(c.kept) != 3 {
		t.Errorf("%d automata are kept", len(c.kept))
	}
	if _, err := c.Parse("x"); !errors.Is(err, ErrGrammar) || len(c.kept) != 3 {
		t.Errorf("what is no grammar: %v", err)
	}
	automaton.kept = maxKept
	if c.Automaton(first) == automaton {
		t.Error("an automaton that is full is kept")
	}
}

func TestWorkIsBounded(t *testing.T) {
	v, _ := vocabulary(t, 330)
	a := NewAutomaton(compile(t, Demand{Object: true}), v)
	a.Bound(100000)
	if _, ended := sample(t, a, 40, rand.New(rand.NewPCG(1, 1))); !ended || a.Spent() || a.Work() == 0 {
		t.Fatalf("an object takes %d steps", a.Work())
	}
	a = NewAutomaton(compile(t, Demand{Object: true}), v)
	a.Bound(1)
	if m := a.NewMatcher(40); m.Advance(v.tok.Encode("{")[0]) || !a.Spent() || m.Allowed().Len() != 0 {
		t.Error("work goes on behind its bound")
	}
}

func TestMatcherRefuses(t *testing.T) {
	v, _ := vocabulary(t, 330)
	a := NewAutomaton(compile(t, Demand{Object: true}), v)
	for name, token := range map[string]int32{
		"end": v.End(), "call": v.marks.Call, "padding": int32(v.Size() - 1), "outside": int32(v.Size() + 100), "negative": -1,
		"other text": v.tok.Encode("x")[0],
	} {
		m := a.NewMatcher(10)
		if m.Advance(token) || m.Allowed().Len() != 0 || m.Advance(v.tok.Encode("{")[0]) {
			t.Errorf("%s is taken", name)
		}
	}
	m := a.NewMatcher(100)
	for _, id := range append(v.tok.Encode("{}"), v.End()) {
		if !m.Advance(id) {
			t.Fatal("an empty object is refused")
		}
	}
	if !m.Ended() || m.Allowed().Len() != 0 || m.Advance(v.End()) {
		t.Error("the completion goes on after its end")
	}
}
