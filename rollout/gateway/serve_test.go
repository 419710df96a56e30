package gateway

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/rollout/agent"
)

func TestOnlyLoopback(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", "[::]:0", ":0", "127.0.0.1"} {
		if g, err := Serve(Options{Address: address}); err == nil {
			g.Close(t.Context())
			t.Errorf("serves on %q", address)
		}
	}
}

func TestEveryDialectAnswers(t *testing.T) {
	g := testGateway(t, Options{})
	s := open(t, g, always(says("hello")))
	for endpoint, body := range map[string]string{
		"chat/completions": `{"messages":[{"role":"user","content":"hi"}]}`,
		"completions":      `{"prompt":"hi"}`,
		"responses":        `{"input":"hi"}`,
		"messages":         `{"max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`,
	} {
		url := s.BaseURL() + "/" + endpoint
		r := do(t, "POST", url, body)
		if r.status != 200 || !strings.Contains(r.body, `"hello"`) || !strings.Contains(r.body, s.ID()+"-") || !json.Valid([]byte(r.body)) {
			t.Errorf("%s: %d %s", endpoint, r.status, r.body)
		}
		r = do(t, "POST", url, strings.Replace(body, "{", `{"stream":true,`, 1))
		if r.status != 200 || r.header.Get("Content-Type") != "text/event-stream" || !strings.Contains(r.body, `hello`) {
			t.Errorf("%s, streamed: %d %s", endpoint, r.status, r.body)
		}
		if r := do(t, "POST", url, "{"); r.status != 400 {
			t.Errorf("%s, broken: %d %s", endpoint, r.status, r.body)
		}
	}
}

func TestRefusals(t *testing.T) {
	g := testGateway(t, Options{MaxBody: 1000})
	s := open(t, g, always(says("hello")))
	other := open(t, g, always(says("other")))
	ended := open(t, g, always(says("ended")))
	ended.End()
	root := "http://" + g.Address()
	chat := chatBody("hi", "")
	bearer := "Authorization: Bearer "
	for name, c := range map[string]struct {
		method, url, body, header string
		status                    int
		code                      string
	}{
		"no such path":          {"GET", root + "/", "", "", 404, "not_found"},
		"no version":            {"POST", root + "/rollout/" + s.ID() + "/chat/completions", chat, "", 404, "not_found"},
		"no such endpoint":      {"POST", s.BaseURL() + "/embeddings", "{}", "", 404, "not_found"},
		"wrong method":          {"GET", s.BaseURL() + "/chat/completions", "", "", 405, "method_not_allowed"},
		"wrong method, models":  {"POST", s.BaseURL() + "/models", "", "", 405, "method_not_allowed"},
		"no rollout":            {"POST", root + "/v1/chat/completions", chat, "", 401, "invalid_api_key"},
		"unknown key":           {"POST", root + "/v1/chat/completions", chat, bearer + "sk-x", 401, "invalid_api_key"},
		"unknown rollout":       {"POST", root + "/rollout/x/v1/chat/completions", chat, "", 404, "rollout_not_found"},
		"another's key":         {"POST", s.BaseURL() + "/chat/completions", chat, bearer + other.Key(), 401, "invalid_api_key"},
		"an old key":            {"POST", s.BaseURL() + "/chat/completions", chat, bearer + ended.Key(), 401, "invalid_api_key"},
		"another's x-api-key":   {"POST", s.BaseURL() + "/chat/completions", chat, "X-Api-Key: " + other.Key(), 401, "invalid_api_key"},
		"unknown agent, path":   {"POST", root + "/rollout/" + s.ID() + "/agent/boss/v1/chat/completions", chat, "", 404, "agent_not_found"},
		"unknown agent, header": {"POST", s.BaseURL() + "/chat/completions", chat, "X-Lightswarm-Agent: boss", 404, "agent_not_found"},
		"unknown agent, model":  {"POST", s.BaseURL() + "/chat/completions", strings.Replace(chat, "gpt-4o", "policy/boss", 1), "", 404, "agent_not_found"},
		"unknown model":         {"GET", s.BaseURL() + "/models/gpt-4o", "", "", 404, "model_not_found"},
		"large body":            {"POST", s.BaseURL() + "/chat/completions", chatBody(strings.Repeat("x", 1000), ""), "", 413, "request_too_large"},
		"no body":               {"POST", s.BaseURL() + "/chat/completions", " ", "", 400, ""},
		"deep body":             {"POST", s.BaseURL() + "/chat/completions", strings.Repeat("[", 200), "", 400, ""},
		"no JSON":               {"POST", s.BaseURL() + "/chat/completions", "hello", "", 400, ""},
		"no reward":             {"POST", s.BaseURL() + "/reward", "{}", "", 400, ""},
		"a huge reward":         {"POST", s.BaseURL() + "/reward", `{"reward":1e999}`, "", 400, ""},
		"ended, by path":        {"POST", ended.BaseURL() + "/chat/completions", chat, "", 409, "rollout_ended"},
		"ended, by key":         {"POST", root + "/v1/chat/completions", chat, bearer + ended.Key(), 409, "rollout_ended"},
		"ended, by header":      {"POST", root + "/v1/chat/completions", chat, rolloutHeader + ": " + ended.ID(), 409, "rollout_ended"},
		"ended, models":         {"GET", ended.BaseURL() + "/models", "", "", 409, "rollout_ended"},
		"ended, reward":         {"POST", ended.BaseURL() + "/reward", `{"reward":1}`, "", 409, "rollout_ended"},
	} {
		t.Run(name, func(t *testing.T) {
			r := do(t, c.method, c.url, c.body, c.header)
			if code := r.code(t); r.status != c.status || code != c.code {
				t.Errorf("%d %s, want %d %s", r.status, r.body, c.status, c.code)
			}
			if final := r.header.Get("X-Should-Retry") == "false"; final != (c.status != 400) {
				t.Errorf("%d, x-should-retry %q", r.status, r.header.Get("X-Should-Retry"))
			}
			if (r.header.Get("Allow") != "") != (c.status == 405) {
				t.Errorf("allow %q", r.header.Get("Allow"))
			}
		})
	}
	if r := do(t, "POST", ended.BaseURL()+"/messages", "{}"); !strings.Contains(r.body, `"type":"error"`) {
		t.Errorf("not in the dialect's form: %s", r.body)
	}
}

// A page of a name that was bound to 127.0.0.1 reaches the listener, and as it knows no id and no key, nothing else; other
// pages may not even read what is refused.
func TestWebPagesReachNothing(t *testing.T) {
	g := testGateway(t, Options{})
	llm := always(says("hello"))
	s := open(t, g, llm)
	for _, c := range [][2]string{
		{"GET", "/v1/models"}, {"GET", "/rollout/x/v1/models"}, {"POST", "/v1/chat/completions"}, {"POST", "/v1/reward"},
		{"OPTIONS", "/v1/chat/completions"}, {"OPTIONS", "/rollout/" + s.ID() + "/v1/chat/completions"}, {"GET", "/"},
	} {
		q, err := http.NewRequestWithContext(t.Context(), c[0], "http://"+g.Address()+c[1], strings.NewReader(chatBody("hi", "")))
		if err != nil {
			t.Fatal(err)
		}
		q.Host = "page.example"
		q.Header.Set("Origin", "http://page.example")
		q.Header.Set("Content-Type", "text/plain")
		q.Header.Set("Access-Control-Request-Method", "POST")
		r, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if r.StatusCode < 400 || r.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s %s: %d %v", c[0], c[1], r.StatusCode, r.Header)
		}
	}
	if len(llm.requests()) > 0 {
		t.Error("the policy was asked")
	}
}

// A client that writes all of a large body before it reads gets its refusal, and not a connection that is closed.
func TestRefusalsReadTheBody(t *testing.T) {
	g := testGateway(t, Options{MaxBody: 6 << 20})
	s := open(t, g, always(says("hello")))
	ended := open(t, g, always(says("ended")))
	ended.End()
	body := chatBody(strings.Repeat("x", 20<<20), "")
	for url, want := range map[string]int{ended.BaseURL() + "/chat/completions": 409, s.BaseURL() + "/chat/completions": 413, s.BaseURL() + "/embeddings": 404} {
		// Written down before the connection is there, whose header is waited for only so long.
		text := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", url, len(body), body)
		conn, err := net.Dial("tcp", g.Address())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, text); err != nil {
			t.Errorf("%d: write: %v", want, err)
		}
		r, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%d: read: %v", want, err)
		}
		if r.StatusCode != want || r.Header.Get("X-Should-Retry") != "false" {
			t.Errorf("%d %v, want %d", r.StatusCode, r.Header, want)
		}
		r.Body.Close()
		conn.Close()
	}
}

// answers is a client that takes whatever it gets.
type answers struct{ *httptest.ResponseRecorder }

func (answers) SetWriteDeadline(time.Time) error { return nil }

// An answer that comes when its client has gone is lost, and not delivered.
func TestAnswersToNobodyAreLost(t *testing.T) {
	g := testGateway(t, Options{})
	for _, more := range []string{"", `"stream":true`} {
		s := open(t, g, always(says("hello")))
		postChat(t, s, "hi", more)
		gone, leave := context.WithCancel(t.Context())
		leave()
		for range 20 {
			w := answers{httptest.NewRecorder()}
			r := httptest.NewRequestWithContext(gone, "POST", s.BaseURL(), nil)
			r.Header.Set("X-Stainless-Retry-Count", "1")
			if fault := s.serveCall(w, r, route{Endpoint: "chat/completions"}, chatCompletions{}, []byte(chatBody("hi", more))); fault != nil {
				t.Fatal(fault)
			}
			if lost(s) != 1 || w.Body.Len() > 0 {
				t.Fatalf("%d are lost, and %q was sent", lost(s), w.Body)
			}
		}
	}
}

// Requests find their session by path, by key and by header, and their agent by path, header and model.
func TestBinding(t *testing.T) {
	g := testGateway(t, Options{})
	echo := func(context.Context, agent.Request, int) (chat.Message, error) { return says("ok"), nil }
	one, two := &fakeLLM{behave: echo}, &fakeLLM{behave: echo}
	s := open(t, g, one)
	open(t, g, two)
	root := "http://" + g.Address()
	path, key, header := root+"/rollout/"+s.ID(), "Authorization: bearer "+s.Key(), rolloutHeader+": "+s.ID()
	for i, c := range []struct {
		url, model string
		headers    []string
		agent      string
	}{
		{path + "/v1/chat/completions", "gpt-4o", nil, "solver"},
		{path + "//v1//chat/completions/", "policy", []string{key}, "solver"},
		{path + "/v1/chat/completions", "gpt-4o", []string{"Authorization: Bearer sk-hard-coded"}, "solver"},
		{path + "/agent/critic/v1/chat/completions", "policy/solver", []string{agentHeader + ": solver"}, "critic"},
		{path + "/v1/chat/completions", "policy/solver", []string{agentHeader + ": critic"}, "critic"},
		{path + "/v1/chat/completions", "policy/critic", nil, "critic"},
		{root + "/v1/chat/completions", "", []string{key}, "solver"},
		{root + "/v1/chat/completions", "", []string{"X-Api-Key: " + s.Key()}, "solver"},
		{root + "/v1/chat/completions", "policy/critic", []string{header}, "critic"},
		{root + "/v1/chat/completions", "", []string{header, "Authorization: Bearer sk-hard-coded"}, "solver"},
	} {
		r := do(t, "POST", c.url, strings.Replace(chatBody(fmt.Sprint(i), ""), "gpt-4o", c.model, 1), c.headers...)
		if r.status != 200 || !strings.Contains(r.body, `"model":"policy"`) {
			t.Errorf("%d: %d %s", i, r.status, r.body)
			continue
		}
		if seen := one.requests(); len(seen) != i+1 || seen[i].Agent != c.agent || seen[i].Messages[0].Content != fmt.Sprint(i) {
			t.Fatalf("%d: asked %+v", i, seen[len(seen)-1])
		}
	}
	if len(two.requests()) != 0 {
		t.Error("the other rollout was asked")
	}
	want := []string{"policy", "policy/solver", "policy/critic"}
	var list struct{ Data []struct{ ID string } }
	r := do(t, "GET", s.BaseURL()+"/models", "")
	if err := json.Unmarshal([]byte(r.body), &list); err != nil || len(list.Data) != len(want) {
		t.Fatalf("%s: %v", r.body, err)
	}
	for i, id := range want {
		if one := do(t, "GET", s.BaseURL()+"/models/"+id, ""); list.Data[i].ID != id || !strings.Contains(one.body, `"id":"`+id+`"`) {
			t.Errorf("model %d is %s, alone %s", i, list.Data[i].ID, one.body)
		}
	}
}

func TestWhatTheLLMReports(t *testing.T) {
	g := testGateway(t, Options{})
	for name, c := range map[string]struct {
		err       error
		status    int
		want      string // the code, or the text
		final     bool
		truncated bool
		failed    bool
	}{
		"malformed":       {fmt.Errorf("call 0: %w", agent.ErrMalformed), 200, "text", false, false, false},
		"cut":             {agent.ErrCut, 200, "text", false, false, false},
		"no room":         {agent.ErrNoRoom, 400, "context_length_exceeded", true, true, false},
		"exhausted":       {agent.ErrExhausted, 409, "calls_exhausted", true, true, false},
		"ended":           {agent.ErrEnded, 409, "rollout_ended", true, false, false},
		"bad messages":    {fmt.Errorf("render: %w: odd", chat.ErrConversation), 400, "", false, false, false},
		"engine failure":  {errors.New("secret path"), 503, "engine_failed", false, false, true},
		"engine nonsense": {nil, 503, "engine_failed", false, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			var llm agent.LLM = &fakeLLM{behave: func(context.Context, agent.Request, int) (chat.Message, error) { return says("text"), c.err }}
			if name == "engine nonsense" {
				llm = nonsense{}
			}
			s := open(t, g, llm)
			r := postChat(t, s, "hi", "")
			if r.status != c.status || (r.header.Get("X-Should-Retry") == "false") != c.final || strings.Contains(r.body, "secret") {
				t.Errorf("%d %v %s", r.status, r.header, r.body)
			}
			if r.status == 200 {
				if got := r.content(t); got != c.want {
					t.Errorf("text %q", got)
				}
				if finish := map[bool]string{true: "length", false: "stop"}[name == "cut"]; !strings.Contains(r.body, `"finish_reason":"`+finish+`"`) {
					t.Errorf("%s", r.body)
				}
			} else if code := r.code(t); code != c.want {
				t.Errorf("code %s", code)
			}
			sum := s.End()
			if sum.Truncated != c.truncated || (sum.Failure != nil) != c.failed || sum.Replies != map[bool]int{true: 1}[c.status == 200] {
				t.Errorf("summary %+v", sum)
			}
		})
	}
}

// nonsense is an engine without sense.
type nonsense struct{}

func (nonsense) Complete(context.Context, agent.Request) (agent.Reply, error) {
	r := newReply(says("x"), 0)
	r.LogProbs[0] = float32(math.NaN())
	return r, nil
}

// What an agent asks of sampling and form neither fails nor reaches the policy; what it asks of the answer is held.
func TestWhatIsAsked(t *testing.T) {
	g := testGateway(t, Options{})
	llm := always(says("one two"))
	s := open(t, g, llm)
	r := postChat(t, s, "hi", `"temperature":9,"top_p":-1,"seed":1,"logit_bias":{"1":2},"user":"x","new_field":[{}],"n":2,"stop":" t","logprobs":true,
		"tools":[{"type":"function","function":{"name":"calculator"}}],"tool_choice":"none"`)
	var got struct {
		ID      string
		Choices []struct {
			Index   int
			Message struct{ Content string }
			Finish  string `json:"finish_reason"`
			Log     struct {
				Content []struct {
					Token   string
					LogProb float64
				}
			} `json:"logprobs"`
		}
		Usage map[string]int
	}
	if err := json.Unmarshal([]byte(r.body), &got); err != nil || len(got.Choices) != 2 {
		t.Fatalf("%s: %v", r.body, err)
	}
	for i, c := range got.Choices {
		if c.Index != i || c.Message.Content != "one" || c.Finish != "stop" || len(c.Log.Content) != 5 || c.Log.Content[0].Token != "o" || c.Log.Content[0].LogProb != -0.5 {
			t.Errorf("choice %+v", c)
		}
	}
	if want := map[string]int{"prompt_tokens": 11, "completion_tokens": 10, "total_tokens": 21}; !cmp.Equal(got.Usage, want) || got.ID != "chatcmpl-"+s.ID()+"-0" {
		t.Errorf("%s, usage %v", got.ID, got.Usage)
	}
	if seen := llm.requests(); len(seen) != 2 || seen[0].Tools != nil || seen[1].Tools != nil {
		t.Errorf("asked %+v", seen)
	}
	r = postChat(t, s, "hi", `"tools":[{"type":"function","function":{"name":"calculator","parameters":{"type":"object"}}}],"tool_choice":"required"`)
	if r.code(t) != "unsupported" || r.status != http.StatusBadRequest {
		t.Errorf("%d %s", r.status, r.body)
	}
	if seen := llm.requests(); len(seen) != 3 || len(seen[2].Tools) != 1 || seen[2].Tools[0].Parameters != `{"type":"object"}` {
		t.Errorf("asked %+v", seen[2])
	}
	if sum := s.End(); sum.Answer != "one" || sum.Replies != 2 {
		t.Errorf("summary %+v", sum)
	}
}

func TestRewards(t *testing.T) {
	g := testGateway(t, Options{})
	s := open(t, g, always(callsTools("{}")))
	postChat(t, s, "hi", "")
	for _, body := range []string{`{"reward":1}`, `{"reward":-0.5,"components":{"style":2}}`} {
		if r := do(t, "POST", s.BaseURL()+"/reward", body); r.status != 200 {
			t.Errorf("%d %s", r.status, r.body)
		}
	}
	want := Summary{Replies: 1, Reward: &Reward{Value: -0.5, Components: map[string]float64{"style": 2}}}
	want.Feedback = &agent.Feedback{Reward: &want.Reward.Value, Components: want.Reward.Components}
	for range 2 {
		if diff := cmp.Diff(want, s.End()); diff != "" {
			t.Error(diff)
		}
	}
}
