package gateway

import (
	"encoding/json"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lightswarm/lightswarm/policy/chat"
)

func TestMessagesDecode(t *testing.T) {
	user := []chat.Message{{Role: chat.User, Content: "hi"}}
	tools := `"tools":[{"name":"weather","description":"The weather somewhere.","input_schema":` + weather.Parameters + `}]`
	for name, c := range map[string]struct {
		body string
		want request
	}{
		"a text": {
			body: `{"model":"policy","max_tokens":9,"temperature":0.1,"top_k":5,"thinking":{"type":"disabled"},"messages":[{"role":"user","content":"hi"}]}`,
			want: request{Model: "policy", Messages: user, MaxTokens: 9, Sampling: samplingFields{Temperature: json.RawMessage("0.1"), TopK: json.RawMessage("5")}},
		},
		"an agent's name, a stream and stops": {
			body: `{"model":"policy/solver","stream":true,"stop_sequences":["END"],"system":[{"type":"text","text":"Be ","cache_control":{"type":"ephemeral"}},{"type":"text","text":"brief."}],"messages":[{"role":"user","content":[{"type":"text","text":"h"},{"type":"text","text":"i"}]}]}`,
			want: request{
				Model: "policy/solver", Agent: "solver", Stream: true, Stop: []string{"END"},
				Messages: []chat.Message{{Role: chat.System, Content: "Be brief."}, user[0]},
			},
		},
		"two calls and their results": {
			body: `{"system":"Be brief.","messages":[
				{"role":"user","content":"hi"},
				{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"Let me see."},
					{"type":"tool_use","id":"call_0_0","name":"weather","input":{"city": "Oslo"}},{"type":"tool_use","id":"call_0_1","name":"now"}]},
				{"role":"user","content":[
					{"type":"tool_result","tool_use_id":"call_0_0","content":"sun"},
					{"type":"tool_result","tool_use_id":"call_0_1","is_error":true,"content":[{"type":"text","text":"broken"}]},
					{"type":"text","text":"Well?"}]},
				{"role":"assistant","content":[]}]}`,
			want: request{Messages: []chat.Message{
				{Role: chat.System, Content: "Be brief."}, user[0],
				{Role: chat.Assistant, Content: "Let me see.", ToolCalls: []chat.ToolCall{
					{ID: "call_0_0", Name: "weather", Arguments: `{"city": "Oslo"}`}, {ID: "call_0_1", Name: "now", Arguments: "{}"},
				}},
				{Role: chat.ToolRole, ToolCallID: "call_0_0", Content: "sun"},
				{Role: chat.ToolRole, ToolCallID: "call_0_1", Content: "broken"},
				{Role: chat.User, Content: "Well?"},
				{Role: chat.Assistant},
			}},
		},
		"tools, of which Anthropic's own are left out": {
			body: `{"messages":[{"role":"user","content":"hi"}],"tool_choice":{"type":"any","disable_parallel_tool_use":true},
				"tools":[{"type":"web_search_20250305","name":"web_search"},{"type":"custom","name":"now"}]}`,
			want: request{Messages: user, Tools: []chat.Tool{{Name: "now"}}, Choice: toolChoice{Kind: chooseRequired}, SingleCall: true},
		},
		"a tool is chosen": {
			body: `{"messages":[{"role":"user","content":"hi"}],"tool_choice":{"type":"tool","name":"weather"},` + tools + `}`,
			want: request{Messages: user, Tools: []chat.Tool{weather}, Choice: toolChoice{Kind: chooseNamed, Name: "weather"}},
		},
		"no tool is chosen": {
			body: `{"messages":[{"role":"user","content":"hi"}],"tool_choice":{"type":"none"},` + tools + `}`,
			want: request{Messages: user, Tools: []chat.Tool{weather}, Choice: toolChoice{Kind: chooseNone}},
		},
		"a schema": {
			body: `{"messages":[{"role":"user","content":"hi"}],"output_config":{"effort":"low","format":{"type":"json_schema","schema":{"type":"object"}}}}`,
			want: request{Messages: user, Format: format{Kind: formatSchema, Schema: json.RawMessage(`{"type":"object"}`)}},
		},
	} {
		got, err := messages{}.decode([]byte(c.body))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		c.want.Samples, c.want.IncludeUsage = 1, true
		if diff := cmp.Diff(&c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A turn of many texts takes memory in proportion to its length.
func TestMessagesOfManyTexts(t *testing.T) {
	const texts, length = 2000, 1000
	text := `{"type":"text","text":"` + strings.Repeat("a", length) + `"}`
	body := []byte(`{"messages":[{"role":"user","content":[` + strings.Repeat(text+",", texts-1) + text + `]}]}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r, err := messages{}.decode(body)
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Messages) != 1 || len(r.Messages[0].Content) != texts*length {
		t.Errorf("%d messages", len(r.Messages))
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 30*uint64(len(body)) {
		t.Errorf("a body of %d bytes takes %d", len(body), took)
	}
}

func TestMessagesRefuse(t *testing.T) {
	turn := func(role, content string) string {
		return `{"messages":[{"role":"` + role + `","content":` + content + `}]}`
	}
	for body, want := range map[string][2]string{
		`[]`:                                  {"", ""},
		`{}`:                                  {"messages", ""},
		`{"max_tokens":-1}`:                   {"max_tokens", ""},
		turn("judge", `"hi"`):                 {"messages[0].role", ""},
		turn("user", `{"a":"b"}`):             {"messages[0].content", ""},
		turn("user", `[{"type":"image"}]`):    {"messages[0].content", "unsupported"},
		turn("user", `[{"type":"tool_use"}]`): {"messages[0].content", "unsupported"},
		turn("assistant", `[{"type":"tool_result"}]`):                                                     {"messages[0].content", "unsupported"},
		turn("user", `[{"type":"tool_result","content":[{"type":"image"}]}]`):                             {"messages[0].content[0].content", "unsupported"},
		`{"messages":[{"role":"user","content":"hi"}],"system":[{"type":"image"}]}`:                       {"system", "unsupported"},
		`{"messages":[{"role":"user","content":"hi"}],"tool_choice":{"type":"tool","name":"now"}}`:        {"tool_choice.name", ""},
		`{"messages":[{"role":"user","content":"hi"}],"tool_choice":{"type":"perhaps"}}`:                  {"tool_choice.type", ""},
		`{"messages":[{"role":"user","content":"hi"}],"output_config":{"format":{"type":"json_schema"}}}`: {"output_config.format", ""},
	} {
		if param, code := refusal(t, messages{}, body); param != want[0] || code != want[1] {
			t.Errorf("%s: param %q, code %q; want %q", body, param, code, want)
		}
	}
}

func TestMessagesAnswers(t *testing.T) {
	for name, a := range replies {
		golden(t, "messages/"+name, told(t, messages{}, &request{}, a))
	}
}

func TestMessagesFault(t *testing.T) {
	for status, want := range map[int]string{
		http.StatusBadRequest:            "invalid_request_error",
		http.StatusUnauthorized:          "authentication_error",
		http.StatusForbidden:             "permission_error",
		http.StatusNotFound:              "not_found_error",
		http.StatusConflict:              "invalid_request_error",
		http.StatusRequestEntityTooLarge: "request_too_large",
		http.StatusTooManyRequests:       "rate_limit_error",
		http.StatusInternalServerError:   "api_error",
		http.StatusServiceUnavailable:    "overloaded_error",
	} {
		got := string(messages{}.fault(&apiError{Status: status, Message: "because"}))
		if want := `{"type":"error","error":{"type":"` + want + `","message":"because"}}`; got != want {
			t.Errorf("status %d: %s, want %s", status, got, want)
		}
	}
}

func FuzzMessagesDecode(f *testing.F) {
	for _, seed := range []string{
		`{"model":"policy/solver","max_tokens":9,"system":"a","messages":[{"role":"user","content":"hi"}],"tools":[{"name":"now"}],"tool_choice":{"type":"auto"}}`,
		`{"messages":[{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"tool_use","id":"c","name":"n","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"1"},{"type":"text","text":"b"}]}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) { decodeFuzz(t, messages{}, body) })
}
