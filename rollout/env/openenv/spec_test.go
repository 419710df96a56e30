package openenv

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// FuzzDecodeSpec: whatever a package has as its Spec, reading it returns, and what is accepted encodes to what is accepted.
func FuzzDecodeSpec(f *testing.F) {
	for _, s := range []*Spec{testSpec(), walkSpec(), {Server: "x", Reward: RewardLast, ServerTools: true, Reset: map[string]any{"n": 3, "deep": map[string]any{"a": []any{1.5, "x"}}}, Components: []string{"state.a"}}} {
		raw, err := s.Encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, err := DecodeSpec(raw)
		if err != nil {
			return
		}
		again, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeSpec(again); err != nil {
			t.Errorf("%s: %v", again, err)
		}
	})
}

// What is wrong with a Spec is said of the field.
func TestSpecCheck(t *testing.T) {
	object := map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{}}}
	for want, change := range map[string]func(*Spec){
		"server must say":                     func(s *Spec) { s.Server = " " },
		"server has 5000 bytes":               func(s *Spec) { s.Server = strings.Repeat("x", 5000) },
		"reset must not have seed":            func(s *Spec) { s.Reset = map[string]any{"seed": 1} },
		`reward is "mean"; it must be "sum"`:  func(s *Spec) { s.Reward = "mean" },
		" needs answer, tool or server_tools": func(s *Spec) { s.Answer = nil },
		`observe has "a..b"`:                  func(s *Spec) { s.Observe = []string{"a..b"} },
		`observe has "a.a.a.a.a.a.a.a.a"`:     func(s *Spec) { s.Observe = []string{"a.a.a.a.a.a.a.a.a"} },
		`observe has "a.b", which "a" has`:    func(s *Spec) { s.Observe = []string{"a.b", "ab", "a"} },
		`observe has "a" twice`:               func(s *Spec) { s.Observe = []string{"a", "a"} },
		"observe has 65 names":                func(s *Spec) { s.Observe = slices.Repeat([]string{"a"}, 65) },
		"components has 1000 names":           func(s *Spec) { s.Components = slices.Repeat([]string{"a"}, 1000) },
		"components has \"yyyy":               func(s *Spec) { s.Components = []string{strings.Repeat("y", 200)} },
		"tool is there 65 times":              func(s *Spec) { s.Tools = make([]Tool, 65) },
		`tool[0].name is "a b"`:               func(s *Spec) { s.Tools = []Tool{{Name: "a b"}} },
		"tool[1].name must differ":            func(s *Spec) { s.Tools = []Tool{{Name: "a"}, {Name: "a"}} },
		"tool[0].parameters must have type":   func(s *Spec) { s.Tools = []Tool{{Name: "a", Parameters: map[string]any{"type": "string"}}} },
		"tool[0].parameters cannot be understood: json": func(s *Spec) {
			s.Tools = []Tool{{Name: "a", Parameters: map[string]any{"type": "object", "properties": 3}}}
		},
		"tool[0].parameters cannot be understood: \"a\" has type \"int\"": func(s *Spec) {
			s.Tools = []Tool{{Name: "x", Parameters: map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{"type": "int"}}}}}
		},
		"tool[0].parameters cannot be understood: \"a\" is required": func(s *Spec) {
			s.Tools = []Tool{{Name: "x", Parameters: map[string]any{"type": "object", "required": []string{"a"}}}}
		},
		"tool[0].parameters have": func(s *Spec) {
			s.Tools = []Tool{{Name: "a", Parameters: map[string]any{"x": strings.Repeat("x", 70_000)}}}
		},
		"tool[0].action must not have \"a\"":     func(s *Spec) { s.Tools = []Tool{{Name: "a", Parameters: object, Action: map[string]any{"a": 1}}} },
		"answer.field must name":                 func(s *Spec) { s.Answer = &Answer{} },
		"answer.tool has 2000 bytes":             func(s *Spec) { s.Answer.Tool = strings.Repeat("x", 2000) },
		"answer.action must not have \"answer\"": func(s *Spec) { s.Answer.Action = map[string]any{"answer": 1} },
		" has 300":                               func(s *Spec) { s.Reset = map[string]any{"x": strings.Repeat("x", 300_000)} },
		" has a number that JSON does not: json": func(s *Spec) { s.Reset = map[string]any{"x": json.Number("x")} },
	} {
		s := testSpec()
		change(s)
		field, why := s.Check()
		if got := fmt.Sprintf("%s %s", field, why); !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q…", got, want)
		}
		if _, err := s.Encode(); err == nil {
			t.Errorf("%s: it can be encoded", want)
		}
	}
	for _, raw := range []string{"", "{}", `{"server":"x","reward":"sum","answer":{"field":"a"}} 3`, `{"server":"x","reward":"sum","answer":{"field":"a"},"new":1}`, strings.Repeat(" ", MaxSpecBytes+1)} {
		if _, err := DecodeSpec([]byte(raw)); err == nil {
			t.Errorf("%.40s is accepted", raw)
		}
	}
}
