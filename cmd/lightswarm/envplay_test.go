package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// evil is what sets a terminal's title, begins a command in one character, and changes the direction of text.
const evil = "\x1b]0;title\a\u009b31m\u202e"

// An environment's texts cannot command the terminal.
func TestPlayedTasksAreHarmless(t *testing.T) {
	var out strings.Builder
	r := runResult{
		Split: "train", Messages: []runMessage{{"user", "one\ntwo" + evil}}, Tools: []runTool{{"t", evil, evil}},
		Calls: []runCall{{evil, evil, evil}}, Answer: evil,
	}
	p := program{out: &out}
	if err := p.print(r, func(w io.Writer) { runText(w, &r) }); err != nil {
		t.Fatal(err)
	}
	if said := out.String(); strings.ContainsAny(said, evil[:1]+"\a\u009b\u202e") || !strings.Contains(said, "  user: one\n    two\uFFFD]0;title") {
		t.Errorf("%q", said)
	}
}

// As JSON they stay what they are, in characters that are harmless.
func TestJSONIsHarmless(t *testing.T) {
	var out strings.Builder
	p := program{out: &out, json: true}
	want := evil + "\U000e0001 <|call|> \u00e9"
	if err := p.print(want, nil); err != nil {
		t.Fatal(err)
	}
	said := out.String()
	if strings.ContainsAny(said, "\x1b\a\u009b\u202e\U000e0001") || !strings.Contains(said, "<|call|> \u00e9") {
		t.Errorf("%q", said)
	}
	var got string
	if err := json.Unmarshal([]byte(said), &got); err != nil || got != want {
		t.Errorf("%q, %v", got, err)
	}
}

// An error may quote anything.
func TestErrorsAreHarmless(t *testing.T) {
	name := filepath.Join(t.TempDir(), "stderr")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	p := program{out: io.Discard, err: f}
	if code := p.run([]string{"env", "show", "no" + evil}); code != exitUsage {
		t.Errorf("exit code %d", code)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	said, err := os.ReadFile(name)
	if err != nil || strings.ContainsAny(string(said), "\x1b\a\u009b\u202e") || !strings.Contains(string(said), "called no\uFFFD]0;title") {
		t.Errorf("%q, %v", said, err)
	}
}
