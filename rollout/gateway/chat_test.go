package gateway

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lightswarm/lightswarm/policy/chat"
)

func TestChatDecode(t *testing.T) {
	hi := []chat.Message{{Role: chat.User, Content: "hi"}}
	const messages = `"messages":[{"role":"user","content":"hi"}]`
	for name, c := range map[string]struct {
		body string
		want request
	}{
		"the least": {`{` + messages + `}`, request{Messages: hi, Samples: 1}},
		"all that counts": {
			`{"model":"policy/critic","n":3,"stop":["a","b"],"max_tokens":5,"max_completion_tokens":7,"stream":true,"stream_options":{"include_usage":true},"logprobs":true,"parallel_tool_calls":false,` + messages + `}`,
			request{Model: "policy/critic", Agent: "critic", Messages: hi, Samples: 3, Stop: []string{"a", "b"}, MaxTokens: 7, Stream: true, IncludeUsage: true, LogProbs: true, SingleCall: true},
		},
		"nulls": {
			`{"model":null,"n":null,"stop":null,"max_tokens":null,"stream":null,"stream_options":null,"tools":null,"tool_choice":null,"response_format":null,"functions":null,` + messages + `}`,
			request{Messages: hi, Samples: 1},
		},
		"one stop": {`{"stop":"a",` + messages + `}`, request{Messages: hi, Samples: 1, Stop: []string{"a"}}},
		"what is only noted": {
			`{"temperature":2,"top_p":0.1,"top_k":5,"seed":7,"logit_bias":{},"store":true,"metadata":{},"reasoning_effort":"high","x":[1],` + messages + `}`,
			request{Messages: hi, Samples: 1, Sampling: samplingFields{
				Temperature: json.RawMessage("2"), TopP: json.RawMessage("0.1"), TopK: json.RawMessage("5"), Seed: json.RawMessage("7"), Bias: json.RawMessage("{}"),
			}},
		},
		"tools": {
			`{"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{ "type": "object" },"strict":true}},{"function":{"name":"g","parameters":null}}],"tool_choice":{"type":"function","function":{"name":"g"}},` + messages + `}`,
			request{
				Messages: hi, Samples: 1, Choice: toolChoice{chooseNamed, "g"},
				Tools:  []chat.Tool{{Name: "f", Description: "d", Parameters: `{ "type": "object" }`}, {Name: "g"}},
				Strict: []string{"f"},
			},
		},
		"required": {`{"tool_choice":"required",` + messages + `}`, request{Messages: hi, Samples: 1, Choice: toolChoice{Kind: chooseRequired}}},
		"none":     {`{"tool_choice":"none",` + messages + `}`, request{Messages: hi, Samples: 1, Choice: toolChoice{Kind: chooseNone}}},
		"object":   {`{"response_format":{"type":"json_object"},` + messages + `}`, request{Messages: hi, Samples: 1, Format: format{Kind: formatObject}}},
		"schema": {
			`{"response_format":{"type":"json_schema","json_schema":{"name":"s","strict":true,"schema":{"type":"string"}}},` + messages + `}`,
			request{Messages: hi, Samples: 1, Format: format{formatSchema, "s", json.RawMessage(`{"type":"string"}`)}},
		},
		"a conversation": {
			`{"messages":[
				{"role":"developer","content":"d"},
				{"role":"system","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
				{"role":"user","content":"u","name":"Ann"},
				{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{ }"}},{"id":"2","function":{"name":"g","arguments":""}}],"reasoning_content":"hm"},
				{"role":"tool","tool_call_id":"2","content":"x"},
				{"role":"tool","tool_call_id":"1","content":[{"type":"text","text":"y"}],"name":"f"},
				{"role":"assistant","content":[{"type":"refusal","refusal":"no"}]},
				{"role":"assistant","refusal":"never"}]}`,
			request{Samples: 1, Messages: []chat.Message{
				{Role: chat.System, Content: "d"},
				{Role: chat.System, Content: "ab"},
				{Role: chat.User, Content: "u"},
				{Role: chat.Assistant, ToolCalls: []chat.ToolCall{{ID: "1", Name: "f", Arguments: "{ }"}, {ID: "2", Name: "g"}}},
				{Role: chat.ToolRole, ToolCallID: "2", Content: "x"},
				{Role: chat.ToolRole, ToolCallID: "1", Content: "y"},
				{Role: chat.Assistant, Content: "no"},
				{Role: chat.Assistant, Content: "never"},
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := chatCompletions{}.decode([]byte(c.body))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestChatRefuses(t *testing.T) {
	const messages = `"messages":[{"role":"user","content":"hi"}]`
	for body, want := range map[string]struct{ param, code string }{
		`{"x":[` + strings.Repeat("1,", maxValues) + `1]}`: {"", ""},
		``:                               {"", ""},
		`[]`:                             {"", ""},
		`{`:                              {"", ""},
		`{}`:                             {"messages", ""},
		`{"messages":"hi"}`:              {"messages", ""},
		`{"messages":[{"role":"boss"}]}`: {"messages[0].role", ""},
		`{"messages":[{"role":"user","content":5}]}`:                                              {"messages[0].content", ""},
		`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}]}`: {"messages[0].content", "unsupported"},
		`{"messages":[{"role":"assistant","tool_calls":[{"type":"custom"}]}]}`:                    {"messages[0].tool_calls", "unsupported"},
		`{"n":0,` + messages + `}`:                                                                {"n", ""},
		`{"n":17,` + messages + `}`:                                                               {"n", ""},
		`{"n":"2",` + messages + `}`:                                                              {"n", ""},
		`{"max_tokens":0,` + messages + `}`:                                                       {"max_tokens", ""},
		`{"max_completion_tokens":-1,` + messages + `}`:                                           {"max_completion_tokens", ""},
		`{"stop":5,` + messages + `}`:                                                             {"stop", ""},
		`{"stop":["` + strings.Repeat(`","`, maxStops) + `"],` + messages + `}`:                   {"stop", ""},
		`{"functions":[{"name":"f"}],` + messages + `}`:                                           {"functions", "unsupported"},
		`{"tools":[{"type":"web_search"}],` + messages + `}`:                                      {"tools", "unsupported"},
		`{"tool_choice":"sometimes",` + messages + `}`:                                            {"tool_choice", ""},
		`{"tool_choice":{"type":"custom"},` + messages + `}`:                                      {"tool_choice", "unsupported"},
		`{"tool_choice":{"type":"function","function":{"name":"f"}},` + messages + `}`:            {"tool_choice", ""},
		`{"response_format":{"type":"xml"},` + messages + `}`:                                     {"response_format.type", "unsupported"},
		`{"response_format":{"type":"json_schema"},` + messages + `}`:                             {"response_format.json_schema.schema", ""},
	} {
		_, err := chatCompletions{}.decode([]byte(body))
		if e, ok := err.(*apiError); !ok || e.Status != 400 || e.Type != invalidRequest || e.Message == "" || !strings.HasSuffix(e.Param, want.param) || e.Code != want.code {
			t.Errorf("%s: %#v", body, err)
		}
	}
}

func TestChatAnswers(t *testing.T) {
	for name, a := range replies {
		r := &request{LogProbs: name == "text", IncludeUsage: name != "silence"}
		golden(t, "chat/"+name, told(t, chatCompletions{}, r, a))
		golden(t, "completions/"+name, told(t, completions{}, r, a))
	}
	two := *replies["text"]
	two.Choices = append(two.Choices[:1:1], replies["calls"].Choices[0])
	golden(t, "chat/two", told(t, chatCompletions{}, &request{}, &two))
}

func FuzzChatDecode(f *testing.F) {
	for _, seed := range []string{
		`{"model":"policy/solver","messages":[{"role":"user","content":"hi"}],"n":2,"stop":"x","tools":[{"type":"function","function":{"name":"now"}}],"tool_choice":"auto"}`,
		`{"messages":[{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"n","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":[{"type":"text","text":"1"}]}]}`,
		`{"messages":[{"role":"user"}],"response_format":{"type":"json_schema","json_schema":{"schema":{}}},"stream":true,"logprobs":true}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) { decodeFuzz(t, chatCompletions{}, body) })
}

func TestCompletionsDecode(t *testing.T) {
	for body, want := range map[string]request{
		`{"prompt":"hi"}`: {Text: "hi", Samples: 1},
		`{"prompt":["hi"],"echo":false,"suffix":""}`:      {Text: "hi", Samples: 1},
		`{"prompt":[1,2],"n":2,"best_of":2,"logprobs":0}`: {Prompt: []int32{1, 2}, Samples: 2, LogProbs: true},
		`{"prompt":[[1]],"model":"policy/critic","stop":"x","max_tokens":3}`: {
			Prompt: []int32{1}, Samples: 1, Model: "policy/critic", Agent: "critic", Stop: []string{"x"}, MaxTokens: 3,
		},
		`{"prompt":[7]}`: {Prompt: []int32{7}, Samples: 1},
	} {
		got, err := completions{}.decode([]byte(body))
		if diff := cmp.Diff(&want, got); diff != "" || err != nil {
			t.Errorf("%s: %v %s", body, err, diff)
		}
	}
	for body, param := range map[string]string{
		`{}`:                          "prompt",
		`{"prompt":null}`:             "prompt",
		`{"prompt":""}`:               "prompt",
		`{"prompt":[]}`:               "prompt",
		`{"prompt":["a","b"]}`:        "prompt",
		`{"prompt":[1,"b"]}`:          "prompt",
		`{"prompt":[99999999999]}`:    "prompt",
		`{"prompt":"a","suffix":"b"}`: "suffix",
		`{"prompt":"a","echo":true}`:  "echo",
		`{"prompt":"a","best_of":2}`:  "best_of",
		`{"prompt":"a","n":0}`:        "n",
	} {
		_, err := completions{}.decode([]byte(body))
		if e, ok := err.(*apiError); !ok || e.Status != 400 || e.Param != param {
			t.Errorf("%s: %#v", body, err)
		}
	}
}

func FuzzCompletionsDecode(f *testing.F) {
	f.Add([]byte(`{"prompt":"hi","n":2,"logprobs":1}`))
	f.Add([]byte(`{"prompt":[[1,2]],"stop":["a"]}`))
	f.Fuzz(func(t *testing.T, body []byte) { decodeFuzz(t, completions{}, body) })
}

func FuzzRewardDecode(f *testing.F) {
	f.Add([]byte(`{"reward":1,"components":{"a":2}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, fault := decodeReward(body)
		if (r == nil) == (fault == nil) {
			t.Fatalf("%+v, %+v", r, fault)
		}
		if fault == nil {
			mustJSON(r)
		}
	})
}

func TestExtent(t *testing.T) {
	for text, want := range map[string][2]int{
		``: {0, 0}, `1`: {0, 0}, `{"a":[{}],"b":[]}`: {3, 5}, `"[[[\"[[,,"`: {0, 0}, `["]",[`: {2, 3}, `]]]`: {0, 0},
	} {
		if depth, values := extent([]byte(text)); [2]int{depth, values} != want {
			t.Errorf("%s has the extent %d, %d, want %v", text, depth, values, want)
		}
	}
}
