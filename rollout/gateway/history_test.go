package gateway

import (
	"net/http"
	"slices"
	"testing"

	"github.com/lightswarm/lightswarm/policy/chat"
)

func user(s string) chat.Message { return chat.Message{Role: chat.User, Content: s} }

func TestHistoryAttaches(t *testing.T) {
	call := func(id, arguments string) chat.Message {
		return chat.Message{Role: chat.Assistant, ToolCalls: []chat.ToolCall{{ID: id, Name: "f", Arguments: arguments}}}
	}
	opening := []chat.Message{user("go")}
	other := []chat.Message{user("stop")}
	var h history
	h.add(opening, call("call_0_0", `{"b": 1.0, "a": [1e2, "ä"]}`), []int32{1})
	h.add(opening, call("call_1_0", `{"a":[100,"ä"],"b":1}`), []int32{2})
	h.add(other, call("call_2_0", `{"b": 1.0, "a": [1e2, "ä"]}`), []int32{3})
	h.add(opening, call("call_3_0", ``), []int32{4})
	h.add(opening, call("call_4_0", `not JSON`), []int32{5})
	h.add(opening, says("hello"), []int32{6})
	h.add(other, says("hello"), []int32{7})
	h.add(opening, says("hello"), []int32{8})
	for name, c := range map[string]struct {
		before  []chat.Message
		message chat.Message
		want    []int32
	}{
		"by id":                        {opening, call("call_0_0", `{"a":[100,"ä"],"b":1}`), []int32{1}},
		"by id, elsewhere":             {nil, call("call_0_0", `{"a":[100,"ä"],"b":1}`), []int32{1}},
		"by place":                     {other, call("made-up", `{"a":[100,"ä"],"b":1}`), []int32{3}},
		"by letter":                    {opening, call("made-up", `{"b": 1.0, "a": [1e2, "ä"]}`), []int32{1}},
		"by meaning":                   {opening, call("made-up", `{"b":1,"a":[100,"\u00e4"]}`), []int32{2}},
		"no arguments":                 {opening, call("made-up", ` { } `), []int32{4}},
		"no JSON":                      {opening, call("made-up", `not JSON`), []int32{5}},
		"no JSON, to the letter":       {opening, call("made-up", `not  JSON`), nil},
		"other arguments, known id":    {opening, call("call_0_0", `{"a":[100,"ä"],"b":2}`), nil},
		"the last of equals":           {opening, says("hello"), []int32{8}},
		"of the place":                 {other, says("hello"), []int32{7}},
		"of nowhere, the last":         {[]chat.Message{user("what")}, says("hello"), []int32{8}},
		"never said":                   {opening, says("Hello"), nil},
		"a user says what policies do": {opening, user("hello"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			conversation := append(slices.Clone(c.before), c.message, user("on"))
			got := h.attach(conversation)
			if !slices.Equal(got[len(c.before)].Tokens, c.want) {
				t.Errorf("tokens %v, want %v", got[len(c.before)].Tokens, c.want)
			}
			if conversation[len(c.before)].Tokens != nil {
				t.Error("the request's own messages are changed")
			}
			for i, m := range got {
				if i != len(c.before) && m.Tokens != nil {
					t.Errorf("message %d has tokens", i)
				}
			}
		})
	}
}

// A place is told from what was said before in any words: ids, spellings of arguments and answered calls do not count.
func TestHistoryKnowsThePlace(t *testing.T) {
	conversation := func(id, arguments string) []chat.Message {
		return []chat.Message{
			user("go"),
			{Role: chat.Assistant, ToolCalls: []chat.ToolCall{{ID: id, Name: "f", Arguments: arguments}}},
			{Role: chat.ToolRole, Content: "7", ToolCallID: id},
		}
	}
	var h history
	h.add(conversation("a", `{"x": 1}`), says("7"), []int32{1})
	h.add([]chat.Message{user("go")}, says("7"), []int32{2})
	got := h.attach(append(conversation("b", `{"x":1}`), says("7")))
	if !slices.Equal(got[3].Tokens, []int32{1}) {
		t.Errorf("tokens %v", got[3].Tokens)
	}
}

// Looking a message up costs about the same in however long a conversation: an agent cannot keep its rollout from ending
// with one that takes minutes.
func TestHistoryLooksOnce(t *testing.T) {
	var h history
	call := chat.Message{Role: chat.Assistant, ToolCalls: []chat.ToolCall{{Name: "f", Arguments: `{"x":1}`}}}
	h.add(nil, call, []int32{1})
	const n = 1000
	allocations := testing.AllocsPerRun(1, func() { h.attach(slices.Repeat([]chat.Message{call}, n)) })
	if allocations > 40*n {
		t.Errorf("%v allocations for %d messages", allocations, n)
	}
}

func TestRetried(t *testing.T) {
	e := exchanges{}
	key, other := newBodyKey("a", "b", []byte("c")), newBodyKey("a", "bc", nil)
	if key == other || e.retried(key) != nil {
		t.Fatal("a retry of nothing")
	}
	first, second, third := e.begin(key, false), e.begin(key, false), e.begin(key, false)
	e.begin(other, false)
	if e.retried(key) != third {
		t.Error("with nothing lost a retry is not of the last")
	}
	first.lost, second.lost = true, true
	if a, b, c := e.retried(key), e.retried(key), e.retried(key); a != first || b != second || c != third {
		t.Error("retries do not take over what was lost, in order")
	}
	first.fault, second.fault, third.fault = endedError(), endedError(), endedError()
	e.forget(key, third)
	if e.retried(key) != second {
		t.Error("a forgotten exchange is retried")
	}
	e.forget(key, first)
	e.forget(key, second)
	if len(e) != 1 {
		t.Errorf("%d bodies are kept", len(e))
	}
	for range 2 {
		x := e.begin(key, false)
		x.fault = &apiError{Status: http.StatusServiceUnavailable}
		e.forget(key, x)
	}
	var last *exchange
	for range 2 {
		// A retry that is refused for want of room has not begun, and leaves the failure to the next one.
		for range 2 {
			if e.retried(key) != nil {
				t.Error("what failed is retried, or not tried again twice")
			}
		}
		last = e.begin(key, true)
	}
	if e.retried(key) != last {
		t.Error("what failed twice is tried again more often")
	}
}

// What the policy wrote in one message comes back as several from some frameworks; what it wrote in several stays.
func TestHistoryJoinsWhatFellApart(t *testing.T) {
	text := says("Let me see.")
	f := chat.Message{Role: chat.Assistant, ToolCalls: []chat.ToolCall{{ID: "a", Name: "f", Arguments: `{"x": 1}`}}}
	g := chat.Message{Role: chat.Assistant, ToolCalls: []chat.ToolCall{{ID: "b", Name: "g", Arguments: `{}`}}}
	whole := text
	whole.ToolCalls = append(slices.Clone(f.ToolCalls), g.ToolCalls...)
	var h history
	h.add([]chat.Message{user("go")}, whole, []int32{1})
	h.add([]chat.Message{user("go")}, f, []int32{2})
	for name, c := range map[string]struct {
		parts []chat.Message
		want  [][]int32 // the tokens of the messages between the user's
	}{
		"as it was":            {[]chat.Message{whole}, [][]int32{{1}}},
		"a text and its calls": {[]chat.Message{text, {Role: chat.Assistant, ToolCalls: whole.ToolCalls}}, [][]int32{{1}}},
		"all apart":            {[]chat.Message{text, f, g}, [][]int32{{1}}},
		"said apart":           {[]chat.Message{f, f}, [][]int32{{2}, {2}}},
		"another order":        {[]chat.Message{text, g, f}, [][]int32{nil, nil, {2}}},
		"a text after calls":   {[]chat.Message{f, text, g}, [][]int32{{2}, nil, nil}},
	} {
		conversation := append(append([]chat.Message{user("go")}, c.parts...), user("on"))
		got := h.attach(conversation)
		if got = got[1 : len(got)-1]; !slices.EqualFunc(got, c.want, func(m chat.Message, want []int32) bool { return slices.Equal(m.Tokens, want) }) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
