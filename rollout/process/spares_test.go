//go:build unix

package process

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lightswarm/lightswarm/rollout/agent"
)

// node is the interpreter of programs in JavaScript.
var node = sync.OnceValue(func() string {
	file, err := exec.LookPath("node")
	if err != nil {
		panic("tests need Node.js: " + err.Error())
	}
	return file
})

// nodePreloads says whether the interpreter is recent enough to preload modules.
var nodePreloads = sync.OnceValue(func() bool {
	const asks = `process.exit(require("node:vm").constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER ? 0 : 1)`
	return exec.Command(node(), "--eval", asks).Run() == nil
})

// needNodePreloads skips where modules of Node.js cannot be preloaded.
func needNodePreloads(t testing.TB) {
	t.Helper()
	if !nodePreloads() {
		t.Skip("Node.js is older than 20.12")
	}
}

// TestNodePreloadsCanBeTested is skipped where tests of that are: scripts/test says so at its end.
func TestNodePreloadsCanBeTested(t *testing.T) { needNodePreloads(t) }

// nodeModes are the ways to start a program of Node.js: the modules to preload.
var nodeModes = map[string][]string{"cold": nil, "warm": {"./early.mjs"}}

// newNodeFixture is newFixture with the test's program in JavaScript.
func newNodeFixture(t testing.TB, preload []string, change ...func(*Options)) *fixture {
	if len(preload) > 0 {
		needNodePreloads(t)
	}
	script := func(o *Options) { o.Command.Args = []string{node(), "agent.mjs", "an argument"} }
	return newFixture(t, preload, append([]func(*Options){script}, change...)...)
}

// inNodeModes runs a test in each mode.
func inNodeModes(t *testing.T, test func(t *testing.T, preload []string)) {
	for name, preload := range nodeModes {
		t.Run(name, func(t *testing.T) { test(t, preload) })
	}
}

func TestNodeEnds(t *testing.T) {
	answered := func(s string) agent.Result { return agent.Result{End: agent.Answered, Answer: s} }
	inNodeModes(t, func(t *testing.T, preload []string) {
		f := newNodeFixture(t, preload, func(o *Options) { o.MaxOutput = 1000 })
		for task, c := range map[string]struct {
			policy *answers
			want   agent.Result
			err    string
		}{
			"say  7 \n":       {want: answered("7")},
			"flood 1000":      {want: answered(strings.Repeat("y", 1000))},
			"flood 1001":      {err: "longer than 1000 bytes"},
			"flood 1000000":   {err: "longer than 1000 bytes"},
			"fail 3":          {err: "exit status 3; the end of its standard error:\nit went wrong"},
			"crash":           {err: "RangeError: a bug"},
			"die SIGKILL":     {err: "signal: killed"},
			"die SIGTERM":     {err: "signal: terminated"},
			"ask 3":           {policy: &answers{good: 3}, want: answered("seven")},
			"ask 2":           {policy: &answers{good: 1, err: agent.ErrExhausted}, want: agent.Result{End: agent.Exhausted}},
			"ignore " + large: {want: answered("ignored")},
			"quit status":     {err: "exit status 4"},
			"quit handler":    {want: answered("the last words")},
			"quit rejection":  {err: "nobody cares"},
			"wait":            {err: "exit status 13"},
			"worker":          {want: answered("from a worker")},
			"fork":            {want: answered("from a fork")},
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
		}
		if strings.Contains(f.log.String(), "xperimental") {
			t.Error("the program complains of what it does not do: ", f.log)
		}
	})
}

// A program cannot tell whether its process was started for it, or ahead.
func TestWhatANodeProgramFinds(t *testing.T) {
	t.Setenv("SECRET_OF_THE_NODE", "1")
	t.Setenv("LANG", "C.UTF-8")
	found := map[string]map[string]any{}
	for name, preload := range nodeModes {
		f := newNodeFixture(t, preload)
		var got map[string]any
		if err := json.Unmarshal([]byte(f.mustPlay(t, "describe é")), &got); err != nil {
			t.Fatal(err)
		}
		found[name] = got
		unlike := []any{}
		if preload != nil {
			unlike = []any{"TASK"} // which is not known yet
		}
		if diff := cmp.Diff(unlike, got["unlike"]); diff != "" {
			t.Errorf("%s: other than the imports', variables of the rollout are (-want +got):\n%s", name, diff)
		}
		delete(got, "unlike")
		if task, extra := got["task"], got["extra"]; task != "describe é" || extra != "more" {
			t.Errorf("%s: TASK is %q, EXTRA %q", name, task, extra)
		}
		if names := got["names"].([]any); slices.Contains(names, any("SECRET_OF_THE_NODE")) || !slices.Contains(names, any("OPENAI_BASE_URL")) {
			t.Errorf("%s: variables are %s", name, names)
		}
	}
	if diff := cmp.Diff(found["cold"], found["warm"]); diff != "" {
		t.Errorf("(-cold +warm):\n%s", diff)
	}
}

func TestAScriptInCommonJS(t *testing.T) {
	said := map[string]string{}
	for name, preload := range map[string][]string{"cold": nil, "warm": {"./early.cjs", "./early.mjs"}} {
		f := newNodeFixture(t, preload, func(o *Options) { o.Command.Args[1] = "agent.cjs" })
		said[name] = f.mustPlay(t, "say 7")
	}
	if want := "true true agent.cjs,early.cjs common more"; said["cold"] != want || said["warm"] != want {
		t.Errorf("%q, want %s", said, want)
	}
}

func TestEachNodeRolloutIsClean(t *testing.T) {
	inNodeModes(t, func(t *testing.T, preload []string) {
		f := newNodeFixture(t, preload)
		var mu sync.Mutex
		lots := map[float64]bool{}
		var running sync.WaitGroup
		for range 3 {
			running.Go(func() {
				for range 2 {
					s := soil(t, f)
					mu.Lock()
					if len(s.Found) > 0 {
						t.Errorf("marks of others: %s", s.Found)
					}
					lots[s.Lot] = true
					mu.Unlock()
				}
			})
		}
		running.Wait()
		if len(lots) != 6 {
			t.Errorf("random numbers repeat: %v", lots)
		}
	})
}

func TestNothingOfNodeIsLeft(t *testing.T) {
	inNodeModes(t, func(t *testing.T, preload []string) {
		f := newNodeFixture(t, preload)
		ways := []string{"group"}
		if seesDescendants {
			ways = append(ways, "session")
		}
		for _, way := range ways {
			if said := f.mustPlay(t, "leave "+way); said != "left one" {
				t.Errorf("%s: %q", way, said)
			}
		}
	})
}

// What an import has started ends with the process, though no rollout took it.
func TestWhatAnImportStarts(t *testing.T) {
	if !seesDescendants {
		t.Skip("what has left the group is not found on this system")
	}
	f := newNodeFixture(t, nodeModes["warm"], func(o *Options) {
		o.Concurrent = 1
		o.Command.Environ = append(o.Command.Environ, "EARLY=child")
	})
	gone := f.meter.meet(t)
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	gone()
}

func TestTheEndOfTheContextOfNode(t *testing.T) {
	given := errors.New("given up")
	inNodeModes(t, func(t *testing.T, preload []string) {
		agents := map[time.Duration]*fixture{}
		for how, c := range map[string]struct {
			grace time.Duration
			want  agent.Result
			err   error
		}{
			"obedient":  {grace: patience, err: given},
			"stubborn":  {grace: time.Millisecond, err: given},
			"busy":      {grace: time.Millisecond, err: given},
			"answering": {grace: patience, want: agent.Result{End: agent.Answered, Answer: "in time"}},
		} {
			f := agents[c.grace]
			if f == nil {
				f = newNodeFixture(t, preload, func(o *Options) { o.Grace = c.grace })
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

// A rollout whose time is over while nothing is ready is not the agent's failure, nor the environment's.
func TestTheWaitForASpareEnds(t *testing.T) {
	f := newNodeFixture(t, nodeModes["warm"], func(o *Options) { o.Command.Environ = append(o.Command.Environ, "EARLY=loop") })
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := f.Run(ctx, &answers{}, episode("say 7")); !errors.Is(err, context.DeadlineExceeded) || isEnvironments(err) {
		t.Error(err)
	}
}

// testSpares are some that no slot fills.
func testSpares(t *testing.T, f *fixture) *spares {
	p := f.start.(*spares)
	return &spares{
		command: p.command, gateway: p.gateway, scratch: t.TempDir(), limit: p.limit, script: p.script, log: p.log, ctx: t.Context(),
		importing: patience, heeding: patience,
		offers: make(chan *spare), waiting: make(chan struct{}), failures: make(chan error),
	}
}

// mustOpen opens a spare.
func mustOpen(t *testing.T, p *spares) *spare {
	t.Helper()
	s, err := p.open()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestASpareThatDies(t *testing.T) {
	f := newNodeFixture(t, nodeModes["warm"], func(o *Options) { o.Concurrent = 1 })
	p := testSpares(t, f)
	s := mustOpen(t, p)
	s.program.kill()
	if taken, err := p.offer(s); taken || err == nil || !strings.Contains(err.Error(), "signal: killed") {
		t.Errorf("%t, %v", taken, err)
	}
	if left, err := os.ReadDir(p.scratch); err != nil || len(left) > 0 {
		t.Errorf("folders are left: %v, %v", left, err)
	}
	own := f.start.(*spares)
	waits := <-own.offers
	waits.program.kill()
	go func() { own.offers <- waits }()
	if said := f.mustPlay(t, "say 7"); said != "7" {
		t.Error(said)
	}
}

func TestASpareThatIsStopped(t *testing.T) {
	f := newNodeFixture(t, nodeModes["warm"], func(o *Options) { o.Concurrent = 1 })
	p := testSpares(t, f)
	p.heeding = time.Millisecond
	s := mustOpen(t, p)
	if err := syscall.Kill(s.program.cmd.Process.Pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if _, err := p.start(t.Context(), s.room, base(s.room.place)); !errors.Is(err, errUnborn) {
		t.Error(err)
	}
	if err := s.room.vacate(); err != nil {
		t.Error(err)
	}
}

// When the node is gone its end of the socket is closed.
func TestSparesEndWithTheNode(t *testing.T) {
	f := newNodeFixture(t, nodeModes["warm"], func(o *Options) { o.Concurrent = 1 })
	s := mustOpen(t, testSpares(t, f))
	s.talk.Close()
	if end := <-s.program.ended; end.cause().Error() != "signal: killed" {
		t.Error(end)
	} else {
		s.program.ended <- end
	}
	if err := s.room.vacate(); err != nil {
		t.Error(err)
	}
}

func TestModulesThatNodeCannotImport(t *testing.T) {
	f := newNodeFixture(t, []string{"./early.mjs", "no-such-module"}, func(o *Options) { o.Concurrent = 1 })
	if err := f.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "Cannot find package 'no-such-module'") {
		t.Error(err)
	}
	for range 2 { // each with a new start
		if _, err := f.play(t, "say 7"); err == nil || !strings.Contains(err.Error(), "ended: exit status 1;") || !isEnvironments(err) {
			t.Error(err)
		}
	}
}

func TestImportsThatDoNotEnd(t *testing.T) {
	for how, want := range map[string]string{"loop": "took longer than", "wait": "ended: exit status"} {
		f := newNodeFixture(t, nodeModes["warm"], func(o *Options) {
			o.Concurrent = 1
			o.Command.Environ = append(o.Command.Environ, "EARLY="+how)
		})
		p := testSpares(t, f)
		if how == "loop" {
			p.importing = time.Millisecond
		}
		if _, err := p.open(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", how, err, want)
		}
		if left, err := os.ReadDir(p.scratch); err != nil || len(left) > 0 {
			t.Errorf("folders are left: %v, %v", left, err)
		}
	}
}

func TestANodeScriptThatIsGone(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "agent.mjs")
	if err := os.WriteFile(file, []byte("console.log(7)"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := newNodeFixture(t, []string{"node:fs"}, func(o *Options) { o.Command.Dir, o.Concurrent = dir, 1 })
	if said := f.mustPlay(t, ""); said != "7" {
		t.Error(said)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	f.play(t, "") // with what was prepared before
	f.play(t, "")
	if _, err := f.play(t, ""); !isEnvironments(err) || !strings.Contains(err.Error(), "Cannot find module") {
		t.Error(err)
	}
}
