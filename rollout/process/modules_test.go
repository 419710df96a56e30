//go:build unix

package process

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/lightswarm/lightswarm/rollout/agent"
	"github.com/lightswarm/lightswarm/rollout/process/module"
)

// build builds a command of testdata, with more variables. What runs modules is built without the race detector, in whose
// company modules compile fifteen times more slowly.
func build(t *testing.T, name, out string, environ ...string) {
	t.Helper()
	c := exec.Command("go", "build", "-o", out, ".")
	c.Dir = filepath.Join("testdata", name)
	c.Env = append(append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off"), environ...)
	if said, err := c.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v: %s", name, err, said)
	}
}

func TestModules(t *testing.T) {
	file := filepath.Join(t.TempDir(), "runner")
	build(t, "runner", file)
	run := []string{file}
	t.Run("sound", func(t *testing.T) { soundModules(t, run) })
	t.Run("hostile", func(t *testing.T) { hostileModules(t, run) })
	t.Run("cannot run", func(t *testing.T) { modulesThatCannotRun(t, run) })
}

func soundModules(t *testing.T, run []string) {
	dir := t.TempDir()
	build(t, "module", filepath.Join(dir, "agent.wasm"), "GOOS=wasip1", "GOARCH=wasm")
	f := newFixture(t, nil, func(o *Options) {
		o.Command.Args, o.Command.Dir, o.Modules = []string{"agent.wasm", "an argument"}, dir, run
		o.MaxOutput, o.Grace = 1000, time.Millisecond
	})
	if err := f.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Run("ends", func(t *testing.T) { modulesEnd(t, f) })
	t.Run("time", func(t *testing.T) { modulesAreKilled(t, f) })
	t.Run("finds", func(t *testing.T) { modulesFind(t, f) })
}

func modulesEnd(t *testing.T, f *fixture) {
	answered := func(s string) agent.Result { return agent.Result{End: agent.Answered, Answer: s} }
	for task, c := range map[string]struct {
		policy *answers
		want   agent.Result
		err    string
	}{
		"say 7":      {want: answered("7")},
		"flood 1000": {want: answered(strings.Repeat("y", 1000))},
		"flood 1001": {err: "longer than 1000 bytes"},
		"fail 3":     {err: "exit status 3; the end of its standard error:\nit went wrong"},
		"fail 256":   {err: "exit status 255; "},
		"panic":      {err: "exit status 2; the end of its standard error:\npanic: a bug"},
		"memory":     {err: "out of memory"},
		"ask 1":      {policy: &answers{good: 1}, want: answered("seven")},
		"ask 8":      {policy: &answers{good: 8}, want: answered(strings.TrimSpace(strings.Repeat("seven ", 8)))},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
		if c.policy == nil {
			c.policy = &answers{}
		}
		got, err := f.Run(ctx, c.policy, episode(task))
		cancel()
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %+v, %v", task, got, err)
		}
	}
}

// Whatever a module does with its time, no more is left of it than of other programs.
func modulesAreKilled(t *testing.T, f *fixture) {
	for _, task := range []string{"loop", "hang", "read", "gush", "open"} {
		before := f.programs.ended.Load()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		got, err := f.Run(ctx, &answers{}, episode(task))
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || f.programs.ended.Load() != before+1 {
			t.Errorf("%s: %+v, %v", task, got, err)
		}
	}
}

func modulesFind(t *testing.T, f *fixture) {
	t.Setenv("SECRET_OF_THE_NODE", "1")
	const described = "describe é"
	said := f.mustPlay(t, described)
	if !strings.HasPrefix(said, "[agent.wasm an argument] "+described+" [") || !strings.HasSuffix(said, "] true") {
		t.Error(said)
	}
	for name, want := range map[string]bool{"OPENAI_BASE_URL": true, "EXTRA": true, "SECRET_OF_THE_NODE": false} {
		if strings.Contains(said, name) != want {
			t.Errorf("%s: %t is wanted in %s", name, want, said)
		}
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	elsewhere, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer elsewhere.Close()
	for task, want := range map[string]string{
		"files " + secret:                                 "[]",
		"dial " + elsewhere.Addr().String():               "false",
		fmt.Sprint("connections ", module.MaxConnections): "as many as there may be",
		"terminal": "<nil> false",
		"wild":     "[21 21 21 21 21 21] [21 21 28 28] [8 8 8 8 8 8] [57 8 8 57 8] [76 76 76] [76 70 0 8] [0 0 0 8]",
	} {
		if said := f.mustPlay(t, task); said != want {
			t.Errorf("%s: %s, want %s", task, said, want)
		}
	}
}

// section is a part of a WebAssembly module of less than 128 bytes.
func section(id byte, content string) string { return string([]byte{id, byte(len(content))}) + content }

// header begins a WebAssembly module.
const header = "\x00asm\x01\x00\x00\x00"

// command is a module whose one function, _start, has this code; more are its sections between those of functions and of
// exports.
func command(code, more string) string {
	body := "\x00" + code + "\x0b"
	return header + section(1, "\x01\x60\x00\x00") + section(3, "\x01\x00") + more + section(7, "\x01\x06_start\x00\x00") +
		section(10, "\x01"+string([]byte{byte(len(body))})+body)
}

// What a module is, it is in a process of its own, with all that it takes.
func hostileModules(t *testing.T, run []string) {
	for what, c := range map[string]struct{ code, err string }{
		"nothing":   {command("", ""), ""},
		"trap":      {command("\x00", ""), "wasm error: unreachable"},
		"recursion": {command("\x10\x00", ""), "stack overflow"},
		// Three tables of a gibibyte: no memory of the module, but of its process, which ends.
		"tables": {command("", section(4, "\x03"+strings.Repeat("\x70\x00\x80\x80\x80\x40", 3))), "the program failed: exit status 2"},
	} {
		if what == "tables" && runtime.GOOS != "linux" {
			continue // there are no limits to meet
		}
		got, err := newModule(t, c.code, run).play(t, "")
		if (err == nil) != (c.err == "") || err != nil && (isEnvironments(err) || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
	}
	// It runs, for ever, before it is started.
	f := newModule(t, header+section(1, "\x01\x60\x00\x00")+section(3, "\x01\x00")+section(7, "\x01\x06_start\x00\x00")+section(8, "\x00")+
		section(10, "\x01\x07\x00\x03\x40\x0c\x00\x0b\x0b"), run)
	if err := f.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if got, err := f.Run(ctx, &answers{}, episode("")); !errors.Is(err, context.DeadlineExceeded) || f.programs.ended.Load() != 1 {
		t.Errorf("a loop in the start function: %+v, %v", got, err)
	}
}

// newModule makes an agent of a module's code.
func newModule(t *testing.T, code string, run []string) *fixture {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "agent.wasm"), []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	return newFixture(t, nil, func(o *Options) {
		o.Command.Args, o.Command.Dir, o.Modules, o.Grace = []string{"agent.wasm"}, dir, run, time.Millisecond
	})
}

func modulesThatCannotRun(t *testing.T, run []string) {
	function := section(1, "\x01\x60\x00\x00")
	for what, c := range map[string]struct{ code, err string }{
		"text":      {"print(7)", "it is no WebAssembly module that can be run"},
		"component": {"\x00asm\x0d\x00\x01\x00", "it is no WebAssembly module that can be run"},
		"library":   {header, "it exports no _start"},
		"import":    {header + function + section(2, "\x01\x03env\x04exec\x00\x00"), `it imports "env"."exec"`},
	} {
		f := newModule(t, c.code, run)
		if err := f.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "compile agent.wasm: exit status 2: ") || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := f.play(t, "say 7"); !isEnvironments(err) || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A compilation does not outlive its agent.
func TestACompilationThatDoesNotEnd(t *testing.T) {
	f := newModule(t, "", []string{"/bin/sh", "-c", "while :; do :; done"})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := f.Ready(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if _, err := f.Run(ctx, &answers{}, episode("say 7")); !errors.Is(err, context.DeadlineExceeded) || isEnvironments(err) {
		t.Error(err)
	}
}

// One that fails without a word is no more than that.
func TestACompilationThatSaysNothing(t *testing.T) {
	const want = "compile agent.wasm: exit status 3"
	if err := newModule(t, "", []string{"/bin/sh", "-c", "exit 3"}).Ready(t.Context()); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestCommandsThatAreModules(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "in", "folder.wasm"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "in", "agent.wasm"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		command Command
		err     string
	}{
		{Command{Args: []string{"in/agent.wasm"}, Dir: dir}, ""},
		{Command{Args: []string{"agent.wasm"}, Dir: filepath.Join(dir, "in")}, ""},
		{Command{Args: []string{filepath.Join(dir, "in", "agent.wasm")}}, ""},
		{Command{Args: []string{"other.wasm"}, Dir: dir}, "no such file"},
		{Command{Args: []string{"in/folder.wasm"}, Dir: dir}, "is no file"},
		{Command{Args: []string{"in/agent.wasm"}, Dir: dir, Preload: []string{"json"}}, "nothing to preload"},
	} {
		got, err := resolve(c.command, os.Getenv("PATH"))
		switch {
		case c.err == "" && (err != nil || got.Args[0] != filepath.Join(dir, "in", "agent.wasm")):
			t.Errorf("%v: %v, %v", c.command.Args, got.Args, err)
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%v: %v, want %s", c.command.Args, err, c.err)
		}
	}
}
