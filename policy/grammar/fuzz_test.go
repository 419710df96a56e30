package grammar

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"testing"
)

// Whatever is a grammar at all can be brought to an end.
func FuzzParse(f *testing.F) {
	for _, schema := range []string{
		`{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}`, `{"enum":["a","b",3]}`,
		`{"type":"array","items":{"$ref":"#"}}`,
	} {
		f.Add([]byte(compile(f, Demand{Schema: []byte(schema)}).Bytes()))
	}
	f.Add([]byte(compile(f, Demand{Text: true, Calls: 2, Tools: []Tool{{Name: "now"}}}).Bytes()))
	v, _ := vocabulary(f, 280)
	f.Fuzz(func(t *testing.T, encoded []byte) {
		g, err := Parse(string(encoded))
		if err != nil {
			if !errors.Is(err, ErrGrammar) {
				t.Fatal(err)
			}
			return
		}
		if g.Bytes() != string(encoded) {
			t.Fatal("it is not canonical")
		}
		a := NewAutomaton(g, v)
		room := shortest(a)
		if room > 200 {
			return
		}
		if _, ended := sample(t, a, room, rand.New(rand.NewPCG(1, 1))); !ended && !g.cut {
			t.Fatal("a completion is cut")
		}
	})
}

// Whatever text is taken for a schema, what is sampled by it is JSON.
func FuzzCompile(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"type":["string","null"],"maxLength":3},"b":{"enum":[1,"x"]}},"required":["b"]}`)
	f.Add(`{"$ref":"#/$defs/l","$defs":{"l":{"type":"array","items":{"anyOf":[{"$ref":"#/$defs/l"},{"const":null}]},"minItems":1}}}`)
	f.Add(`{"type":"integer","minimum":-3,"maximum":30}`)
	f.Add(`{"additionalProperties":{"type":"number"}}`)
	v, _ := vocabulary(f, 280)
	f.Fuzz(func(t *testing.T, schema string) {
		g, err := Compile(Demand{Schema: []byte(schema)})
		if err != nil {
			var refused *UnsupportedError
			if !errors.As(err, &refused) && !errors.Is(err, ErrSchema) {
				t.Fatal(err)
			}
			return
		}
		a := NewAutomaton(g, v)
		room := shortest(a) + 5
		if room > 200 {
			return
		}
		tokens, ended := sample(t, a, room, rand.New(rand.NewPCG(1, 1)))
		if !ended {
			t.Fatal("a completion is cut")
		}
		if said := v.tok.Decode(tokens[:len(tokens)-1]); !json.Valid([]byte(said)) {
			t.Fatalf("%q is no JSON", said)
		}
	})
}
