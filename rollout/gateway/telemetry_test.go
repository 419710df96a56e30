package gateway

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/rollout/agent"
	"github.com/lightswarm/lightswarm/rollout/telemetry"
)

// otlp is an export in JSON of spans that are given as the JSON of their attributes, each with the number that is its id,
// that of its parent, and its name. They begin one after the other.
type otlp []string

func (o *otlp) add(id, parent int, name string, attributes map[string]any) {
	var list []map[string]any
	for key, value := range attributes {
		kind := "stringValue"
		if _, ok := value.(float64); ok {
			kind = "doubleValue"
		}
		list = append(list, map[string]any{"key": key, "value": map[string]any{kind: value}})
	}
	span := map[string]any{
		"traceId": strings.Repeat("ab", 16), "spanId": fmt.Sprintf("%016x", id), "name": name, "attributes": list,
		"startTimeUnixNano": fmt.Sprint(100 * id), "endTimeUnixNano": fmt.Sprint(100*id + 10),
	}
	if parent > 0 {
		span["parentSpanId"] = fmt.Sprintf("%016x", parent)
	}
	if name == "broken tool" {
		span["status"] = map[string]any{"code": 2}
	}
	*o = append(*o, string(mustJSON(span)))
}

func (o *otlp) body() string {
	return `{"resourceSpans":[{"scopeSpans":[{"spans":[` + strings.Join(*o, ",") + `]}]}]}`
}

const jsonType = "Content-Type: application/json"

// export posts a body as the exporters do that the session's environment has set up.
func export(t testing.TB, s *Session, body string) httpResponse {
	t.Helper()
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	w.Write([]byte(body))
	w.Close()
	return do(t, "POST", variable(t, s, "OTEL_EXPORTER_OTLP_ENDPOINT")+"/v1/traces", zipped.String(),
		jsonType, "Content-Encoding: gzip", strings.Replace(variable(t, s, "OTEL_EXPORTER_OTLP_HEADERS"), "=", ": ", 1))
}

// variable is one of a session's environment.
func variable(t testing.TB, s *Session, name string) string {
	t.Helper()
	for _, entry := range s.Environ() {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	t.Fatalf("no %s in %q", name, s.Environ())
	return ""
}

// answerOf is the id of an answer.
func answerOf(t testing.TB, r httpResponse) string {
	t.Helper()
	var answer struct{ ID string }
	if err := json.Unmarshal([]byte(r.body), &answer); err != nil || answer.ID == "" {
		t.Fatalf("%d %s: %v", r.status, r.body, err)
	}
	return answer.ID
}

// Spans join the calls that their ids name, in every dialect's form of them.
func TestTelemetryJoinsCalls(t *testing.T) {
	llm := &fakeLLM{behave: func(_ context.Context, _ agent.Request, call int) (chat.Message, error) {
		if call == 0 {
			return callsTools("1+1"), nil
		}
		return says("2"), nil
	}}
	g := testGateway(t, Options{})
	s := open(t, g, llm)
	first := answerOf(t, postChat(t, s, "one", ""))
	second := answerOf(t, do(t, "POST", s.BaseURL()+"/responses", `{"input":"two"}`))
	third := answerOf(t, postChat(t, s, "three", "", "X-Lightswarm-Agent: solver"))
	both := answerOf(t, postChat(t, s, "four", `"n":2`)) // calls 3 and 4
	fifth := answerOf(t, do(t, "POST", s.BaseURL()+"/messages", `{"max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`))

	var spans otlp
	spans.add(1, 0, "critic", map[string]any{"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "critic"})
	for i, id := range []string{first, second, third, both, fifth} {
		spans.add(2+i, 1, "chat", map[string]any{"gen_ai.operation.name": "chat", "gen_ai.response.id": id})
	}
	spans.add(7, 1, "broken tool", map[string]any{"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "calculator", "gen_ai.tool.call.id": "call_0_0"})
	spans.add(8, 1, "tool", map[string]any{"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"})
	spans.add(9, 1, "agentlightning.annotation", map[string]any{
		"agentlightning.reward.0.value": 0.25, "agentlightning.link.0.key_match": "gen_ai.response.id", "agentlightning.link.0.value_match": second,
	})
	spans.add(10, 1, "agentlightning.annotation", map[string]any{"agentlightning.reward.0.value": 0.5})
	spans.add(11, 1, "chat", map[string]any{"gen_ai.operation.name": "chat", "gen_ai.response.id": "chatcmpl-elsewhere"})
	for range 2 { // the second does nothing
		if r := export(t, s, spans.body()); r.status != 200 || r.body != "{}" || r.header.Get("Content-Type") != "application/json" {
			t.Errorf("%d %s %v", r.status, r.body, r.header)
		}
	}
	quarter, half := 0.25, 0.5
	want := &agent.Feedback{
		Reward: &half,
		Calls: map[int]agent.CallFeedback{
			0: {Agent: "critic"}, 1: {Agent: "critic", Reward: &quarter}, 3: {Agent: "critic"}, 4: {Agent: "critic"}, 5: {Agent: "critic"},
		},
		Tools: []agent.ToolOutcome{{Call: 0, Tool: "calculator", Failed: true}, {Call: 5, Tool: "search"}},
	}
	if diff := cmp.Diff(want, s.End().Feedback); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, s.End().Feedback); diff != "" {
		t.Errorf("a second time (-want +got):\n%s", diff)
	}
}

// What the agent posts counts before what its telemetry says.
func TestPostedRewardsCountFirst(t *testing.T) {
	g := testGateway(t, Options{})
	s := open(t, g, always(says("x")))
	do(t, "POST", s.BaseURL()+"/reward", `{"reward":0.75,"components":{"style":1}}`)
	var spans otlp
	spans.add(1, 0, "agentlightning.annotation", map[string]any{"agentlightning.reward.0.value": 0.5})
	export(t, s, spans.body())
	reward := 0.75
	want := &agent.Feedback{Reward: &reward, Components: map[string]float64{"style": 1}}
	if diff := cmp.Diff(want, s.End().Feedback); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	silent := open(t, g, always(says("x")))
	postChat(t, silent, "hi", "")
	if seen := silent.End(); seen.Feedback != nil {
		t.Errorf("%+v", seen.Feedback)
	}
}

// Exporters get answers in their own form, and only those worth trying again ask for it.
func TestExportsAreAnswered(t *testing.T) {
	g := testGateway(t, Options{MaxBody: 1000})
	s, other, ended := open(t, g, always(says("x"))), open(t, g, always(says("x"))), open(t, g, always(says("x")))
	ended.End()
	root := "http://" + g.Address()
	protobuf := "Content-Type: application/x-protobuf"
	for name, c := range map[string]struct {
		method, url, body, contentType, header string
		status                                 int
		want                                   string
	}{
		"traces":                 {"POST", s.BaseURL() + "/traces", "", protobuf, "", 200, ""},
		"traces, JSON":           {"POST", s.BaseURL() + "/traces", "{}", jsonType, "", 200, "{}"},
		"by key":                 {"POST", root + "/v1/traces", "{}", jsonType, "X-Api-Key: " + s.Key(), 200, "{}"},
		"metrics":                {"POST", s.BaseURL() + "/metrics", "what ever", protobuf, "", 200, ""},
		"logs":                   {"POST", s.BaseURL() + "/logs", "what ever", jsonType, "", 200, "{}"},
		"late traces":            {"POST", ended.BaseURL() + "/traces", "what ever", protobuf, "", 200, ""},
		"late traces by key":     {"POST", root + "/v1/traces", "what ever", jsonType, "X-Api-Key: " + ended.Key(), 200, "{}"},
		"spans without ids":      {"POST", s.BaseURL() + "/traces", `{"resourceSpans":[{"scopeSpans":[{"spans":[{},{}]}]}]}`, jsonType, "", 200, `"rejectedSpans":"2"`},
		"nonsense":               {"POST", s.BaseURL() + "/traces", "hello", jsonType, "", 400, `"code":3`},
		"nonsense, protobuf":     {"POST", s.BaseURL() + "/traces", "hello", protobuf, "", 400, "\x08\x03\x12"},
		"no gzip":                {"POST", s.BaseURL() + "/traces", "hello", protobuf, "Content-Encoding: gzip", 400, "\x08\x03\x12"},
		"another type":           {"POST", s.BaseURL() + "/traces", "hello", "Content-Type: text/plain", "", 415, "\x08\x03\x12"},
		"large":                  {"POST", s.BaseURL() + "/traces", strings.Repeat(" ", 1001), jsonType, "", 413, `"code":8`},
		"another's key":          {"POST", s.BaseURL() + "/traces", "{}", jsonType, "X-Api-Key: " + other.Key(), 401, `"code":16`},
		"no rollout":             {"POST", root + "/v1/traces", "{}", jsonType, "", 401, `"code":16`},
		"unknown rollout":        {"POST", root + "/rollout/x/v1/traces", "{}", jsonType, "", 404, `"code":5`},
		"another method":         {"GET", s.BaseURL() + "/traces", "", jsonType, "", 405, `"code":12`},
		"no endpoint of theirs":  {"POST", s.BaseURL() + "/profiles", "{}", jsonType, "", 404, "not_found"},
		"an endpoint below them": {"POST", s.BaseURL() + "/traces/x", "{}", jsonType, "", 404, "not_found"},
	} {
		r := do(t, c.method, c.url, c.body, c.contentType, c.header)
		if r.status != c.status || c.want == "" && r.body != "" || !strings.Contains(r.body, c.want) {
			t.Errorf("%s: %d %q, want %d %q", name, r.status, r.body, c.status, c.want)
		}
		if again := slices.Contains([]int{429, 502, 503, 504}, r.status); again {
			t.Errorf("%s: exporters try again after %d", name, r.status)
		}
		if (r.header.Get("Allow") != "") != (c.status == 405) {
			t.Errorf("%s: allow %q", name, r.header.Get("Allow"))
		}
	}
	s.mu.Lock()
	s.open = maxOpen
	s.mu.Unlock()
	if r := do(t, "POST", s.BaseURL()+"/traces", "{}", jsonType); r.status != http.StatusTooManyRequests || r.header.Get("Retry-After") == "" {
		t.Errorf("%d %s %v", r.status, r.body, r.header)
	}
	s.mu.Lock()
	s.open = 0
	s.mu.Unlock()
}

// A rollout's spans are bounded, and exporters hear how many were not kept.
func TestSpansAreBounded(t *testing.T) {
	g := testGateway(t, Options{})
	s := open(t, g, always(says("x")))
	var spans otlp
	for i := range telemetry.MaxSpans {
		spans.add(i+1, 0, "x", nil)
	}
	if r := export(t, s, spans.body()); r.body != "{}" {
		t.Error(r.body)
	}
	var more otlp
	more.add(telemetry.MaxSpans+1, 0, "x", nil)
	more.add(telemetry.MaxSpans+2, 0, "x", nil)
	if r := export(t, s, more.body()); r.status != 200 || !strings.Contains(r.body, `"rejectedSpans":"2"`) {
		t.Errorf("%d %s", r.status, r.body)
	}
	s.End()
}
