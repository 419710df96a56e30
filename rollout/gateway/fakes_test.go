package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/rollout/agent"
)

// fakeLLM answers as behave has it; call counts from 0. A message's tokens are the bytes of its text, with the marks of
// calls as letters and a mark at the end.
type fakeLLM struct {
	behave func(ctx context.Context, r agent.Request, call int) (chat.Message, error)

	mu   sync.Mutex
	seen []agent.Request // guarded by mu
}

const (
	callMark = 0x1001 + iota
	argsMark
	endMark
)

func (l *fakeLLM) Complete(ctx context.Context, r agent.Request) (agent.Reply, error) {
	l.mu.Lock()
	call := len(l.seen)
	l.seen = append(l.seen, r)
	l.mu.Unlock()
	m, err := l.behave(ctx, r, call)
	reply := newReply(m, call)
	reply.Prompt = make([]int32, 10+len(r.Messages))
	return reply, err
}

// requests are the calls so far.
func (l *fakeLLM) requests() []agent.Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen[:len(l.seen):len(l.seen)]
}

// newReply is a whole reply that says m.
func newReply(m chat.Message, call int) agent.Reply {
	r := agent.Reply{Message: m, Call: call}
	add := func(id int32, piece string) {
		r.Message.Tokens = append(r.Message.Tokens, id)
		r.Pieces = append(r.Pieces, piece)
		r.LogProbs = append(r.LogProbs, -0.5)
	}
	text := func(s string) {
		for i := range len(s) {
			add(int32(s[i]), s[i:i+1])
		}
	}
	r.Message.Tokens = nil
	text(m.Content)
	for _, c := range m.ToolCalls {
		add(callMark, "<call>")
		text(c.Name)
		add(argsMark, "<args>")
		text(c.Arguments)
	}
	add(endMark, "<end>")
	return r
}

func says(s string) chat.Message { return chat.Message{Role: chat.Assistant, Content: s} }

func callsTools(arguments ...string) chat.Message {
	m := says("")
	for _, a := range arguments {
		m.ToolCalls = append(m.ToolCalls, chat.ToolCall{ID: "call_0", Name: "calculator", Arguments: a})
	}
	return m
}

// always is a policy that says one thing.
func always(m chat.Message) *fakeLLM {
	return &fakeLLM{behave: func(context.Context, agent.Request, int) (chat.Message, error) { return m, nil }}
}

// testGateway is a gateway that is closed with the test.
func testGateway(t testing.TB, o Options) *Gateway {
	t.Helper()
	g, err := Serve(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := g.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return g
}

// open opens a session for two agents.
func open(t testing.TB, g *Gateway, llm agent.LLM) *Session {
	t.Helper()
	s, err := g.Open(context.Background(), SessionOptions{LLM: llm, Agents: []string{"solver", "critic"}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// response is what came back.
type httpResponse struct {
	status int
	header http.Header
	body   string
}

// code is the code of the error that came back.
func (r httpResponse) code(t testing.TB) string {
	t.Helper()
	var e struct {
		Error struct{ Message, Type, Code string }
	}
	if err := json.Unmarshal([]byte(r.body), &e); err != nil || e.Error.Message == "" || e.Error.Type == "" {
		t.Fatalf("%q is no error: %v", r.body, err)
	}
	return e.Error.Code
}

// do makes a request with headers given as "Name: value".
func do(t testing.TB, method, url, body string, headers ...string) httpResponse {
	t.Helper()
	r, err := try(context.Background(), method, url, body, headers...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func try(ctx context.Context, method, url, body string, headers ...string) (httpResponse, error) {
	q, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return httpResponse{}, err
	}
	for _, h := range headers {
		if name, value, ok := strings.Cut(h, ": "); ok {
			q.Header.Set(name, value)
		}
	}
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		return httpResponse{}, err
	}
	defer r.Body.Close()
	content, err := io.ReadAll(r.Body)
	return httpResponse{r.StatusCode, r.Header, string(content)}, err
}

// postChat sends a chat request whose messages are one user's, with more fields if there are some.
func postChat(t testing.TB, s *Session, content, more string, headers ...string) httpResponse {
	t.Helper()
	return do(t, "POST", s.BaseURL()+"/chat/completions", chatBody(content, more), headers...)
}

func chatBody(content, more string) string {
	var b bytes.Buffer
	b.WriteString(`{"model":"gpt-4o","messages":[{"role":"user","content":`)
	b.Write(mustJSON(content))
	b.WriteString(`}]`)
	if more != "" {
		b.WriteString("," + more)
	}
	return b.String() + "}"
}

// content is the text of a chat completion.
func (r httpResponse) content(t testing.TB) string {
	t.Helper()
	var c struct {
		Choices []struct{ Message struct{ Content string } }
	}
	if err := json.Unmarshal([]byte(r.body), &c); err != nil || r.status != 200 || len(c.Choices) == 0 {
		t.Fatalf("%d %s: %v", r.status, r.body, err)
	}
	return c.Choices[0].Message.Content
}
