package wasm_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/wasm"
	"github.com/lightswarm/lightswarm/wire"
)

// Whatever a module does, it is contained: the episode fails for a clear reason, and the next one plays.
func TestHostileModulesAreContained(t *testing.T) {
	e := sharedHostile(t)
	for _, c := range []struct {
		act    string
		reason wasm.Reason
		says   string
	}{
		{"loop", wasm.ReasonSteps, "call: it used up the 50000000 steps"},
		{"calls", wasm.ReasonSteps, "used up"},
		{"flood", wasm.ReasonSteps, "used up"},
		{"memory", wasm.ReasonExit, "it had 1"},
		{"recursion", wasm.ReasonSteps, "used up"}, // Go keeps its stack in memory, and copies it to a larger one
		{"output", wasm.ReasonOutput, "more than 1048576 bytes"},
		{"read", wasm.ReasonProtocol, "before it has answered"},
		{"exit", wasm.ReasonExit, "status 3 before it had answered; it had"},
		{"exit", wasm.ReasonExit, "that is enough"},
		{"panic", wasm.ReasonExit, "no way"},
		{"wait", wasm.ReasonExit, "deadlock"},
		{"outside", wasm.ReasonTrap, "outside its memory"},
	} {
		t.Run(c.act, func(t *testing.T) {
			p, err := e.Reset(t.Context(), "train", 0)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			_, err = p.Call(t.Context(), c.act, "")
			var f *wasm.Failure
			if !errors.As(err, &f) || f.Reason != c.reason || !strings.Contains(f.Detail, c.says) {
				t.Fatalf("the failure is %#v, want %s: …%s…", err, c.reason, c.says)
			}
			if _, again := p.Score(t.Context(), "{}"); !errors.Is(again, err) {
				t.Errorf("afterwards the episode says %v", again)
			}
			next, err := e.Reset(t.Context(), "train", 1)
			if err != nil {
				t.Fatal(err)
			}
			defer next.Close()
			if result, err := next.Call(t.Context(), "echo", "still here"); err != nil || result != "still here" {
				t.Errorf("the next episode: %q, %v", result, err)
			}
		})
	}
}

// What comes after an answer is the failure of the next request.
func TestMoreThanWasAsked(t *testing.T) {
	e := sharedHostile(t)
	for act, arguments := range map[string]string{"lines": "", "raw": `{"result":"one"}`} {
		p, err := e.Reset(t.Context(), "train", 0)
		if err != nil {
			t.Fatal(err)
		}
		if result, err := p.Call(t.Context(), act, arguments); err != nil || result != "one" {
			t.Errorf("%s: %q, %v", act, result, err)
		}
		_, err = p.Score(t.Context(), `{"reward":1}`)
		var f *wasm.Failure
		if !errors.As(err, &f) || f.Reason != wasm.ReasonProtocol || !strings.Contains(f.Detail, "when nothing is asked") {
			t.Errorf("%s: the failure is %v", act, err)
		}
		p.Close()
	}
}

// Calls inside one another end before the machine's own stack does.
func TestRecursionIsBounded(t *testing.T) {
	e, err := open(t, manifest(), rawModule([]byte{0x10, 1})) // _start calls itself
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.Reset(t.Context(), "train", 0)
	var f *wasm.Failure
	if !errors.As(err, &f) || f.Reason != wasm.ReasonDepth || !strings.Contains(f.Detail, "recursion without end") {
		t.Errorf("the failure is %v", err)
	}
}

// So do calls that each keep so much that the engine's stack ends first.
func TestLargeCallsAreBounded(t *testing.T) {
	const values = 1000
	code := []byte{0x41, 0} // where the sum goes
	for range values {
		code = append(code, 0x41, 0, 0x28, 2, 0) // a value of memory
	}
	code = append(code, 0x10, 1) // _start
	for range values - 1 {
		code = append(code, 0x6a)
	}
	m := manifest()
	m.Limits.Steps = 1_000_000_000
	e, err := open(t, m, rawModule(append(code, 0x36, 2, 0)))
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.Reset(t.Context(), "train", 0)
	var f *wasm.Failure
	if !errors.As(err, &f) || f.Reason != wasm.ReasonDepth {
		t.Errorf("the failure is %v", err)
	}
}

// What is no module that can be run is refused when it is opened, with what to do.
func TestModulesThatCannotBeRun(t *testing.T) {
	component := append([]byte("\x00asm"), 0x0d, 0, 1, 0)
	for name, c := range map[string]struct {
		module []byte
		says   string
	}{
		"text":      {[]byte("print('hello')"), "this is no WebAssembly module"},
		"component": {component, "component"},
		"nothing":   {[]byte("\x00asm\x01\x00\x00\x00"), "does not import fd_read"},
		"bad types": {rawModule([]byte{0x42, 0, 0x0d, 0}), "invalid function"},
		"globals":   {rawModule([]byte{0x23, 0, 0x1a}), "global 0 of 0"},
		"memory":    {rawModuleWith(1024, nil), "over limit"},
	} {
		_, err := open(t, manifest(), c.module)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want …%s…", name, err, c.says)
		}
	}
	for name, change := range map[string]func(*wire.EnvironmentManifest){
		"must be the artefact":                  func(m *wire.EnvironmentManifest) { m.Entry = "other.wasm" },
		"limits.memory_bytes is 0":              func(m *wire.EnvironmentManifest) { m.Limits.MemoryBytes = 0 },
		"limits.steps is 1;":                    func(m *wire.EnvironmentManifest) { m.Limits.Steps = 1 },
		"determinism must be exact: a module h": func(m *wire.EnvironmentManifest) { m.Determinism = wire.DeterminismStochastic },
	} {
		m := manifest()
		change(&m)
		p, err := env.NewPackage(m, map[string][]byte{"module.wasm": rawModule(nil)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := testDriver(t).Open(t.Context(), p); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want …%s…", err, name)
		}
	}
}

// A process that dies takes its episodes along, and the next one starts another.
func TestProcessIsReplaced(t *testing.T) {
	e := sharedHostile(t)
	p, err := e.Reset(t.Context(), "train", 0)
	if err != nil {
		t.Fatal(err)
	}
	wasm.KillChild(e)
	_, err = p.Call(t.Context(), "echo", "")
	var f *wasm.Failure
	if !errors.As(err, &f) || f.Reason != wasm.ReasonProcess {
		t.Errorf("the failure is %v", err)
	}
	p.Close()
	next, err := e.Reset(t.Context(), "train", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	if result, err := next.Call(t.Context(), "echo", "again"); err != nil || result != "again" {
		t.Errorf("%q, %v", result, err)
	}
}

// A module sees nothing of the machine, and the same everywhere.
func TestModulesSeeNothingOfTheMachine(t *testing.T) {
	e := sharedHostile(t)
	for act, want := range map[string]string{
		"files":   "true true true [76 76 76 76 76 76 76 76] 0 0",
		"network": "[76 76 76 76 76 76 76 76]",
		"sleep":   "true 2022",
		"noise":   "ok",
		"collect": "ok",
	} {
		p, err := e.Reset(t.Context(), "train", 0)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := p.Call(t.Context(), act, ""); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", act, got, err, want)
		}
		p.Close()
	}
}

// Random numbers are the task's.
func TestRandomNumbersAreTheTasks(t *testing.T) {
	e := sharedHostile(t)
	seen := map[string]uint64{}
	for _, index := range []uint64{0, 1, 2, 0, 1, 2} {
		p, err := e.Reset(t.Context(), "train", index)
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.Call(t.Context(), "random", "")
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := seen[got]; ok && other != index {
			t.Errorf("tasks %d and %d have the same random numbers", index, other)
		}
		seen[got] = index
		p.Close()
	}
	if len(seen) != 3 {
		t.Errorf("three tasks gave %d sequences", len(seen))
	}
}

// Answers that are not what was asked for are the environment's failure, and say what is wrong.
func TestWrongAnswers(t *testing.T) {
	e := sharedHostile(t)
	for _, c := range []struct {
		answer string
		reason wasm.Reason
		says   string
	}{
		{`{"reward":1}`, "", ""},
		{`{"reward":0.5,"components":{"style":2}}`, "", ""},
		{`{}`, wasm.ReasonAnswer, "no reward"},
		{`{"components":{}}`, wasm.ReasonAnswer, "no reward"},
		{`{"reward":null}`, wasm.ReasonAnswer, "no reward"},
		{`{"reward":1.01}`, wasm.ReasonAnswer, "reward 1.01 is outside the manifest's range, 0 to 1"},
		{`{"reward":-1e-30}`, wasm.ReasonAnswer, "outside"},
		{`{"reward":1e999}`, wasm.ReasonAnswer, "not the JSON that was wanted"},
		{`{"reward":NaN}`, wasm.ReasonAnswer, "not the JSON that was wanted"},
		{`{"reward":"1"}`, wasm.ReasonAnswer, "not the JSON that was wanted"},
		{`{"reward":1,"rewards":2}`, wasm.ReasonAnswer, `unknown field "rewards"`},
		{`{"reward":1}{"reward":1}`, wasm.ReasonAnswer, "more after it"},
		{`{"reward":1,"components":{"":1}}`, wasm.ReasonAnswer, "component"},
		{`{"reward":1,"components":{"two\nlines":1}}`, wasm.ReasonAnswer, "printable"},
		{`{"reward":1,"components":{"x":1e39}}`, wasm.ReasonAnswer, "component"},
		{`{"error":"the task is broken"}`, wasm.ReasonReported, "score: it reports: the task is broken"},
		{`[1]`, wasm.ReasonAnswer, "not the JSON that was wanted"},
		{`null`, wasm.ReasonAnswer, "no reward"},
		{`nonsense`, wasm.ReasonAnswer, "nonsense"},
		{``, wasm.ReasonAnswer, "EOF"},
	} {
		p, err := e.Reset(t.Context(), "train", 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Score(t.Context(), c.answer)
		var f *wasm.Failure
		switch {
		case c.reason == "":
			if err != nil {
				t.Errorf("%s: %v", c.answer, err)
			}
		case !errors.As(err, &f) || f.Reason != c.reason || !strings.Contains(f.Detail, c.says):
			t.Errorf("%s: the failure is %#v, want %s: …%s…", c.answer, err, c.reason, c.says)
		}
		p.Close()
	}
}

// A module says how its task is solved, and how it is done by a habit; the module's answer to a habit is the habit here.
func TestSolutions(t *testing.T) {
	e := sharedHostile(t)
	long := strings.Repeat("x", env.MaxHabitName+1)
	for _, c := range []struct{ habit, says string }{
		{`{"calls":[{"name":"loop","arguments":"1"}],"answer":"wrong"}`, ""},
		{`{"answer":"wrong","habits":["haste"]}`, ""},
		{`{"calls":[]}`, "no answer"},
		{`{"answer":"wrong","habits":[""]}`, "habits[0]"},
		{`{"answer":"wrong","habits":["haste","` + long + `"]}`, "habits[1]"},
		{`{"answer":"wrong","habits":["1","2","3","4","5","6","7","8","9"]}`, "9 habits; at most 8"},
		{`{"answer":"wrong","habit":"haste"}`, `unknown field "habit"`},
		{`{"error":"no such habit"}`, "solve: it reports: no such habit"},
	} {
		p, err := e.Reset(t.Context(), "train", 0)
		if err != nil {
			t.Fatal(err)
		}
		solution, err := env.Solve(t.Context(), p, "")
		if err != nil || len(solution.Calls) != 1 || solution.Answer != "right" || strings.Join(solution.Habits, " ") != "haste waste" {
			t.Errorf("the solution is %+v, %v", solution, err)
		}
		solution, err = env.Solve(t.Context(), p, c.habit)
		var f *wasm.Failure
		switch {
		case c.says == "":
			if err != nil || solution.Answer != "wrong" {
				t.Errorf("%s: %+v, %v", c.habit, solution, err)
			}
		case !errors.As(err, &f) || !strings.Contains(f.Detail, c.says):
			t.Errorf("%s: %v, want …%s…", c.habit, err, c.says)
		}
		p.Close()
	}
}

// A rollout that is given up does not wait for its module, and others go on beside it. After Close nothing plays, and what
// played fails.
func TestGivingUpDoesNotWait(t *testing.T) {
	m := manifest()
	m.Limits.Steps = wasm.MaxSteps
	e, err := open(t, m, hostile(t))
	if err != nil {
		t.Fatal(err)
	}
	for range 9 { // more than there is room for at once
		p, err := e.Reset(t.Context(), "train", 0)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		// An empty loop uses up all steps in a third of a second, and a busy machine can take that long to look at its clock;
		// this takes minutes.
		if _, err := p.Call(ctx, "flood", ""); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the call says %v", err)
		}
		cancel()
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	other, err := e.Reset(t.Context(), "train", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if result, err := other.Call(t.Context(), "echo", "here"); err != nil || result != "here" {
		t.Errorf("another episode: %q, %v", result, err)
	}
	if err := env.Close(e); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Call(t.Context(), "echo", ""); err == nil {
		t.Error("an episode of a closed environment goes on")
	}
	if _, err := e.Reset(t.Context(), "train", 0); !errors.Is(err, env.ErrClosed) {
		t.Errorf("Reset of a closed environment says %v", err)
	}
}
