package openenv

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/drivertest"
	"github.com/lightswarm/lightswarm/rollout/env/protocol"
	"github.com/lightswarm/lightswarm/wire"
)

// Environments of all forms are what a driver makes has to be.
func TestDriver(t *testing.T) {
	tools := testSpec()
	tools.Prompt, tools.ServerTools, tools.Components = "Answer with a number.", true, []string{"state.step_count"}
	submitted := testSpec()
	submitted.ServerTools, submitted.Answer = true, &Answer{Field: "answer", Tool: "submit"}
	for name, spec := range map[string]*Spec{"answer": testSpec(), "tools": tools, "submitted": submitted} {
		t.Run(name, func(t *testing.T) {
			e := open(t, (&testServer{play: letters}).start(t), testManifest(), spec)
			drivertest.Test(t, drivertest.Subject{Environment: e, Oracle: solver, Null: env.Null(), Tasks: 5})
			if peak := e.Peak(); peak <= 0 {
				t.Errorf("the longest reply took %v", peak)
			}
		})
	}
}

// What the agent and the server get to see of an episode.
func TestEpisode(t *testing.T) {
	s := (&testServer{play: letters}).start(t)
	spec := testSpec()
	spec.Prompt, spec.ServerTools = "Answer with a number.", true
	spec.Reset, spec.Components = map[string]any{"word": "banana"}, []string{"state.step_count", "state.episode_id", "nothing"}
	m := testManifest()
	e := open(t, s, m, spec)
	p, err := e.Reset(t.Context(), "validation", 3)
	if err != nil {
		t.Fatal(err)
	}
	want := []chat.Message{{Role: chat.System, Content: "Answer with a number."}, {Role: chat.User, Content: p.Messages()[1].Content}}
	if diff := cmp.Diff(want, p.Messages()); diff != "" || !strings.HasSuffix(p.Messages()[1].Content, "in banana?") {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if tools := p.Tools(); len(tools) != 2 || tools[0].Name != "spell" || tools[0].Parameters != `{"properties":{"word":{"type":"string"}},"type":"object"}` {
		t.Errorf("%+v", tools)
	}
	for _, c := range []struct{ name, arguments, want string }{
		{"spell", `{"word":"pie"}`, "p i e"},
		{"spell", `{}`, "error: word is missing"},
		{"spell", `["pie"]`, "error: the arguments must be a JSON object"},
		{"spell", `pie`, "error: the arguments must be a JSON object"},
		{"reset", `{}`, "error: there is no such tool"},
	} {
		if got, err := p.Call(t.Context(), c.name, c.arguments); err != nil || got != c.want {
			t.Errorf("%s %s: %q, %v, want %q", c.name, c.arguments, got, err, c.want)
		}
	}
	score, err := p.Score(t.Context(), "3")
	if err != nil || len(score.Components) != 1 || score.Components["state.step_count"] != 3 {
		t.Errorf("%+v, %v", score, err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	// The connection that listed the tools ends beside the others.
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	var kinds []string
	for _, m := range s.messages() {
		kinds = append(kinds, m.Type)
		if m.Type == sendReset && (m.Data["seed"] != 1003.0 || m.Data["word"] != "banana") {
			t.Errorf("the reset has %v", m.Data)
		}
	}
	if want := []string{"step", "close", "reset", "step", "step", "step", "state", "close"}; !slices.Equal(slices.Sorted(slices.Values(kinds)), slices.Sorted(slices.Values(want))) {
		t.Errorf("the server got %v, want %v", kinds, want)
	}
}

// walk is an environment of steps: three to the right is the aim, and each costs something.
func walk(*connection) func(incoming) any {
	at := 0.0
	return func(m incoming) any {
		switch m.Type {
		case sendReset:
			at = 0
			return observed(map[string]any{"at": at, "legal": []int{-1, 1}, "metadata": map[string]any{"secret": 3}}, 0.0, false)
		case sendState:
			return troubled("EXECUTION_ERROR", "no state")
		}
		by, ok := m.Data["by"].(float64)
		switch {
		case m.Data["kind"] != "move":
			return troubled(codeValidation, "Invalid message", map[string]any{"type": "missing", "loc": []any{"kind"}, "msg": "Field required"})
		case !ok:
			return troubled(codeValidation, "Invalid message", map[string]any{"type": "int_parsing", "loc": []any{"by"}, "msg": "Input should be an integer"})
		}
		at += by
		if at == 3 {
			return observed(map[string]any{"at": at, "legal": []int{}}, 1.0, true)
		}
		return observed(map[string]any{"at": at, "legal": []int{-1, 1}}, -0.25, false)
	}
}

func walkSpec() *Spec {
	return &Spec{
		Server: "the test's", Observe: []string{"at", "legal"}, Reward: RewardSum,
		Tools: []Tool{{
			Name: "move", Description: "Moves.", Action: map[string]any{"kind": "move"},
			Parameters: map[string]any{"type": "object", "required": []any{"by"}, "properties": map[string]any{"by": map[string]any{}}},
		}},
	}
}

// Actions are tools, and the rewards of steps make the episode's.
func TestSteps(t *testing.T) {
	s := (&testServer{play: walk}).start(t)
	m := testManifest()
	m.RewardMin = -1
	for reward, want := range map[string][]float32{RewardSum: {0, -0.25, 0.5}, RewardLast: {0, -0.25, 1}} {
		spec := walkSpec()
		spec.Reward = reward
		e := open(t, s, m, spec)
		for steps, moves := range [][]string{
			{},
			{"at: 1\nlegal: [-1,1]"},
			{"at: 1\nlegal: [-1,1]", "at: 2\nlegal: [-1,1]", "at: 3\nlegal: []\nThe episode has ended.", "The episode has ended."},
		} {
			p, err := e.Reset(t.Context(), "train", 0)
			if err != nil {
				t.Fatal(err)
			}
			if got := p.Messages()[0].Content; got != "at: 0\nlegal: [-1,1]" {
				t.Errorf("it starts with %q", got)
			}
			for arguments, want := range map[string]string{
				`{"by":"x"}`:          "error: by: Input should be an integer",
				`{"by":1,"kind":"x"}`: `error: there is no parameter "kind"`,
				`{}`:                  "error: by is missing",
			} {
				if got, err := p.Call(t.Context(), "move", arguments); err != nil || got != want {
					t.Errorf("%s: %q, %v, want %q", arguments, got, err, want)
				}
			}
			for i, move := range moves {
				if got, err := p.Call(t.Context(), "move", `{"by":1}`); err != nil || got != move {
					t.Errorf("step %d: %q, %v, want %q", i, got, err, move)
				}
			}
			score, err := p.Score(t.Context(), "whatever")
			if err != nil || score.Reward != want[steps] || score.Components != nil {
				t.Errorf("%s of %d steps: %+v, %v, want %v", reward, len(moves), score, err, want[steps])
			}
			p.Close()
		}
	}
}

// A server that plays one episode at a time has the others wait, and gets them as soon as it has let go of one.
func TestOnePlace(t *testing.T) {
	s := (&testServer{play: letters, places: 1}).start(t)
	e := open(t, s, testManifest(), testSpec())
	results := make(chan error)
	for i := range 6 {
		go func() {
			p, err := e.Reset(t.Context(), "train", uint64(i))
			if err == nil {
				var answer string
				answer, err = solver.Play(t.Context(), "train", uint64(i), p)
				if err == nil {
					var score env.Score
					if score, err = p.Score(t.Context(), answer); err == nil && score.Reward != 1 {
						err = errors.New("not solved")
					}
				}
				p.Close()
			}
			results <- err
		}()
	}
	for range 6 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
}

// Nobody waits for ever for a place, or for a server that has gone.
func TestPatience(t *testing.T) {
	s := (&testServer{play: letters, places: 1}).start(t)
	e := open(t, s, testManifest(), testSpec())
	e.patience = 100 * time.Millisecond
	p, err := e.Reset(t.Context(), "train", 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.Reset(t.Context(), "train", 1)
	if f := failure(t, err); f.Reason != protocol.ReasonServer || !strings.Contains(f.Detail, "raise the server's max_concurrent_envs") {
		t.Errorf("%+v", f)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := e.Reset(ctx, "train", 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	p.Close()
	<-p.(*Episode).s.ended
	s.Close() // which waits until it listens no more
	_, err = e.Reset(t.Context(), "train", 1)
	if f := failure(t, err); f.Reason != protocol.ReasonServer || !strings.Contains(f.Detail, "start it, it is the test's, or correct its address") {
		t.Errorf("%+v", f)
	}
}

// An environment that is closed ends its episodes.
func TestClose(t *testing.T) {
	s := (&testServer{play: letters}).start(t)
	e := open(t, s, testManifest(), testSpec())
	p, err := e.Reset(t.Context(), "train", 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if _, err := p.Score(t.Context(), ""); !errors.Is(err, env.ErrClosed) {
		t.Errorf("%v", err)
	}
	if _, err := e.Reset(t.Context(), "train", 0); !errors.Is(err, env.ErrClosed) {
		t.Errorf("%v", err)
	}
	p.Close()
}

// What cannot be run is refused when it is opened.
func TestOpenRefuses(t *testing.T) {
	s := (&testServer{play: letters}).start(t)
	listing := func(tools any) *testServer {
		return (&testServer{play: func(*connection) func(incoming) any {
			return func(incoming) any { return observed(map[string]any{"tools": tools}, nil, false) }
		}}).start(t)
	}
	wanted := func(spec *Spec) *Spec {
		spec.ServerTools = true
		return spec
	}
	schema := map[string]any{"type": "object"}
	gone := (&testServer{play: letters}).start(t)
	gone.Close()
	for _, c := range []struct {
		says   string
		server string
		spec   *Spec
		change func(*wire.EnvironmentManifest)
	}{
		{"nothing says where its server is. Start the test's, and name it", "", testSpec(), nil},
		{"is no server's address; use http", "ftp://127.0.0.1", testSpec(), nil},
		{"no OpenEnv server answers at ws://127.0.0.1", gone.URL, testSpec(), nil},
		{"no OpenEnv server answers at ws://127.0.0.1", s.URL + "/other", testSpec(), nil},
		{"must be the artefact openenv.json", s.URL, testSpec(), func(m *wire.EnvironmentManifest) { m.Entry = "x" }},
		{"limits.steps is 1; milliseconds", s.URL, testSpec(), func(m *wire.EnvironmentManifest) { m.Limits.Steps = 1 }},
		{"limits.memory_bytes must be 0", s.URL, testSpec(), func(m *wire.EnvironmentManifest) { m.Limits.MemoryBytes = 1 }},
		{"determinism must be stochastic", s.URL, testSpec(), func(m *wire.EnvironmentManifest) { m.Determinism = wire.DeterminismExact }},
		{"splits have more than", s.URL, testSpec(), func(m *wire.EnvironmentManifest) { m.Splits[0].Tasks = MaxTasks }},
		{`the server has no tool "grade", which is to get the answer`, s.URL, wanted(&Spec{Server: "x", Reward: RewardSum, Answer: &Answer{Field: "x", Tool: "grade"}}), nil},
		{`the server has a tool "spell" too`, s.URL, wanted(&Spec{Server: "x", Reward: RewardSum, Tools: []Tool{{Name: "spell"}}}), nil},
		{"the server's list of tools cannot be read", listing("none").URL, wanted(testSpec()), nil},
		{`the server's tool "a b" cannot be called so`, listing([]any{map[string]any{"name": "a b", "input_schema": schema}}).URL, wanted(testSpec()), nil},
		{`the server's tool "a" is there twice`, listing([]any{map[string]any{"name": "a", "input_schema": schema}, map[string]any{"name": "a", "input_schema": schema}}).URL, wanted(testSpec()), nil},
		{`the server's tool "a" has no JSON schema`, listing([]any{map[string]any{"name": "a"}}).URL, wanted(testSpec()), nil},
		{"at most 64 are allowed", listing(slices.Repeat([]any{map[string]any{}}, 65)).URL, wanted(testSpec()), nil},
		{"has 199998 bytes", listing([]any{map[string]any{"name": "a", "input_schema": map[string]any{"x": strings.Repeat("x", 199_990)}}}).URL, wanted(testSpec()), nil},
	} {
		m := testManifest()
		p := newPackage(t, m, c.spec, nil)
		if c.change != nil {
			c.change(&m)
			p = newPackage(t, m, c.spec, nil)
		}
		_, err := New(Options{Server: c.server}).Open(t.Context(), p)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, want …%s…", err, c.says)
		}
	}
	m := testManifest()
	m.Splits[1].Tasks, m.Splits[1].Data = 2, "v.jsonl"
	if _, err := New(Options{Server: s.URL}).Open(t.Context(), newPackage(t, m, testSpec(), map[string][]byte{"v.jsonl": []byte("{}\n3\n")})); err == nil || !strings.Contains(err.Error(), "v.jsonl: line 2: it is no JSON object") {
		t.Errorf("%v", err)
	}
}

// Listed tasks are arguments of the reset.
func TestListedTasks(t *testing.T) {
	s := (&testServer{play: letters}).start(t)
	m := testManifest()
	m.Splits[1].Tasks, m.Splits[1].Data = 2, "v.jsonl"
	spec := testSpec()
	spec.Reset = map[string]any{"word": "pie", "big": uint64(1<<53 + 1)}
	p := newPackage(t, m, spec, map[string][]byte{"v.jsonl": []byte(`{"word":"cab"}` + "\n" + `{"seed":5}` + "\n")})
	// The CID counts more than the name.
	e, err := New(Options{Servers: map[string]string{"letters": "http://127.0.0.1:1", p.CID().String(): s.URL}}).Open(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	defer env.Close(e)
	for index, want := range []string{`{"big":9007199254740993,"seed":1000,"word":"cab"}`, `{"big":9007199254740993,"seed":5,"word":"pie"}`} {
		if got, err := marshal(e.(*Environment).arguments("validation", uint64(index))); err != nil || got != want {
			t.Errorf("%s, %v, want %s", got, err, want)
		}
	}
	episode, err := e.Reset(t.Context(), "validation", 0)
	if err != nil || !strings.HasSuffix(episode.Messages()[0].Content, "in cab?") {
		t.Errorf("%v", err)
	}
	episode.Close()
}

func TestAddress(t *testing.T) {
	for server, want := range map[string]string{
		"http://127.0.0.1:8000":       "ws://127.0.0.1:8000/ws",
		"http://127.0.0.1:8000/":      "ws://127.0.0.1:8000/ws",
		"ws://127.0.0.1:8000/ws":      "ws://127.0.0.1:8000/ws",
		"https://example.org/letters": "wss://example.org/letters/ws",
		"wss://example.org/a/ws/":     "wss://example.org/a/ws",
	} {
		if got, err := Address(server); err != nil || got != want {
			t.Errorf("%s: %s, %v", server, got, err)
		}
	}
	for _, server := range []string{"", "127.0.0.1:8000", "localhost", "ftp://x", "http://", "http:x", "http://x#y", "://"} {
		if got, err := Address(server); err == nil {
			t.Errorf("%q: %s", server, got)
		}
	}
}

// What an agent makes up is refused before the server gets it.
func TestArguments(t *testing.T) {
	tool := Tool{Name: "x", Parameters: map[string]any{"type": "object", "required": []string{"a"}, "properties": map[string]any{
		"a": map[string]any{"type": "integer", "minimum": 0, "maximum": 3},
		"b": map[string]any{"enum": []any{"up", 2, nil}},
		"c": map[string]any{"type": []string{"array", "null"}, "minItems": 7},
		"d": map[string]any{"type": "number"}, "e": map[string]any{"type": "object"}, "f": map[string]any{"type": "boolean"},
		"g": map[string]any{"type": "string"}, "h": map[string]any{},
	}}}
	f, err := tool.form()
	if err != nil {
		t.Fatal(err)
	}
	for arguments, want := range map[string]string{
		`{"a":0}`: "",
		`{"a":3,"b":"up","c":[],"d":1.5,"e":{},"f":true,"g":"","h":[null]}`: "",
		`{"a":1,"b":2.0,"c":null,"d":1,"h":3}`:                              "",
		`{"a":1,"b":null}`:                                                  "",
		`{}`:                                                                "a is missing",
		`{"a":4}`:                                                           "a must be at most 3",
		`{"a":-1}`:                                                          "a must be at least 0",
		`{"a":1.5}`:                                                         "a must be of type integer",
		`{"a":1.0}`:                                                         "a must be of type integer",
		`{"a":"1"}`:                                                         "a must be of type integer",
		`{"a":1e400}`:                                                       "a is, or has, a number out of range",
		`{"a":1,"h":[{"b":-1e400}]}`:                                        "h is, or has, a number out of range",
		`{"a":1,"h":1` + strings.Repeat("0", 5000) + `}`: "h is, or has, a number out of range",
		`{"a":1,"b":"down"}`:                             `b must be one of "up",2,null`,
		`{"a":1,"c":{}}`:                                 "c must be of type array or null",
		`{"a":1,"d":true}`:                               "d must be of type number",
		`{"a":1,"e":[]}`:                                 "e must be of type object",
		`{"a":1,"f":null}`:                               "f must be of type boolean",
		`{"a":1,"g":3}`:                                  "g must be of type string",
		`{"a":1,"i":3}`:                                  `there is no parameter "i"`,
	} {
		read, got := given(arguments)
		if got == "" {
			got = f.refuse(read)
		}
		if got != want {
			t.Errorf("%.100s: %q, want %q", arguments, got, want)
		}
	}
	for _, arguments := range []string{``, `null`, `[]`, `"a"`, `{} {}`, `{"a":1`, `{"a":NaN}`, strings.Repeat(`{"a":`, 20_000)} {
		if read, wrong := given(arguments); read != nil || wrong != "the arguments must be a JSON object" {
			t.Errorf("%.100s: %q, %q", arguments, read, wrong)
		}
	}
}

// No argument makes a server fail that any other string or number does not.
func TestArgumentsThatServersFailAt(t *testing.T) {
	got := make(chan map[string]any, 1)
	s := (&testServer{play: func(c *connection) func(incoming) any {
		inner := letters(c)
		return func(m incoming) any {
			if m.Data["type"] == "call_tool" {
				got <- m.Data["arguments"].(map[string]any)
				return observed(map[string]any{"tool_name": "spell", "result": "x"}, nil, false)
			}
			return inner(m)
		}
	}}).start(t)
	spec := testSpec()
	spec.ServerTools = true
	e := open(t, s, testManifest(), spec)
	p, err := e.Reset(t.Context(), "train", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	arguments := `{"word":"a\ud800b\ud83d\ude00","list":["` + "\xff" + `",{"\udc00":12345678901234567890}]}`
	if said, err := p.Call(t.Context(), "spell", arguments); err != nil || said != "x" {
		t.Fatalf("%q, %v", said, err)
	}
	want := map[string]any{"word": "a\uFFFDb\U0001F600", "list": []any{"\uFFFD", map[string]any{"\uFFFD": 12345678901234567890.0}}}
	if diff := cmp.Diff(want, <-got); diff != "" {
		t.Errorf("the server got (-want +got):\n%s", diff)
	}
	if said, err := p.Call(t.Context(), "spell", `{"word":[1e400]}`); err != nil || said != "error: word is, or has, a number out of range" {
		t.Errorf("%q, %v", said, err)
	}
}
