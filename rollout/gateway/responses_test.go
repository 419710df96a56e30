package gateway

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lightswarm/lightswarm/policy/chat"
)

func TestResponsesDecode(t *testing.T) {
	user := []chat.Message{{Role: chat.User, Content: "hi"}}
	oslo := chat.ToolCall{ID: "call_0_0", Name: "weather", Arguments: `{"city": "Oslo"}`}
	bergen := chat.ToolCall{ID: "call_0_1", Name: "weather", Arguments: `{"city": "Bergen"}`}
	tools := `"tools":[{"type":"function","name":"weather","description":"The weather somewhere.","strict":true,"parameters":` + weather.Parameters + `}]`
	for name, c := range map[string]struct {
		body string
		want request
	}{
		"a text": {
			body: `{"model":"policy","input":"hi","temperature":0.1,"top_p":1,"store":true,"reasoning":{"effort":"low"},"metadata":{"a":"b"}}`,
			want: request{Model: "policy", Messages: user, Sampling: samplingFields{Temperature: json.RawMessage("0.1"), TopP: json.RawMessage("1")}},
		},
		"an agent's name, a limit and a stream": {
			body: `{"model":"policy/solver","input":"hi","max_output_tokens":9,"stream":true,"previous_response_id":null,"conversation":null}`,
			want: request{Model: "policy/solver", Agent: "solver", Messages: user, MaxTokens: 9, Stream: true},
		},
		"another vendor's model": {
			body: `{"model":"gpt-4o","instructions":"Be brief.","input":[{"role":"user","content":[{"type":"input_text","text":"h"},{"type":"input_text","text":"i"}]}]}`,
			want: request{Model: "gpt-4o", Messages: []chat.Message{{Role: chat.System, Content: "Be brief."}, user[0]}},
		},
		"one call and its answer, as OpenAI's agents send them": {
			body: `{"model":"policy","include":[],"input":[
				{"type":"message","role":"developer","content":"Be brief."},
				{"role":"user","content":"hi"},
				{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}]},
				{"type":"message","id":"msg_r1-0","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Let me see.","annotations":[],"logprobs":[]}]},
				{"type":"function_call","id":"fc_r1-0_0","status":"completed","call_id":"call_0_0","name":"weather","arguments":"{\"city\": \"Oslo\"}"},
				{"type":"function_call","id":"fc_r1-0_1","status":"completed","call_id":"call_0_1","name":"weather","arguments":"{\"city\": \"Bergen\"}"},
				{"type":"function_call_output","call_id":"call_0_0","output":"sun"},
				{"type":"function_call_output","call_id":"call_0_1","output":[{"type":"input_text","text":"rain"}]}]}`,
			want: request{Model: "policy", Messages: []chat.Message{
				{Role: chat.System, Content: "Be brief."}, user[0],
				{Role: chat.Assistant, Content: "Let me see.", ToolCalls: []chat.ToolCall{oslo, bergen}},
				{Role: chat.ToolRole, ToolCallID: "call_0_0", Content: "sun"},
				{Role: chat.ToolRole, ToolCallID: "call_0_1", Content: "rain"},
			}},
		},
		"texts in a row are messages of their own": {
			body: `{"input":[{"role":"user","content":"hi"},
				{"role":"assistant","content":"one"},{"role":"assistant","content":[{"type":"refusal","refusal":"two"}]},
				{"type":"function_call","call_id":"call_0_0","name":"weather","arguments":"{\"city\": \"Oslo\"}"}]}`,
			want: request{Messages: []chat.Message{
				user[0], {Role: chat.Assistant, Content: "one"},
				{Role: chat.Assistant, Content: "two", ToolCalls: []chat.ToolCall{oslo}},
			}},
		},
		"tools, of which OpenAI's own are left out": {
			body: `{"input":"hi","tool_choice":"required","parallel_tool_calls":false,"tools":[{"type":"web_search"},{"type":"function","name":"now","parameters":null}]}`,
			want: request{Messages: user, Tools: []chat.Tool{{Name: "now"}}, Choice: toolChoice{Kind: chooseRequired}, SingleCall: true},
		},
		"a tool is chosen": {
			body: `{"input":"hi","tool_choice":{"type":"function","name":"weather"},` + tools + `}`,
			want: request{Messages: user, Tools: []chat.Tool{weather}, Strict: []string{"weather"}, Choice: toolChoice{Kind: chooseNamed, Name: "weather"}},
		},
		"no tool is allowed": {
			body: `{"input":"hi","tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"now"}]},` + tools + `}`,
			want: request{Messages: user, Strict: []string{"weather"}},
		},
		"no tool is chosen": {
			body: `{"input":"hi","tool_choice":"none",` + tools + `}`,
			want: request{Messages: user, Tools: []chat.Tool{weather}, Strict: []string{"weather"}, Choice: toolChoice{Kind: chooseNone}},
		},
		"a schema and log-probs": {
			body: `{"input":"hi","include":["message.output_text.logprobs"],"text":{"format":{"type":"json_schema","name":"a","strict":true,"schema":{"type":"object"}}}}`,
			want: request{Messages: user, LogProbs: true, Format: format{Kind: formatSchema, Name: "a", Schema: json.RawMessage(`{"type":"object"}`)}},
		},
		"an object": {
			body: `{"input":"hi","text":{"verbosity":"low","format":{"type":"json_object"}}}`,
			want: request{Messages: user, Format: format{Kind: formatObject}},
		},
		"items named by id": {
			body: `{"input":[{"role":"user","content":"hi"},{"type":"item_reference","id":"msg_r1-0"},
				{"type":"item_reference","id":"fc_r1-0_1"},{"type":"function_call_output","call_id":"call_0_1","output":"rain"}]}`,
			want: request{
				Messages: []chat.Message{user[0], {Role: chat.Assistant, ToolCalls: []chat.ToolCall{{}}}, {Role: chat.ToolRole, ToolCallID: "call_0_1", Content: "rain"}},
				Recalled: []recalled{
					{Message: 1, Call: -1, Answer: "r1-0", Part: -1, Param: "input[1].id"},
					{Message: 1, Call: 0, Answer: "r1-0", Part: 1, Param: "input[2].id"},
				},
			},
		},
	} {
		got, err := responses{}.decode([]byte(c.body))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		c.want.Samples = 1
		if diff := cmp.Diff(&c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestResponsesRefuse(t *testing.T) {
	for body, want := range map[string][2]string{
		`[]`:                                    {"", ""},
		`{"input":`:                             {"", ""},
		`{}`:                                    {"input", ""},
		`{"input":[]}`:                          {"input", ""},
		`{"input":7}`:                           {"input", ""},
		`{"input":"hi","stream":"yes"}`:         {"stream", ""},
		`{"input":"hi","max_output_tokens":-1}`: {"max_output_tokens", ""},
		`{"input":"hi","previous_response_id":"resp_r1-0"}`:                {"previous_response_id", "unsupported"},
		`{"input":"hi","conversation":"conv_1"}`:                           {"conversation", "unsupported"},
		`{"input":"hi","prompt":{"id":"p"}}`:                               {"prompt", "unsupported"},
		`{"input":"hi","background":true}`:                                 {"background", "unsupported"},
		`{"input":"hi","tool_choice":"perhaps"}`:                           {"tool_choice", ""},
		`{"input":"hi","tool_choice":{"type":"function","name":"now"}}`:    {"tool_choice", ""},
		`{"input":"hi","tool_choice":{"type":"web_search"}}`:               {"tool_choice", "unsupported"},
		`{"input":"hi","text":{"format":{"type":"grammar"}}}`:              {"text.format.type", "unsupported"},
		`{"input":"hi","text":{"format":{"type":"json_schema"}}}`:          {"text.format.schema", ""},
		`{"input":[{"role":"judge","content":"hi"}]}`:                      {"input[0].role", ""},
		`{"input":[{"role":"user","content":[{"type":"input_image"}]}]}`:   {"input[0].content", "unsupported"},
		`{"input":[{"role":"user","content":7}]}`:                          {"input[0].content", ""},
		`{"input":[{"type":"computer_call"}]}`:                             {"input[0].type", "unsupported"},
		`{"input":[{"type":"item_reference","id":"rs_1"}]}`:                {"input[0].id", ""},
		`{"input":[{"type":"item_reference","id":"fc_r1-0"}]}`:             {"input[0].id", ""},
		`{"input":[{"type":"item_reference","id":"fc_r1-0_-1"}]}`:          {"input[0].id", ""},
		`{"input":[{"type":"function_call_output","output":{"a":"sun"}}]}`: {"input[0].output", ""},
	} {
		if param, code := refusal(t, responses{}, body); param != want[0] || code != want[1] {
			t.Errorf("%s: param %q, code %q; want %q", body, param, code, want)
		}
	}
}

func TestResponsesRecall(t *testing.T) {
	made := replies["calls"].Choices[0].Message
	answers := func(id string) (chat.Message, bool) { return made, id == replies["calls"].ID }
	read := func(items string) *request {
		r, err := responses{}.decode([]byte(`{"input":[` + items + `]}`))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}

	var references string
	for _, item := range newResponse(&request{}, replies["calls"]).Output {
		references += `,{"type":"item_reference","id":"` + item.ID + `"}`
	}
	whole := read(references[1:])
	if err := whole.resolve(answers); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]chat.Message{made}, whole.Messages); diff != "" {
		t.Errorf("an answer recalled whole (-want +got):\n%s", diff)
	}

	for _, id := range []string{"msg_r1-9", "fc_r1-9_0", "fc_r1-2_2"} {
		err := read(`{"type":"item_reference","id":"` + id + `"}`).resolve(answers)
		if e, ok := err.(*apiError); !ok || e.Status != 400 || e.Param != "input[0].id" {
			t.Errorf("%s: %v", id, err)
		}
	}
}

func TestResponsesAnswers(t *testing.T) {
	for name, a := range replies {
		r := &request{
			Tools: []chat.Tool{weather, {Name: "time"}}, Choice: toolChoice{Kind: chooseNamed, Name: "weather"}, SingleCall: true,
			LogProbs: name == "text", Format: format{Kind: formatObject}, MaxTokens: 50,
		}
		golden(t, "responses/"+name, told(t, responses{}, r, a))
	}
}

func FuzzResponsesDecode(f *testing.F) {
	for _, seed := range []string{
		`{"model":"policy/solver","instructions":"a","input":"hi","max_output_tokens":9,"tools":[{"type":"function","name":"now"}],"tool_choice":"auto"}`,
		`{"input":[{"role":"user","content":[{"type":"input_text","text":"h"}]},{"type":"function_call","call_id":"c","name":"n","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"1"}]}`,
		`{"input":[{"type":"item_reference","id":"msg_r1-0"},{"type":"item_reference","id":"fc_r1-0_1"}]}`,
		`{"input":"hi","text":{"format":{"type":"json_schema","name":"a","schema":{}}},"tool_choice":{"type":"allowed_tools"}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) { decodeFuzz(t, responses{}, body) })
}
