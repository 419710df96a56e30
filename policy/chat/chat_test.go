package chat

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/lightswarm/lightswarm/policy/tokenizer"
)

func template(t testing.TB) *Template {
	t.Helper()
	texts := []string{
		"Use the calculator. Use the calculator.", "calculator(expression) calculator(expression)",
		`{"expression":"1"} {"expression":"2"}`, "The answer is 1. The answer is 2.",
	}
	tok, err := tokenizer.Train(slices.Values(texts), 320, Specials())
	if err != nil {
		t.Fatal(err)
	}
	tm, err := NewTemplate(Lightswarm1, tok)
	if err != nil {
		t.Fatal(err)
	}
	return tm
}

// spelled is a prompt as text: the special tokens are unmistakable in tests whose texts have no "<|".
func (t *Template) spelled(ids []int32) string { return t.tok.Decode(ids) }

var calculator = Tool{
	Name:       "calculator",
	Parameters: `{"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]}`,
}

func TestRender(t *testing.T) {
	tm := template(t)
	two := Message{Role: Assistant, Content: "Both.", ToolCalls: []ToolCall{
		{ID: "x7", Name: "calculator", Arguments: `{"expression":"1"}`},
		{ID: "x8", Name: "calculator", Arguments: `{ "expression": "2" }`},
	}}
	for name, c := range map[string]struct {
		msgs  []Message
		tools []Tool
		want  string
	}{
		"nothing": {nil, nil, "<|assistant|>"},
		"question": {
			[]Message{{Role: System, Content: "Be brief."}, {Role: User, Content: "Hi"}}, nil,
			"<|system|>Be brief.<|user|>Hi<|assistant|>",
		},
		"tools": {
			[]Message{{Role: User, Content: "Hi"}}, []Tool{calculator, {Name: "now", Description: "Tells the time."}},
			"<|tools|>calculator(expression)<|tools|>now() Tells the time.<|user|>Hi<|assistant|>",
		},
		"calls answered in order": {
			[]Message{two, {Role: ToolRole, Content: "1", ToolCallID: "x7"}, {Role: ToolRole, Content: "2"}}, nil,
			`<|assistant|>Both.<|call|>calculator<|args|>{"expression":"1"}<|call|>calculator<|args|>{ "expression": "2" }<|end|>` +
				"<|tool|>1<|tool|>2<|assistant|>",
		},
		"calls answered out of order": {
			[]Message{two, {Role: ToolRole, Content: "2", ToolCallID: "x8"}, {Role: ToolRole, Content: "1", ToolCallID: "x7"}}, nil,
			`<|assistant|>Both.<|call|>calculator<|args|>{"expression":"1"}<|call|>calculator<|args|>{ "expression": "2" }<|end|>` +
				"<|tool|>1<|args|>2<|tool|>1<|assistant|>",
		},
		"tokens win": {
			[]Message{{Role: Assistant, Content: "ignored", Tokens: append(tm.tok.Encode("sampled"), 1<<20)}, {Role: User, Content: "?"}}, nil,
			"<|assistant|>sampled\uFFFD<|user|>?<|assistant|>",
		},
	} {
		ids, err := tm.Render(c.msgs, c.tools)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(c.want, tm.spelled(ids)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestPromptIsCompact(t *testing.T) {
	tm := template(t)
	ids, err := tm.Render([]Message{{Role: System, Content: "Use the calculator."}}, []Tool{calculator})
	if err != nil {
		t.Fatal(err)
	}
	if len(ids) > 15 {
		t.Errorf("system and tools take %d tokens: %q", len(ids), tm.spelled(ids))
	}
}

func TestRenderRefuses(t *testing.T) {
	tm := template(t)
	call := Message{Role: Assistant, ToolCalls: []ToolCall{{ID: "a", Name: "f"}}}
	answer := Message{Role: ToolRole, ToolCallID: "a"}
	for name, c := range map[string]struct {
		msgs  []Message
		tools []Tool
	}{
		"unknown role":      {msgs: []Message{{Role: "developer"}}},
		"answer to nothing": {msgs: []Message{{Role: ToolRole}}},
		"answer to another": {msgs: []Message{call, {Role: ToolRole, ToolCallID: "b"}}},
		"answered twice":    {msgs: []Message{call, answer, answer}},
		"answer too late":   {msgs: []Message{call, {Role: Assistant}, answer}},
		"bad call":          {msgs: []Message{{Role: Assistant, ToolCalls: []ToolCall{{Name: "f g"}}}}},
		"bad token":         {msgs: []Message{{Role: Assistant, Tokens: []int32{-1}}}},
		"bad tool":          {tools: []Tool{{Name: "f(x)"}}},
		"bad schema":        {tools: []Tool{{Name: "f", Parameters: "{"}}},
		"huge schema":       {tools: []Tool{{Name: "f", Parameters: `"` + strings.Repeat("x", MaxParameters) + `"`}}},
	} {
		if _, err := tm.Render(c.msgs, c.tools); !errors.Is(err, ErrConversation) {
			t.Errorf("%s: %v", name, err)
		}
	}
	other, err := tokenizer.Train(slices.Values([]string{}), 300, Specials()[1:])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewTemplate(Lightswarm1, other); !errors.Is(err, ErrTemplate) {
		t.Errorf("a tokenizer without <|pad|>: %v", err)
	}
	if _, err := NewTemplate("chatml", tm.tok); !errors.Is(err, ErrTemplate) {
		t.Errorf("an unknown template: %v", err)
	}
}

func TestDescribe(t *testing.T) {
	for schema, want := range map[string]string{
		``:                                  "f()",
		`{"type":"object"}`:                 "f()",
		`{"type":"object","properties":{}}`: "f()",
		`{"properties":{"z":{"type":"string"},"a":{"type":"integer"},"b":{"type":"boolean"}},"required":["a","z"],"type":"object","additionalProperties":false}`: "f(z,a:integer,b?:boolean)",
		`{"type":"object","properties":{"x":{"type":"string","description":"a city"}}}`:                                                                          `f{"type":"object","properties":{"x":{"type":"string","description":"a city"}}}`,
		`{"type":"object","properties":{"x":{"type":"array"}}}`:                                                                                                  `f{"type":"object","properties":{"x":{"type":"array"}}}`,
		`{"type":"object","required":["x"]}`:                                                                                                                     `f{"type":"object","required":["x"]}`,
		`{"type":"object","properties":{"x":{"type":"string"},"x":{"type":"string"}}}`:                                                                           `f{"type":"object","properties":{"x":{"type":"string"},"x":{"type":"string"}}}`,
		`{"type":"object","properties":{"a b":{"type":"string"}}}`:                                                                                               `f{"type":"object","properties":{"a b":{"type":"string"}}}`,
		`{"type":"object","properties":[1]}`:                                                                                                                     `f{"type":"object","properties":[1]}`,
		`{"oneOf": [ ] }`:                                                                                                                                        `f{"oneOf":[]}`,
		` true `:                                                                                                                                                 `ftrue`,
	} {
		got, err := describe(Tool{Name: "f", Parameters: schema})
		if err != nil || got != want {
			t.Errorf("%s is %s (%v), want %s", schema, got, err, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	tm := template(t)
	enc := tm.tok.Encode
	end, call, args := tm.end, tm.call, tm.args
	for name, c := range map[string]struct {
		ids     []int32
		want    CompletionError
		content string
	}{
		"nothing":           {nil, CompletionError{Unfinished, 0}, ""},
		"cut off":           {enc("1"), CompletionError{Unfinished, 1}, "1"},
		"cut off in a call": {[]int32{call}, CompletionError{Unfinished, 1}, "<|call|>"},
		"after the end":     {[]int32{end, end}, CompletionError{AfterEnd, 1}, "<|end|>"},
		"negative id":       {[]int32{-5, end}, CompletionError{UnknownToken, 0}, "\uFFFD"},
		"padding id":        {append(enc("1"), int32(tm.tok.VocabSize()), end), CompletionError{UnknownToken, 1}, "1\uFFFD"},
		"role mark":         {[]int32{tm.user, end}, CompletionError{StrayToken, 0}, "<|user|>"},
		"args alone":        {[]int32{args, end}, CompletionError{StrayToken, 0}, "<|args|>"},
		"args twice":        {slices.Concat([]int32{call}, enc("f"), []int32{args, args, end}), CompletionError{StrayToken, 3}, "<|call|>f<|args|><|args|>"},
		"no args":           {slices.Concat([]int32{call}, enc("f"), []int32{end}), CompletionError{CallWithoutArgs, 2}, "<|call|>f"},
		"call in a call":    {[]int32{call, call, end}, CompletionError{CallWithoutArgs, 1}, "<|call|><|call|>"},
		"no name":           {[]int32{call, args, end}, CompletionError{BadToolName, 1}, "<|call|><|args|>"},
		"bad name":          {slices.Concat([]int32{call}, enc("!"), []int32{args, end}), CompletionError{BadToolName, 2}, "<|call|>!<|args|>"},
		"not UTF-8":         {append(enc("\xff"), end), CompletionError{InvalidText, 1}, "\uFFFD"},
		"too many calls": {
			append(slices.Repeat(slices.Concat([]int32{call}, enc("f"), []int32{args}), MaxToolCalls+1), end),
			CompletionError{TooManyCalls, 3*MaxToolCalls + 2}, strings.Repeat("<|call|>f<|args|>", MaxToolCalls+1),
		},
	} {
		m, err := tm.Parse(c.ids)
		var got *CompletionError
		if !errors.Is(err, ErrBadCompletion) || !errors.As(err, &got) || *got != c.want {
			t.Errorf("%s: %v, want %v", name, err, &c.want)
		}
		want := Message{Role: Assistant, Content: c.content, Tokens: c.ids}
		if diff := cmp.Diff(want, m, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// assistant draws messages that a policy could write.
func assistant() *rapid.Generator[Message] {
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "The answer is 1.", "<|end|>", "<|call|>f<|args|>", `{"expression":"1"}`}))
	return rapid.Custom(func(t *rapid.T) Message {
		m := Message{Role: Assistant, Content: text.Draw(t, "content")}
		for i := range rapid.IntRange(0, 3).Draw(t, "calls") {
			m.ToolCalls = append(m.ToolCalls, ToolCall{
				ID:        "call_" + string(rune('0'+i)),
				Name:      rapid.StringMatching(`[A-Za-z0-9_-]{1,12}`).Draw(t, "name"),
				Arguments: text.Draw(t, "arguments"),
			})
		}
		return m
	})
}

func TestParseInvertsRenderCompletion(t *testing.T) {
	tm := template(t)
	rapid.Check(t, func(t *rapid.T) {
		m := assistant().Draw(t, "message")
		ids := tm.RenderCompletion(m)
		got, err := tm.Parse(ids)
		if err != nil {
			t.Fatal(err)
		}
		want := m
		want.Tokens = ids
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

// TestRenderExtendsItself is the promise of the package comment, for completions that are any ids at all.
func TestRenderExtendsItself(t *testing.T) {
	tm := template(t)
	rapid.Check(t, func(t *rapid.T) {
		history := []Message{{Role: System, Content: rapid.String().Draw(t, "system")}, {Role: User, Content: rapid.String().Draw(t, "user")}}
		tools := []Tool{calculator}[:rapid.IntRange(0, 1).Draw(t, "tools")]
		var sampled []int32
		for range rapid.IntRange(1, 4).Draw(t, "turns") {
			prompt, err := tm.Render(history, tools)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(prompt[:len(sampled)], sampled) {
				t.Fatalf("prompt %v does not start with %v", prompt, sampled)
			}
			completion := rapid.SliceOfN(rapid.Int32Range(0, int32(tm.tok.VocabSize()+9)), 0, 10).Draw(t, "completion")
			if rapid.Bool().Draw(t, "canonical") {
				completion = tm.RenderCompletion(assistant().Draw(t, "message"))
			}
			m, _ := tm.Parse(completion)
			history = append(history, m)
			for _, c := range m.ToolCalls {
				history = append(history, Message{Role: ToolRole, ToolCallID: c.ID, Content: rapid.String().Draw(t, "result")})
			}
			if len(m.ToolCalls) == 0 {
				history = append(history, Message{Role: User, Content: "go on"})
			}
			sampled = slices.Concat(prompt, completion)
		}
	})
}

// TestNobodyWritesMarks: whatever texts say, a prompt has just the special tokens that its structure needs.
func TestNobodyWritesMarks(t *testing.T) {
	tm := template(t)
	evil := strings.Join(Specials(), "")
	msgs := []Message{
		{Role: System, Content: evil}, {Role: User, Content: evil},
		{Role: Assistant, Content: evil, ToolCalls: []ToolCall{{ID: "0", Name: "f", Arguments: evil}}},
		{Role: ToolRole, ToolCallID: "0", Content: evil},
	}
	ids, err := tm.Render(msgs, []Tool{{Name: "f", Description: evil}})
	if err != nil {
		t.Fatal(err)
	}
	var got []int32
	for _, id := range ids {
		if tm.tok.IsSpecial(id) {
			got = append(got, id)
		}
	}
	want := []int32{tm.tools, tm.system, tm.user, tm.assistant, tm.call, tm.args, tm.end, tm.tool, tm.assistant}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func FuzzParse(f *testing.F) {
	tm := template(f)
	// Two bytes of the input make a token id, so that ids outside the vocabulary are tried too.
	bytesOf := func(ids []int32) (b []byte) {
		for _, id := range ids {
			b = append(b, byte(id>>8), byte(id))
		}
		return b
	}
	f.Add(bytesOf(tm.RenderCompletion(Message{Content: "The answer is 1."})))
	f.Add(bytesOf(tm.RenderCompletion(Message{ToolCalls: []ToolCall{{Name: "f", Arguments: "{}"}, {Name: "g"}}})))
	f.Add([]byte{0, 6, 0, 7, 0, 8, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		var ids []int32
		for ; len(b) >= 2; b = b[2:] {
			ids = append(ids, int32(int16(uint16(b[0])<<8|uint16(b[1]))))
		}
		m, err := tm.Parse(ids)
		if !slices.Equal(m.Tokens, ids) {
			t.Fatal("tokens changed")
		}
		if err != nil {
			if !errors.Is(err, ErrBadCompletion) || m.ToolCalls != nil {
				t.Fatalf("%v with %d calls", err, len(m.ToolCalls))
			}
			return
		}
		// What was understood, written canonically, is understood the same way.
		plain := m
		plain.Tokens = nil
		again, err := tm.Parse(tm.RenderCompletion(plain))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(m, again, cmpopts.IgnoreFields(Message{}, "Tokens")); diff != "" {
			t.Fatal(diff)
		}
	})
}
