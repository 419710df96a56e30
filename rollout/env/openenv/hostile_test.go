package openenv

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coder/websocket"

	"github.com/lightswarm/lightswarm/rollout/env/protocol"
)

// hostile is an environment that begins well and answers the first step as the test says.
func hostile(step func(c *connection, m incoming) any) func(*connection) func(incoming) any {
	return func(c *connection) func(incoming) any {
		return func(m incoming) any {
			switch m.Type {
			case sendReset:
				return observed(map[string]any{"question": "?"}, nil, false)
			case sendState:
				return map[string]any{"type": "state", "data": map[string]any{}}
			}
			return step(c, m)
		}
	}
}

func raw(kind websocket.MessageType, text string) func(*connection, incoming) any {
	return func(c *connection, _ incoming) any {
		c.send(kind, text)
		return nil
	}
}

// pieces begins a message and goes on with it n times, as long as it is read. It does not end it.
func pieces(n int) func(*connection, incoming) any {
	return func(c *connection, _ incoming) any {
		w, err := c.ws.Writer(context.Background(), websocket.MessageText)
		for piece := make([]byte, 8<<10); err == nil && n > 0; n-- {
			_, err = w.Write(piece)
		}
		return nil
	}
}

// Whatever a server does wrong ends its episode with a reason, and never in a reward; the next episode has another
// connection and is played.
func TestHostileServers(t *testing.T) {
	deep := strings.Repeat("[", 20_000)
	for name, test := range map[string]struct {
		step   func(*connection, incoming) any
		reason protocol.Reason
		says   string
	}{
		"closes":            {func(c *connection, _ incoming) any { c.ws.Close(1011, "tired"); return nil }, protocol.ReasonServer, "step: the server closed the connection (1011 tired)"},
		"vanishes":          {func(c *connection, _ incoming) any { c.ws.CloseNow(); return nil }, protocol.ReasonServer, "step: the connection to the server is lost"},
		"says nothing":      {func(*connection, incoming) any { return nil }, protocol.ReasonTime, "step: the server took longer than the 1s"},
		"sends too much":    {raw(websocket.MessageText, strings.Repeat("x", maxMessage+1)), protocol.ReasonOutput, "has more than 1048576 bytes"},
		"sends bytes":       {raw(websocket.MessageBinary, `{}`), protocol.ReasonProtocol, "a message that is no text"},
		"no JSON":           {raw(websocket.MessageText, `nonsense`), protocol.ReasonAnswer, "is none of OpenEnv's"},
		"no UTF-8":          {raw(websocket.MessageText, "\"\xff\""), protocol.ReasonAnswer, "it is not UTF-8"},
		"nested":            {raw(websocket.MessageText, `{"type":"observation","data":{"observation":{"question":`+deep), protocol.ReasonAnswer, "is none of OpenEnv's"},
		"other type":        {raw(websocket.MessageText, `{"type":"poem","data":{}}`), protocol.ReasonAnswer, `its type is "poem"`},
		"no data":           {raw(websocket.MessageText, `{"type":"observation"}`), protocol.ReasonAnswer, "is none of OpenEnv's"},
		"no observation":    {raw(websocket.MessageText, `{"type":"observation","data":{"reward":1,"done":true}}`), protocol.ReasonAnswer, "there is no observation in it"},
		"not done or not":   {raw(websocket.MessageText, `{"type":"observation","data":{"reward":1,"observation":{}}}`), protocol.ReasonAnswer, "whether the episode is done"},
		"goes on and on":    {pieces(1 << 30), protocol.ReasonOutput, "has more than 1048576 bytes"},
		"does not finish":   {pieces(1), protocol.ReasonTime, "step: the server took longer than the 1s"},
		"a reward of NaN":   {raw(websocket.MessageText, `{"type":"observation","data":{"reward":NaN,"done":true,"observation":{}}}`), protocol.ReasonAnswer, "is none of OpenEnv's"},
		"a long number":     {raw(websocket.MessageText, `{"type":"error","data":{"code":"VALIDATION_ERROR","errors":[{"loc":[1`+strings.Repeat("0", 100_000)+`]}]}}`), protocol.ReasonAnswer, "is none of OpenEnv's"},
		"a command":         {func(c *connection, _ incoming) any { c.ws.Close(1011, "\x1b]0;title\a"); return nil }, protocol.ReasonServer, "(1011 \uFFFD]0;title\uFFFD)"},
		"a reward in words": {raw(websocket.MessageText, `{"type":"observation","data":{"reward":"high","done":true,"observation":{}}}`), protocol.ReasonAnswer, "is no number"},
		"a reward too high": {raw(websocket.MessageText, `{"type":"observation","data":{"reward":1e400,"done":true,"observation":{}}}`), protocol.ReasonAnswer, "is no number"},
		"its state":         {raw(websocket.MessageText, `{"type":"state","data":{}}`), protocol.ReasonAnswer, "the server answers with its state"},
		"an empty error":    {raw(websocket.MessageText, `{"type":"error","data":{}}`), protocol.ReasonAnswer, "does not say which"},
		"reports":           {func(*connection, incoming) any { return troubled("EXECUTION_ERROR", "it broke") }, protocol.ReasonReported, "step: the server reports EXECUTION_ERROR: it broke"},
		"session error":     {func(*connection, incoming) any { return troubled(codeSession, "lost it") }, protocol.ReasonServer, "the server reports SESSION_ERROR: lost it"},
		"full":              {func(*connection, incoming) any { return troubled(codeCapacity, "full") }, protocol.ReasonServer, "CAPACITY_REACHED"},
		"other fields": {func(*connection, incoming) any {
			return troubled(codeValidation, "Invalid message", map[string]any{"type": "missing", "loc": []any{"move"}, "msg": "Field required"})
		}, protocol.ReasonReported, "VALIDATION_ERROR: move: Field required"},
		"not the field": {func(*connection, incoming) any {
			return troubled(codeValidation, "Invalid message", map[string]any{"type": "extra_forbidden", "loc": []any{"answer"}, "msg": "Extra"})
		}, protocol.ReasonReported, "VALIDATION_ERROR: answer: Extra"},
		"no reward":    {func(*connection, incoming) any { return observed(map[string]any{"a": 1}, nil, true) }, protocol.ReasonAnswer, "the server gave no reward in an episode that has ended"},
		"out of range": {func(*connection, incoming) any { return observed(map[string]any{}, 1.5, true) }, protocol.ReasonAnswer, "reward 1.5 is outside the manifest's range, 0 to 1"},
	} {
		t.Run(name, func(t *testing.T) {
			m := testManifest()
			if test.reason == protocol.ReasonTime {
				m.Limits.Steps = 1000
			}
			var wasBad atomic.Bool // connections are served at once: a lost one may still be when the next begins
			s := (&testServer{play: hostile(func(c *connection, m incoming) any {
				if !wasBad.Swap(true) {
					return test.step(c, m)
				}
				return observed(map[string]any{}, 1.0, true)
			})}).start(t)
			e := open(t, s, m, testSpec())
			p, err := e.Reset(t.Context(), "train", 0)
			if err != nil {
				t.Fatal(err)
			}
			score, err := p.Score(t.Context(), "7")
			if f := failure(t, err); f.Reason != test.reason || !strings.Contains(f.Detail, test.says) || len(f.Detail) > 1000 || f.Detail != protocol.Harmless(f.Detail) {
				t.Errorf("%+v, want %s …%s…", f, test.reason, test.says)
			}
			if score.Reward != 0 || score.Components != nil {
				t.Errorf("scored %+v", score)
			}
			if _, again := p.Score(t.Context(), "7"); again == nil {
				t.Error("it goes on")
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
			if p, err = e.Reset(t.Context(), "train", 0); err != nil {
				t.Fatal(err)
			}
			if score, err = p.Score(t.Context(), "7"); err != nil || score.Reward != 1 {
				t.Errorf("afterwards: %+v, %v", score, err)
			}
			p.Close()
		})
	}
}

// A reply that comes after its time is nobody's: not that of what is asked next, nor of the next episode.
func TestLateReplies(t *testing.T) {
	m := testManifest()
	m.Limits.Steps = 1000
	release, sent := make(chan struct{}), make(chan struct{})
	s := (&testServer{play: hostile(func(c *connection, m incoming) any {
		if m.Data["answer"] == "late" {
			<-release
			defer close(sent)
			c.send(websocket.MessageText, `{"type":"observation","data":{"observation":{},"reward":1,"done":true}}`)
			return nil
		}
		return observed(map[string]any{}, 0.5, true)
	})}).start(t)
	e := open(t, s, m, testSpec())
	p, err := e.Reset(t.Context(), "train", 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Score(t.Context(), "late")
	if f := failure(t, err); f.Reason != protocol.ReasonTime {
		t.Errorf("%+v", f)
	}
	close(release)
	<-sent
	_, err = p.Score(t.Context(), "late")
	if f := failure(t, err); f.Reason != protocol.ReasonTime {
		t.Errorf("asked again: %+v", f)
	}
	p.Close()
	if p, err = e.Reset(t.Context(), "train", 0); err != nil {
		t.Fatal(err)
	}
	if score, err := p.Score(t.Context(), "x"); err != nil || score.Reward != 0.5 {
		t.Errorf("%+v, %v", score, err)
	}
	p.Close()
}

// What a server sends when nothing is asked is not taken for the reply to what is asked next.
func TestUnaskedMessages(t *testing.T) {
	for says, text := range map[string]string{
		`sends "{\"type\":\"observation\"`: `{"type":"observation","data":{"observation":{},"reward":1,"done":true}}`,
		"SESSION_ERROR: tired":             `{"type":"error","data":{"code":"SESSION_ERROR","message":"tired"}}`,
	} {
		s := (&testServer{play: func(c *connection) func(incoming) any {
			return func(m incoming) any {
				if m.Type == sendState {
					return map[string]any{"type": "state", "data": map[string]any{}}
				}
				c.send(websocket.MessageText, `{"type":"observation","data":{"observation":{"question":"?"},"reward":null,"done":false}}`)
				c.send(websocket.MessageText, text)
				return nil
			}
		}}).start(t)
		p, err := open(t, s, testManifest(), testSpec()).Reset(t.Context(), "train", 0)
		if err == nil {
			<-p.(*Episode).s.lost
			_, err = p.Score(t.Context(), "7")
			p.Close()
		}
		if f := failure(t, err); !strings.Contains(f.Detail, says) {
			t.Errorf("%+v, want …%s…", f, says)
		}
	}
}

// What is wrong with a beginning is said.
func TestBadBeginnings(t *testing.T) {
	for says, first := range map[string]any{
		"the observation has no \"question\", which is what the agent is to see; it is {\"quest\":1}": observed(map[string]any{"quest": 1}, nil, false),
		"there is nothing for the agent to see":                                                       observed(map[string]any{"question": nil}, nil, false),
		"reset: the server reports EXECUTION_ERROR: no such task":                                     troubled("EXECUTION_ERROR", "no such task"),
		"reset: the server reports FACTORY_ERROR: out of memory":                                      troubled(codeFactory, "out of memory"),
		"reset: the server answers with its state":                                                    map[string]any{"type": "state", "data": map[string]any{}},
		"reset: the server's message \"{\\\"type\\\":\\\"x\\\"}\"":                                    map[string]any{"type": "x"},
	} {
		s := (&testServer{play: func(*connection) func(incoming) any {
			return func(m incoming) any {
				if m.Type == sendState {
					return troubled("EXECUTION_ERROR", "not reset yet")
				}
				return first
			}
		}}).start(t)
		e := open(t, s, testManifest(), testSpec())
		for range 2*defaultEpisodes + 1 { // none keeps its seat
			_, err := e.Reset(t.Context(), "train", 0)
			if f := failure(t, err); !strings.Contains(f.Detail, says) {
				t.Errorf("%+v, want …%s…", f, says)
			}
		}
	}
}

// A server cannot send the node elsewhere.
func TestRedirects(t *testing.T) {
	s := (&testServer{play: letters}).start(t)
	other := httptest.NewServer(http.RedirectHandler(s.URL+"/ws", http.StatusTemporaryRedirect))
	defer other.Close()
	if _, err := New(Options{Server: other.URL}).Open(t.Context(), newPackage(t, testManifest(), testSpec(), nil)); err == nil || !strings.Contains(err.Error(), "307") {
		t.Errorf("%v", err)
	}
	if n := s.seen.Load(); n != 0 {
		t.Errorf("%d connections to the other server", n)
	}
}

// What answers, and is no OpenEnv server, is not listened to for long, and cannot command the terminal of whoever reads why.
func TestHostileHandshakes(t *testing.T) {
	for name, answer := range map[string]func(w io.Writer){
		"a command":       func(w io.Writer) { io.WriteString(w, "HTTP/1.1 101 Yes\r\n\x1b]0;title\a\r\n\r\n") },
		"another command": func(w io.Writer) { io.WriteString(w, "\x1b]0;title\a\r\n\r\n") },
		"no WebSocket": func(w io.Writer) {
			io.WriteString(w, "HTTP/1.1 101 Yes\r\nConnection: "+strings.Repeat("x", 10_000)+"\r\n\r\n")
		},
		"too much": func(w io.Writer) {
			_, err := io.WriteString(w, "HTTP/1.1 101 Yes\r\n")
			for err == nil {
				_, err = io.WriteString(w, "X: "+strings.Repeat("x", 1000)+"\r\n")
			}
		},
		"a page without end": func(w io.Writer) {
			_, err := io.WriteString(w, "HTTP/1.1 200 OK\r\n\r\n")
			for err == nil {
				_, err = io.WriteString(w, strings.Repeat("x", 1000))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				conn, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				answer(conn)
			}))
			defer s.Close()
			_, err := New(Options{Server: s.URL}).Open(t.Context(), newPackage(t, testManifest(), testSpec(), nil))
			if err == nil {
				t.Fatal("it is a server")
			}
			if text := err.Error(); len(text) > 1000 || text != protocol.Harmless(text) || !strings.Contains(text, "no OpenEnv server answers at") {
				t.Errorf("%q", text)
			}
		})
	}
}

// A context that ends while a reply is awaited ends the episode with its cause.
func TestContextsEndRequests(t *testing.T) {
	asked := make(chan struct{})
	s := (&testServer{play: hostile(func(*connection, incoming) any { close(asked); return nil })}).start(t)
	e := open(t, s, testManifest(), testSpec())
	p, err := e.Reset(t.Context(), "train", 0)
	if err != nil {
		t.Fatal(err)
	}
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-asked
		cancel(enough)
	}()
	if _, err := p.Score(ctx, ""); !errors.Is(err, enough) {
		t.Errorf("%v", err)
	}
	p.Close()
	<-p.(*Episode).s.ended
}

// A tool that cannot be reached is the server's failure; one that fails is the agent's to read.
func TestServerTools(t *testing.T) {
	var answer any
	s := (&testServer{play: func(c *connection) func(incoming) any {
		inner := letters(c)
		return func(m incoming) any {
			if m.Data["type"] == "call_tool" {
				return answer
			}
			return inner(m)
		}
	}}).start(t)
	spec := testSpec()
	spec.ServerTools = true
	e := open(t, s, testManifest(), spec)
	result := func(v any) any {
		return observed(map[string]any{"tool_name": "spell", "result": v, "error": nil}, nil, false)
	}
	for _, c := range []struct {
		answer any
		want   string
		reason protocol.Reason
	}{
		{result("p i e"), "p i e", ""},
		{result(map[string]any{"a": []any{1, "x"}}), `{"a":[1,"x"]}`, ""},
		{result(nil), "", ""},
		{result(map[string]any{"content": []any{}}), "", ""},
		{result(map[string]any{"content": []any{map[string]any{"type": "text", "text": "a"}, map[string]any{"type": "image"}}, "is_error": true}), "error: a\n(image)", ""},
		{observed(map[string]any{"tool_name": "spell", "error": map[string]any{"error_type": "execution_error", "message": "no"}}, nil, false), "error: no", ""},
		{observed(map[string]any{"question": "done?", "metadata": map[string]any{"truth": 1}}, 0.0, true), "done?\nThe episode has ended.", ""},
		{observed(map[string]any{"tool_name": "spell", "error": map[string]any{"error_type": "transport_error", "message": "gone"}}, nil, false), "", protocol.ReasonReported},
		{troubled(codeValidation, "Invalid message"), "", protocol.ReasonReported},
	} {
		answer = c.answer
		p, err := e.Reset(t.Context(), "train", 0)
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.Call(t.Context(), "spell", "{}")
		if c.reason != "" {
			if f := failure(t, err); f.Reason != c.reason {
				t.Errorf("%+v", f)
			}
			if _, err := p.Score(t.Context(), "3"); err == nil {
				t.Error("scored")
			}
		} else if err != nil || got != c.want {
			t.Errorf("%q, %v, want %q", got, err, c.want)
		}
		p.Close()
	}
}

// An answer that is no valid action gets the smallest reward.
func TestRefusedAnswer(t *testing.T) {
	s := (&testServer{play: hostile(func(*connection, incoming) any {
		return troubled(codeValidation, "Invalid message", map[string]any{"type": "int_parsing", "loc": []any{"answer"}, "msg": "no integer"})
	})}).start(t)
	m := testManifest()
	m.RewardMin = -2
	p, err := open(t, s, m, testSpec()).Reset(t.Context(), "train", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if score, err := p.Score(t.Context(), "seven"); err != nil || score.Reward != -2 {
		t.Errorf("%+v, %v", score, err)
	}
}

// FuzzDecodeReply: whatever a server sends, reading it returns, and what is read can be shown.
func FuzzDecodeReply(f *testing.F) {
	for _, seed := range []any{
		observed(map[string]any{"question": "?", "metadata": map[string]any{"a": []int{1}}}, 0.5, true),
		observed(map[string]any{"tool_name": "x", "result": map[string]any{"content": []any{map[string]any{"type": "text", "text": "a"}}}}, nil, false),
		observed(map[string]any{"tools": []any{map[string]any{"name": "a", "input_schema": map[string]any{}}}}, true, false),
		troubled(codeValidation, "Invalid message", map[string]any{"type": "missing", "loc": []any{"a", 1}, "msg": "m"}),
		map[string]any{"type": "state", "data": map[string]any{"step_count": 3}},
	} {
		raw, err := json.Marshal(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	specs := []*Spec{{}, {Observe: []string{"metadata.a"}}, {Observe: []string{"question", "metadata.a.b", "tools"}}}
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := decodeReply(raw)
		if err != nil {
			return
		}
		kinds := 0
		for _, there := range []bool{r.observation != nil, r.state != nil, r.trouble != nil} {
			if there {
				kinds++
			}
		}
		if kinds != 1 {
			t.Fatalf("%d kinds of replies at once", kinds)
		}
		if r.trouble != nil {
			if len(r.trouble.String()) > 4096 || len(r.trouble.refused) > maxRefusals {
				t.Errorf("a trouble of %d bytes", len(r.trouble.String()))
			}
			r.trouble.blames(func(string) bool { return true })
			return
		}
		o := r.observation
		if o == nil {
			o = r.state
		}
		for _, s := range specs {
			s.show(o)
			toolResult(o)
		}
		if tools, err := listTools(o); err == nil && len(tools) > maxTools {
			t.Errorf("%d tools", len(tools))
		}
		if slices.Contains(keys(specs[0].show(o)), metadataName) {
			t.Error("the metadata is shown")
		}
	})
}

// keys are the fields of a JSON object.
func keys(text string) (list []string) {
	var o object
	if json.Unmarshal([]byte(text), &o) == nil {
		for name := range o {
			list = append(list, name)
		}
	}
	return list
}
