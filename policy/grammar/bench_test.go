package grammar

import (
	"strings"
	"testing"
)

const answerSchema = `{"type":"object","properties":{"explanation":{"type":"string"},"steps":{"type":"array","items":{"type":"object",
"properties":{"expression":{"type":"string"},"result":{"type":"number"}},"required":["expression","result"],"additionalProperties":false}},
"answer":{"type":"integer"}},"required":["explanation","steps","answer"],"additionalProperties":false}`

const answerText = `{"explanation":"Ann has 12 boxes of 3 pens and buys 5, so there are 12*3+5.","steps":[{"expression":"12*3","result":36},
{"expression":"36+5","result":41}],"answer":41}`

// What masks cost for each token: known, where other completions have been through the same states, which is what nearly
// every token of a running network costs; new, on an automaton that has to work everything out.
func BenchmarkMask(b *testing.B) {
	v, _ := vocabulary(b, 450)
	tokens := append(v.tok.Encode(strings.ReplaceAll(answerText, "\n", "")), v.End())
	follow := func(b *testing.B, a *Automaton) {
		m := a.NewMatcher(1000)
		for _, token := range tokens {
			m.Allowed()
			if !m.Advance(token) {
				b.Fatal("the text is not allowed")
			}
		}
	}
	for name, d := range map[string]Demand{"any": {Object: true}, "schema": {Schema: []byte(answerSchema)}} {
		g := compile(b, d)
		perToken := func(b *testing.B) {
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(tokens)), "ns/token")
		}
		b.Run(name+"/known", func(b *testing.B) {
			a := NewAutomaton(g, v)
			for b.Loop() {
				follow(b, a)
			}
			perToken(b)
		})
		b.Run(name+"/new", func(b *testing.B) {
			for b.Loop() {
				follow(b, NewAutomaton(g, v))
			}
			perToken(b)
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		compile(b, Demand{Schema: []byte(answerSchema)})
	}
}

// The slowest grammar that Parse takes: what a peer can make a reader do with one.
func BenchmarkSlowestGrammar(b *testing.B) {
	v, _ := vocabulary(b, 450)
	text := strings.Repeat("x", 7500)
	g := compile(b, Demand{Schema: []byte(`{"anyOf":[{"const":"` + text + `"},{"type":"array","items":{"$ref":"#"}},
		{"type":"object","additionalProperties":{"$ref":"#"}}]}`)})
	for b.Loop() {
		g, err := Parse(g.Bytes())
		if err != nil {
			b.Fatal(err)
		}
		NewAutomaton(g, v)
	}
	b.ReportMetric(float64(NewAutomaton(g, v).Work()), "work")
}
