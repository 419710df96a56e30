package gateway

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/rollout/agent"
)

func TestVisible(t *testing.T) {
	both := callsTools(`{"a":1}`, `{"a":2}`)
	both.Content = "Two."
	renamed := func(n int) chat.Message {
		m := chat.Message{Role: chat.Assistant, Content: "Two."}
		for i, c := range both.ToolCalls[:n] {
			c.ID = []string{"call_7_0", "call_7_1"}[i]
			m.ToolCalls = append(m.ToolCalls, c)
		}
		return m
	}
	for name, c := range map[string]struct {
		request request
		says    chat.Message
		err     error
		want    chat.Message
		finish  finish
		tokens  int
		whole   bool
	}{
		"all of a text":           {says: says("yes"), want: says("yes"), finish: finishStop, tokens: 4, whole: true},
		"all calls":               {says: both, want: renamed(2), finish: finishToolCalls, tokens: len("Two.") + 2*len("calculator{'a':1}") + 5, whole: true},
		"one call":                {request: request{SingleCall: true}, says: both, want: renamed(1), finish: finishToolCalls, tokens: len("Two.") + 2*len("calculator{'a':1}") + 5},
		"no call":                 {request: request{Choice: toolChoice{Kind: chooseNone}}, says: callsTools("{}"), want: says("<call>calculator<args>{}"), finish: finishStop, tokens: 15, whole: true},
		"cut by the network":      {says: says("on and"), err: agent.ErrCut, want: says("on and"), finish: finishLength, tokens: 7, whole: true},
		"cut by the agent":        {request: request{MaxTokens: 2}, says: says("on and"), want: says("on"), finish: finishLength, tokens: 2},
		"cut in a call":           {request: request{MaxTokens: 6}, says: both, want: says("Two.<call>c"), finish: finishLength, tokens: 6},
		"cut in a letter":         {request: request{MaxTokens: 2}, says: says("aä"), want: says("a\uFFFD"), finish: finishLength, tokens: 2},
		"not cut":                 {request: request{MaxTokens: 4}, says: says("yes"), want: says("yes"), finish: finishStop, tokens: 4, whole: true},
		"stopped":                 {request: request{Stop: []string{"x", "s", "es"}}, says: says("yes"), want: says("y"), finish: finishStop, tokens: 3},
		"stopped by the first":    {request: request{Stop: []string{"es and", "e"}}, says: says("yes and"), want: says("y"), finish: finishStop, tokens: 2},
		"stopped and cut":         {request: request{Stop: []string{"e", "es"}, MaxTokens: 2}, says: says("yes"), want: says("y"), finish: finishStop, tokens: 2},
		"stopped at once":         {request: request{Stop: []string{"yes"}}, says: says("yes"), want: says(""), finish: finishStop, tokens: 3},
		"stopped before a call":   {request: request{Stop: []string{"o"}}, says: both, want: says("Tw"), finish: finishStop, tokens: 3},
		"not stopped in a call":   {request: request{Stop: []string{"calc"}}, says: both, want: renamed(2), finish: finishToolCalls, tokens: len("Two.") + 2*len("calculator{'a':1}") + 5, whole: true},
		"stopped before cut":      {request: request{Stop: []string{"n"}, MaxTokens: 3}, says: says("on and"), want: says("o"), finish: finishStop, tokens: 2},
		"cut before stopped":      {request: request{Stop: []string{"and"}, MaxTokens: 4}, says: says("on and"), want: says("on a"), finish: finishLength, tokens: 4},
		"stopped by what is left": {request: request{Stop: []string{"o", "on"}, MaxTokens: 1}, says: says("on and"), want: says(""), finish: finishStop, tokens: 1},
		"an empty stop is none":   {request: request{Stop: []string{""}}, says: says("yes"), want: says("yes"), finish: finishStop, tokens: 4, whole: true},
		"stopped though cut":      {request: request{Stop: []string{"and"}}, says: says("on and"), err: agent.ErrCut, want: says("on "), finish: finishStop, tokens: 6},
		"a malformed text is one": {says: says("<call>"), err: agent.ErrMalformed, want: says("<call>"), finish: finishStop, tokens: 7, whole: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, whole := visible(&c.request, newReply(c.says, 7), c.err)
			if diff := cmp.Diff(c.want, got.Message); diff != "" {
				t.Error(diff)
			}
			if got.Finish != c.finish || len(got.Tokens) != c.tokens || whole != c.whole {
				t.Errorf("finish %d, %d tokens, whole %v; want %d, %d, %v", got.Finish, len(got.Tokens), whole, c.finish, c.tokens, c.whole)
			}
			if len(got.LogProbs) != c.tokens || len(got.Pieces) != c.tokens {
				t.Errorf("%d tokens, %d log-probs, %d pieces", c.tokens, len(got.LogProbs), len(got.Pieces))
			}
		})
	}
}

// Whatever is asked for, what is seen begins what was written, and has no stop text.
func TestVisibleIsAPrefix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[abä]{0,12}`).Draw(t, "text")
		q := &request{
			Stop:      rapid.SliceOfN(rapid.StringMatching(`[abä]{0,3}`), 0, 3).Draw(t, "stop"),
			MaxTokens: rapid.IntRange(0, 14).Draw(t, "max"),
		}
		c, whole := visible(q, newReply(says(text), 0), nil)
		seen := strings.TrimRight(c.Message.Content, "\uFFFD")
		if !strings.HasPrefix(text, seen) || whole && seen != text || !utf8.ValidString(c.Message.Content) {
			t.Fatalf("%q of %q, whole %v", c.Message.Content, text, whole)
		}
		for _, stop := range q.Stop {
			if stop != "" && strings.Contains(seen, stop) {
				t.Fatalf("%q has %q", seen, stop)
			}
		}
		if q.MaxTokens > 0 && len(c.Tokens) > q.MaxTokens {
			t.Fatalf("%d tokens, at most %d", len(c.Tokens), q.MaxTokens)
		}
	})
}

func TestUnmet(t *testing.T) {
	text := func(s string) choice { return choice{Message: says(s), Finish: finishStop} }
	call := choice{Message: callsTools("{}"), Finish: finishToolCalls}
	required, named := request{Choice: toolChoice{Kind: chooseRequired}}, request{Choice: toolChoice{chooseNamed, "calculator"}}
	object, schema := request{Format: format{Kind: formatObject}}, request{Format: format{Kind: formatSchema, Schema: json.RawMessage(`{"type":"integer"}`)}}
	for name, c := range map[string]struct {
		request request
		choice  choice
		param   string
	}{
		"nothing asked":      {request{}, text("x"), ""},
		"a call":             {required, call, ""},
		"no call":            {required, text("x"), "tool_choice"},
		"cut":                {required, choice{Message: says("x"), Finish: finishLength}, ""},
		"the tool":           {named, call, ""},
		"no tool":            {named, text("x"), "tool_choice"},
		"another tool":       {request{Choice: toolChoice{chooseNamed, "clock"}}, call, "tool_choice"},
		"an object":          {object, text(` {"a":1} `), ""},
		"a list":             {object, text(`[1]`), "response_format"},
		"no JSON":            {object, text(`{"a":`), "response_format"},
		"a call before JSON": {object, call, ""},
		"a value":            {schema, text(`7`), ""},
		"another value":      {schema, text(`"7"`), "response_format"},
		"no value":           {schema, text(`seven`), "response_format"},
	} {
		fault := unmet(&c.request, c.choice)
		if (fault == nil) != (c.param == "") || fault != nil && (fault.Param != c.param || fault.Code != "unsupported" || fault.Status != 400) {
			t.Errorf("%s: %+v", name, fault)
		}
	}
}
