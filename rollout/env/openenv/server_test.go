package openenv

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/coder/websocket"

	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/protocol"
	"github.com/lightswarm/lightswarm/wire"
)

// testServer speaks OpenEnv's wire, as its own servers do: one connection is one environment, replies have no numbers.
type testServer struct {
	// places is how many connections there may be; 0 is any number.
	places int64
	// play makes an environment. It is asked with each message and returns the reply; a nil reply is none.
	play func(c *connection) func(m incoming) any

	*httptest.Server
	taken, seen atomic.Int64
	mu          sync.Mutex
	got         []incoming // guarded by mu; every message
	ended       sync.WaitGroup
}

// incoming is a message to the server.
type incoming struct {
	Type string         `json:"type"`
	Data map[string]any `json:"data"`
}

// connection is one of the server's.
type connection struct {
	ws *websocket.Conn
	t  testing.TB
}

// send sends what a hostile server might, as it is.
func (c *connection) send(kind websocket.MessageType, raw string) {
	c.ws.Write(context.Background(), kind, []byte(raw))
}

func (s *testServer) start(t testing.TB) *testServer {
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/ws" {
			http.NotFound(w, r)
			return
		}
		// Before the connection is taken over: until then Close waits for it.
		s.ended.Add(1)
		defer s.ended.Done()
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		s.serve(t, &connection{ws, t})
	}))
	t.Cleanup(func() {
		s.Close()
		s.ended.Wait()
	})
	return s
}

func (s *testServer) serve(t testing.TB, c *connection) {
	defer c.ws.CloseNow()
	s.seen.Add(1)
	defer s.taken.Add(-1)
	if n := s.taken.Add(1); s.places > 0 && n > s.places {
		c.send(websocket.MessageText, `{"type":"error","data":{"message":"Server at capacity","code":"CAPACITY_REACHED","active_sessions":1,"max_sessions":1}}`)
		c.ws.Close(websocket.StatusNormalClosure, "")
		return
	}
	play := s.play(c)
	for {
		_, raw, err := c.ws.Read(context.Background())
		if err != nil {
			return
		}
		var m incoming
		if err := json.Unmarshal(raw, &m); err != nil {
			t.Errorf("the server gets %q: %v", raw, err)
			return
		}
		// Python's servers fail at either.
		if !utf8.Valid(raw) || bytes.Contains(raw, []byte(`\ud`)) {
			t.Errorf("the server gets what is no text: %q", raw)
		}
		s.mu.Lock()
		s.got = append(s.got, m)
		s.mu.Unlock()
		if m.Type == sendClose {
			// The place is free before the connection is closed.
			s.taken.Add(-1)
			c.ws.Close(websocket.StatusNormalClosure, "")
			s.taken.Add(1)
			return
		}
		if answer := play(m); answer != nil {
			out, err := json.Marshal(answer)
			if err != nil {
				t.Error(err)
				return
			}
			c.send(websocket.MessageText, string(out))
		}
	}
}

// messages are those that the server got.
func (s *testServer) messages() []incoming {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]incoming(nil), s.got...)
}

// What servers answer.
func observed(observation map[string]any, reward any, done bool) any {
	return map[string]any{"type": "observation", "data": map[string]any{"observation": observation, "reward": reward, "done": done}}
}

func troubled(code, text string, refused ...map[string]any) any {
	data := map[string]any{"code": code, "message": text}
	if len(refused) > 0 {
		data["errors"] = refused
	}
	return map[string]any{"type": "error", "data": data}
}

// letters is a small environment: how often a letter is in a word. Its tools are the server's own.
func letters(*connection) func(incoming) any {
	word, letter, steps := "", "", 0
	return func(m incoming) any {
		switch m.Type {
		case sendReset:
			seed, _ := m.Data["seed"].(float64)
			r := rand.New(rand.NewPCG(uint64(seed), 7))
			word, letter, steps = "", string("abc"[r.IntN(3)]), 0
			for range 8 {
				word += string("abc"[r.IntN(3)])
			}
			if w, ok := m.Data["word"].(string); ok {
				word = w
			}
			return observed(map[string]any{"question": fmt.Sprintf("How often is %s in %s?", letter, word), "metadata": map[string]any{"truth": strings.Count(word, letter)}}, nil, false)
		case sendState:
			return map[string]any{"type": "state", "data": map[string]any{"episode_id": nil, "step_count": steps}}
		}
		steps++
		switch m.Data["type"] {
		case "list_tools":
			schema := map[string]any{"type": "object", "properties": map[string]any{"word": map[string]any{"type": "string"}}}
			return observed(map[string]any{"tools": []any{
				map[string]any{"name": "spell", "description": "Spells.", "input_schema": schema},
				map[string]any{"name": "submit", "description": "Submits.", "input_schema": schema},
			}}, nil, false)
		case "call_tool":
			arguments, _ := m.Data["arguments"].(map[string]any)
			given, ok := arguments["word"].(string)
			if m.Data["tool_name"] == "submit" {
				return observed(map[string]any{"metadata": map[string]any{}}, arguments["answer"] == fmt.Sprint(strings.Count(word, letter)), true)
			}
			if !ok {
				return observed(map[string]any{"tool_name": "spell", "result": nil, "error": map[string]any{"error_type": "invalid_args", "message": "word is missing"}}, nil, false)
			}
			return observed(map[string]any{"tool_name": "spell", "error": nil, "result": map[string]any{
				"content": []any{map[string]any{"type": "text", "text": strings.Join(strings.Split(given, ""), " ")}}, "is_error": false}}, nil, false)
		}
		if _, ok := m.Data["answer"].(string); !ok {
			return troubled(codeValidation, "Invalid message", map[string]any{"type": "missing", "loc": []any{"answer"}, "msg": "Field required"})
		}
		reward := 0.0
		if m.Data["answer"] == fmt.Sprint(strings.Count(word, letter)) {
			reward = 1
		}
		return observed(map[string]any{"question": ""}, reward, true)
	}
}

// solver solves its tasks.
var solver = env.PlayerFunc(func(ctx context.Context, _ string, _ uint64, e env.Episode) (string, error) {
	var letter, word string
	task := e.Messages()[len(e.Messages())-1].Content
	if _, err := fmt.Sscanf(strings.TrimSuffix(task, "?"), "How often is %s in %s", &letter, &word); err != nil {
		return "", err
	}
	if len(e.Tools()) > 0 {
		if _, err := e.Call(ctx, "spell", fmt.Sprintf(`{"word":%q}`, word)); err != nil {
			return "", err
		}
	}
	return fmt.Sprint(strings.Count(word, letter)), nil
})

func testManifest() wire.EnvironmentManifest {
	return wire.EnvironmentManifest{
		Name: "letters", Version: "1.0.0", Licence: "Apache-2.0", Kind: Kind, Entry: SpecFile,
		Splits:    []wire.Split{{Name: "train", Tasks: 1000}, {Name: "validation", Tasks: 10}},
		RewardMin: 0, RewardMax: 1, Determinism: wire.DeterminismStochastic, Agents: []string{"solver"},
		Limits: wire.EpisodeLimits{Steps: 20_000},
	}
}

func testSpec() *Spec {
	return &Spec{Server: "the test's", Observe: []string{"question"}, Answer: &Answer{Field: "answer"}, Reward: RewardSum}
}

func newPackage(t testing.TB, m wire.EnvironmentManifest, s *Spec, more map[string][]byte) *env.Package {
	t.Helper()
	raw, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{SpecFile: raw}
	for name, content := range more {
		files[name] = content
	}
	p, err := env.NewPackage(m, files)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// open opens an environment on a server, and closes it with the test.
func open(t testing.TB, s *testServer, m wire.EnvironmentManifest, spec *Spec) *Environment {
	t.Helper()
	e, err := New(Options{Servers: map[string]string{"letters": s.URL}}).Open(context.WithoutCancel(t.Context()), newPackage(t, m, spec, nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Close(e); err != nil {
			t.Error(err)
		}
	})
	return e.(*Environment)
}

// failure is what an error says of an environment.
func failure(t testing.TB, err error) protocol.Failure {
	t.Helper()
	var f *protocol.Failure
	if !errors.As(err, &f) {
		t.Fatalf("%v is no failure of the environment", err)
	}
	return *f
}
