package strictoml_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lightswarm/lightswarm/strictoml"
)

type letter struct {
	To    string `toml:"to"`
	Stamp struct {
		Cents uint8 `toml:"cents"`
	} `toml:"stamp"`
	Page []struct {
		Lines []string `toml:"lines"`
	} `toml:"page"`
	Extra map[string]any `toml:"extra"`
}

func TestLinesOfFields(t *testing.T) {
	var l letter
	lines, err := strictoml.Decode([]byte(`# a letter
to = "you"
stamp.cents = 95

[[page]]
lines = [
  "one",
]
[[page]]
lines = []
[extra]
"learner-loss" = 1
`), &l)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{
		"to": 2, "stamp.cents": 3, "page[0]": 5, "page[0].lines": 6, "page[1]": 9, "page[1].lines": 10, "extra": 11,
		"extra.learner-loss": 12,
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Error(diff)
	}
	if l.To != "you" || l.Stamp.Cents != 95 || len(l.Page) != 2 {
		t.Errorf("read %+v", l)
	}
}

func TestMistakesHaveALine(t *testing.T) {
	for text, want := range map[string]struct {
		line int
		why  string
	}{
		"to = 'you'\nfrom = 'me'": {2, "there is no field from"},
		"\n[stamp]\n\ncent = 1":   {4, "there is no field stamp.cent"},
		"to = 'you'\nto = 'me'":   {2, "to"},
		"\n\nto = ":               {3, ""},
		"to = 1":                  {1, ""},
		"[stamp]\ncents = 300":    {2, ""},
	} {
		_, err := strictoml.Decode([]byte(text), &letter{})
		var wrong *strictoml.Error
		if !errors.As(err, &wrong) || wrong.Line != want.line || !strings.Contains(wrong.Why, want.why) {
			t.Errorf("%q: %v, want line %d: ...%s...", text, err, want.line, want.why)
		}
	}
}
