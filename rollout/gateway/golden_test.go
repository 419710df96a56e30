package gateway

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lightswarm/lightswarm/policy/chat"
)

var update = flag.Bool("update", false, "write the golden files of testdata")

// golden compares got with the file testdata/name.golden.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// told is an answer to a request in a dialect, as a body for people and as events.
func told(t *testing.T, d dialect, r *request, a *answer) []byte {
	t.Helper()
	body, err := d.encode(r, a)
	if err != nil {
		t.Fatal(err)
	}
	events, err := d.stream(r, a)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, body, "", "  "); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	out.WriteString("\n\n")
	for _, e := range events {
		fmt.Fprintf(&out, "event: %s\ndata: %s\n", e.Name, e.Data)
	}
	return out.Bytes()
}

// weather is a tool with a schema that a prompt has to keep as it is.
var weather = chat.Tool{
	Name: "weather", Description: "The weather somewhere.",
	Parameters: `{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`,
}

// answered is an answer of one choice, with a token for each piece.
func answered(m chat.Message, why finish, pieces ...string) *answer {
	m.Role = chat.Assistant
	c := choice{Message: m, Finish: why, Pieces: pieces}
	for i := range pieces {
		c.Tokens = append(c.Tokens, int32(i))
		c.LogProbs = append(c.LogProbs, -0.5*float32(i))
	}
	return &answer{
		ID: "r1-2", Created: 1_750_000_000, Model: modelName, Choices: []choice{c},
		Usage: usage{Prompt: 20, Completion: len(pieces)},
	}
}

// replies are answers of each kind, by the name of their golden file.
var replies = map[string]*answer{
	"text":    answered(chat.Message{Content: "Hi & <hello>"}, finishStop, "Hi", " & <hello>", "<|end|>"),
	"silence": answered(chat.Message{}, finishStop, "<|end|>"),
	"cut":     answered(chat.Message{Content: "Hi"}, finishLength, "Hi"),
	"calls": answered(chat.Message{Content: "Let me see.", ToolCalls: []chat.ToolCall{
		{ID: "call_2_0", Name: "weather", Arguments: `{"city": "Oslo"}`},
		{ID: "call_2_1", Name: "time", Arguments: ""},
	}}, finishToolCalls, "Let", " me", " see.", "…"),
	"broken": answered(chat.Message{Content: "Let me see.", ToolCalls: []chat.ToolCall{
		{ID: "call_2_0", Name: "weather", Arguments: `{"city": "Os`},
	}}, finishToolCalls, "Let", " me", " see.", "…"),
}

// refusal is what a decoder says against a body.
func refusal(t *testing.T, d dialect, body string) (param, code string) {
	t.Helper()
	r, err := d.decode([]byte(body))
	e, ok := err.(*apiError)
	if !ok || e.Status != 400 || e.Type != invalidRequest || e.Message == "" {
		t.Fatalf("decode %s: %+v, %v; want a refusal", body, r, err)
	}
	return e.Param, e.Code
}

// decodeFuzz is what must hold of any body in any dialect.
func decodeFuzz(t *testing.T, d dialect, body []byte) {
	r, err := d.decode(body)
	if err != nil {
		e, ok := err.(*apiError)
		if !ok || e.Status != 400 || r != nil {
			t.Fatalf("decode: %+v, %#v", r, err)
		}
		if !json.Valid(d.fault(e)) {
			t.Fatalf("fault: %s", d.fault(e))
		}
		return
	}
	if r.Samples < 1 || r.MaxTokens < 0 {
		t.Fatalf("request %+v", r)
	}
	if err := r.resolve(func(string) (chat.Message, bool) { return replies["calls"].Choices[0].Message, true }); err == nil {
		for _, p := range r.Recalled {
			if m := r.Messages[p.Message]; m.Role != chat.Assistant || p.Call >= 0 && m.ToolCalls[p.Call].Name == "" {
				t.Fatalf("recalled %+v is not in %+v", p, m)
			}
		}
	}
	for name, a := range replies {
		if body, err := d.encode(r, a); err != nil || !json.Valid(body) {
			t.Fatalf("encode %s: %s, %v", name, body, err)
		}
		if _, err := d.stream(r, a); err != nil {
			t.Fatalf("stream %s: %v", name, err)
		}
	}
}
