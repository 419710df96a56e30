package warmstart

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/policy/grammar"
)

func TestCompactKeepsWhatJSONSays(t *testing.T) {
	for text, want := range map[string]string{
		`{ "b": [1, 2.50, -1e9, {}], "a": {"c" : null, "d": [ ]} }`: `{"b":[1,2.50,-1e9,{}],"a":{"c":null,"d":[]}}`,
		`"caf\u00e9 <b> \/"`:      `"café <b> /"`,
		` true `:                  `true`,
		`[[], "\n", false]`:       `[[],"\n",false]`,
		`SELECT 1`:                `SELECT 1`,
		`{"a": 1} trailing`:       `{"a": 1} trailing`,
		`"\u2028 \\u2028 \u2029"`: "\"\u2028 \\\\u2028 \u2029\"",
		``:                        ``,
	} {
		if got := compact(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// Replies are written as the engine would write them within the agent's demand, or refused.
func TestRepliesFitTheAgentsDemands(t *testing.T) {
	f, err := newForms()
	if err != nil {
		t.Fatal(err)
	}
	tool := grammar.Tool{Name: "look", Strict: true, Parameters: []byte(`{"type":"object","properties":{"word":{"type":"string"},"n":{"type":"integer"}},"required":["word","n"],"additionalProperties":false}`)}
	schema := []byte(`{"type":"object","properties":{"good":{"type":"boolean"},"why":{"type":"string"}},"required":["good","why"],"additionalProperties":false}`)
	text := func(s string) chat.Message { return chat.Message{Role: chat.Assistant, Content: s} }
	calls := func(arguments ...string) (m chat.Message) {
		m.Role = chat.Assistant
		for _, a := range arguments {
			m.ToolCalls = append(m.ToolCalls, chat.ToolCall{Name: "look", Arguments: a})
		}
		return m
	}
	mixed := calls(`{"word":"a","n":1}`)
	mixed.Content = "so "
	for name, c := range map[string]struct {
		demand     grammar.Demand
		said, want chat.Message
		right      string // what an error says was right
	}{
		"as it is":             {grammar.Demand{Schema: schema}, text(`{"good":true,"why":"so"}`), text(`{"good":true,"why":"so"}`), ""},
		"white space":          {grammar.Demand{Schema: schema}, text("{\n  \"good\": false, \"why\": \"\\u00e9\"\n}"), text(`{"good":false,"why":"é"}`), ""},
		"another order":        {grammar.Demand{Schema: schema}, text(`{"why": "so", "good": true}`), chat.Message{}, `{\"w`},
		"a member lacks":       {grammar.Demand{Schema: schema}, text(`{"good": true}`), chat.Message{}, `{\"good\":true}`},
		"line separators":      {grammar.Demand{Schema: schema}, text(`{"good": true, "why": "\u2028"}`), text("{\"good\":true,\"why\":\"\u2028\"}"), ""},
		"long, and then wrong": {grammar.Demand{Object: true}, text(`{"x":"` + strings.Repeat("a", 500) + `"`), chat.Message{}, `"…` + strings.Repeat("a", shownTokens-2) + `\"<|end|>`},
		"no JSON":              {grammar.Demand{Object: true}, text(`good`), chat.Message{}, `g`},
		"any object":           {grammar.Demand{Object: true}, text(`{"x": [1, 2]}`), text(`{"x":[1,2]}`), ""},
		"a call":               {grammar.Demand{Calls: 1, Tools: []grammar.Tool{tool}}, calls(`{"word": "a", "n": 1}`), calls(`{"word":"a","n":1}`), ""},
		"too many calls":       {grammar.Demand{Calls: 1, Tools: []grammar.Tool{tool}}, calls(`{"word":"a","n":1}`, `{"word":"a","n":1}`), chat.Message{}, `<|call|>look<|args|>{\"word\":\"a\",\"n\":1}<|call|>`},
		"a text with the call": {grammar.Demand{Calls: 1, Tools: []grammar.Tool{tool}}, mixed, chat.Message{}, `s`},
		"a call is required":   {grammar.Demand{Calls: 1, Tools: []grammar.Tool{tool}}, text("so"), chat.Message{}, `s`},
		"strict arguments":     {grammar.Demand{Text: true, Calls: 2, Tools: []grammar.Tool{tool}}, calls(`{"word":"a","n":"1"}`), chat.Message{}, `\"n\":\"`},
		"a text is free":       {grammar.Demand{Text: true, Calls: 2, Tools: []grammar.Tool{tool}}, mixed, mixed, ""},
	} {
		g, err := grammar.Compile(c.demand)
		if err != nil {
			t.Fatal(err)
		}
		got, err := f.fit(g, c.said)
		switch {
		case c.right != "" && (!errors.Is(err, errForm) || !strings.Contains(err.Error(), c.right+`"`)):
			t.Errorf("%s: %+v, %v", name, got, err)
		case c.right == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.right == "":
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	}
}
