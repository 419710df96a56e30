//go:build unix

package process

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lightswarm/lightswarm/rollout/agent"
)

func TestEnds(t *testing.T) {
	broken := errors.New("the engine is broken")
	answered := func(s string) agent.Result { return agent.Result{End: agent.Answered, Answer: s} }
	inModes(t, func(t *testing.T, preload []string) {
		f := newFixture(t, preload, func(o *Options) { o.MaxOutput = 1000 })
		for task, c := range map[string]struct {
			policy *answers
			want   agent.Result
			err    string
		}{
			"say  7 \n":         {want: answered("7")},
			"say":               {want: answered("")},
			"flood 1000":        {want: answered(strings.Repeat("y", 1000))},
			"flood 1001":        {err: "longer than 1000 bytes"},
			"flood 1000000":     {err: "longer than 1000 bytes"},
			"fail 3":            {err: "exit status 3; the end of its standard error:\nit went wrong"},
			"crash":             {err: "ValueError: a bug"},
			"die SIGKILL":       {err: "signal: killed"},
			"die SIGTERM":       {err: "signal: terminated"},
			"ask 3":             {policy: &answers{good: 3}, want: answered("seven")},
			"ask 2":             {policy: &answers{good: 1, err: agent.ErrExhausted}, want: agent.Result{End: agent.Exhausted}},
			"ask 4":             {policy: &answers{good: 1, err: agent.ErrNoRoom}, want: agent.Result{End: agent.Cut}},
			"ask 1":             {policy: &answers{err: broken}, err: "after the policy failed (the engine is broken)"},
			"ignore " + large:   {want: answered("ignored")},
			"hold":              {want: answered("held")},
			"quit nothing":      {want: answered("")},
			"quit text":         {err: "exit status 1; the end of its standard error:\na reason"},
			"quit byte":         {want: answered("")},
			"quit truth":        {err: "exit status 1"},
			"quit thread":       {want: answered("")},
			"quit exit handler": {want: answered("the last words")},
			"quit daemon":       {want: answered("")},
			"quit child":        {want: answered("3")},
			"quit interrupt":    {err: "KeyboardInterrupt"},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
			if c.policy == nil {
				c.policy = &answers{}
			}
			got, err := f.Run(ctx, c.policy, episode(task))
			cancel()
			if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("%.20s: %+v, %v", task, got, err)
			}
			if errors.Is(err, broken) {
				t.Error("a program's failure passes for the engine's")
			}
		}
		if !strings.Contains(f.log.String(), "xxxthe end") {
			t.Error("standard error is not in the log")
		}
	})
}

// large does not fit into a pipe, but into a variable.
var large = strings.Repeat("z", maxVariable-len("ignore "))

func TestWhatAProgramFinds(t *testing.T) {
	t.Setenv("SECRET_OF_THE_NODE", "1")
	t.Setenv("LANG", "C.UTF-8")
	descriptors := map[string]any{}
	inModes(t, func(t *testing.T, preload []string) {
		f := newFixture(t, preload)
		var got map[string]any
		if err := json.Unmarshal([]byte(f.mustPlay(t, "describe é")), &got); err != nil {
			t.Fatal(err)
		}
		names := got["names"].([]any)
		descriptors[t.Name()] = got["descriptors"]
		if said := f.mustPlay(t, "outlive"); said != "__main__" {
			t.Error(said)
		}
		delete(got, "names")
		delete(got, "descriptors")
		nothing := []any{}
		want := map[string]any{
			"argv": []any{"an argument"}, "task": "describe é", "path": true, "work": nothing, "home": nothing, "tmp": nothing,
			"own": true, "extra": "more", "group": true, "main": true, "file": "agent.py", "blocking": []any{true, true, true},
			"terminal": false, "seekable": []any{false, false, false},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		for _, name := range []string{"PATH", "HOME", "TMPDIR", "LANG", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "LIGHTSWARM_ROLLOUT"} {
			if !slices.Contains(names, any(name)) {
				t.Errorf("%s is missing", name)
			}
		}
		if slices.Contains(names, any("SECRET_OF_THE_NODE")) {
			t.Error("the node's environment is inherited")
		}
		for _, task := range []string{"describe " + strings.Repeat("z", maxVariable), "describe \x00"} {
			if said := f.mustPlay(t, task); !strings.Contains(said, `"task": null`) {
				t.Errorf("TASK of %d bytes: %.80s", len(task), said)
			}
		}
	})
	if diff := cmp.Diff(descriptors[t.Name()+"/cold"], descriptors[t.Name()+"/warm"]); diff != "" {
		t.Errorf("a fork has other descriptors open (-cold +warm):\n%s", diff)
	}
}

// Neighbours of a script are found where it is, not where a link to it is.
func TestALinkToAScript(t *testing.T) {
	script, err := filepath.Abs("testdata/agent.py")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(script, filepath.Join(dir, "link.py")); err != nil {
		t.Fatal(err)
	}
	inModes(t, func(t *testing.T, preload []string) {
		f := newFixture(t, preload, func(o *Options) { o.Command.Args[1], o.Command.Dir = "link.py", dir })
		if said := f.mustPlay(t, "describe"); !strings.Contains(said, `"path": true`) || !strings.Contains(said, `"file": "link.py"`) {
			t.Error(said)
		}
	})
}

func TestNothingIsLeft(t *testing.T) {
	inModes(t, func(t *testing.T, preload []string) {
		f := newFixture(t, preload)
		ways := []string{"group"}
		if seesDescendants {
			if ways = append(ways, "session", "daemon"); preload != nil {
				ways = append(ways, "stripped", "chain")
			}
		}
		for _, way := range ways {
			if said := f.mustPlay(t, "leave "+way); said != "left one" {
				t.Errorf("%s: %q", way, said)
			}
			f.meter.meet(t)()
		}
	})
}

// What keeps a program from being started says nothing about it: it is not the agent's failure.
func TestAProgramThatIsGone(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "agent")
	if err := os.WriteFile(file, []byte("#!/bin/sh\necho 7\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	f := newFixture(t, nil, func(o *Options) { o.Command = Command{Args: []string{"./agent"}, Dir: dir} })
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, err := f.play(t, "say 7"); !isEnvironments(err) || !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if _, err := newFixture(t, nil).play(t, "fail 1"); err == nil || isEnvironments(err) {
		t.Error(err)
	}
}

func TestTheEndOfTheContext(t *testing.T) {
	given := errors.New("given up")
	inModes(t, func(t *testing.T, preload []string) {
		agents := map[time.Duration]*fixture{}
		for how, c := range map[string]struct {
			grace time.Duration
			want  agent.Result
			err   error
		}{
			"obedient":  {grace: patience, err: given},
			"stubborn":  {grace: time.Millisecond, err: given},
			"silently":  {grace: patience, err: given},
			"elsewhere": {grace: time.Millisecond, err: given},
			"answering": {grace: patience, want: agent.Result{End: agent.Answered, Answer: "in time"}},
		} {
			f := agents[c.grace]
			if f == nil {
				f = newFixture(t, preload, func(o *Options) { o.Grace = c.grace })
				agents[c.grace] = f
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				got, err := f.Run(ctx, &answers{}, episode("hang "+how))
				if got != c.want || !errors.Is(err, c.err) {
					t.Errorf("%s: %+v, %v", how, got, err)
				}
			}()
			gone := f.meter.meet(t)
			cancel(given)
			<-done
			gone()
		}
	})
}

// A program is asked to end so long before the deadline that its answer is in time; one that has none has used all its
// time.
func TestTheDeadline(t *testing.T) {
	inModes(t, func(t *testing.T, preload []string) {
		f := newFixture(t, preload)
		for how, want := range map[string]error{"obedient": context.DeadlineExceeded, "silently": context.DeadlineExceeded, "answering": nil} {
			// On a slow machine the program may not have come to heed what it is asked, and then ends at the deadline.
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err := f.Run(ctx, &answers{}, episode("hang "+how))
			if err != nil && (!errors.Is(err, context.DeadlineExceeded) || ctx.Err() == nil) {
				t.Errorf("%s: %v, context: %v", how, err, ctx.Err())
			}
			if want != nil && err == nil {
				t.Errorf("%s: no error", how)
			}
			cancel()
		}
	})
}

func TestCloseGivesUp(t *testing.T) {
	inModes(t, func(t *testing.T, preload []string) {
		f := newFixture(t, preload)
		done := make(chan error)
		go func() {
			_, err := f.Run(context.Background(), &answers{}, episode("hang obediently"))
			done <- err
		}()
		gone := f.meter.meet(t)
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, errClosed) {
			t.Error(err)
		}
		gone()
		if _, err := f.Run(t.Context(), &answers{}, episode("say 7")); !errors.Is(err, errClosed) {
			t.Error("run after Close: ", err)
		}
	})
}

func TestOneRunsAtOnce(t *testing.T) {
	f := newFixture(t, nil, func(o *Options) { o.Concurrent = 1 })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.Run(ctx, &answers{}, episode("hang obediently"))
	}()
	f.meter.meet(t)
	soon, cancelSoon := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancelSoon()
	if _, err := f.Run(soon, &answers{}, episode("say 7")); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if places, err := os.ReadDir(f.Agent.scratch); err != nil || len(places) != 1 {
		t.Errorf("places: %v, %v", places, err)
	}
	cancel()
	<-done
	if said := f.mustPlay(t, "say 7"); said != "7" {
		t.Error(said)
	}
}

func TestCommandsThatCannotBeStarted(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"notes.txt": 0o600, "node": 0o700} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	for want, c := range map[string]Command{
		"there is no program":     {},
		"it is not in PATH":       {Args: []string{"no-such-program"}},
		"notes.txt is no program": {Args: []string{"./notes.txt"}, Dir: dir},
		"no such file":            {Args: []string{"sh"}, Dir: filepath.Join(dir, "none")},
		"is no folder":            {Args: []string{"sh"}, Dir: filepath.Join(dir, "notes.txt")},
		"is no variable":          {Args: []string{"sh"}, Environ: []string{"NAME"}},
		"a script":                {Args: []string{python(), "-u"}, Preload: []string{"json"}},
		"none.py":                 {Args: []string{python(), "none.py"}, Preload: []string{"json"}},
		dir + "/none.py":          {Args: []string{python(), "none.py"}, Dir: dir, Preload: []string{"json"}},
		dir + "/none.js":          {Args: []string{"./node", "none.js"}, Dir: dir},
	} {
		if _, err := resolve(c, os.Getenv("PATH")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %s", c, err, want)
		}
	}
}
