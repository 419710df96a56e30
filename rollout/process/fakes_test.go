//go:build unix

package process

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/rollout/agent"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/gateway"
)

// patience bounds waits for what is to happen at once, on a machine that does much else.
const patience = time.Minute

var (
	interpreterFlag = flag.String("python", "", "the Python interpreter of the tests and benchmarks; empty looks for python3")
	importFlag      = flag.String("import", "json", "a module that the agents of the benchmarks import")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// python is the interpreter itself: what is in PATH may be a script that looks for it.
var python = sync.OnceValue(func() string {
	if *interpreterFlag != "" {
		return *interpreterFlag
	}
	out, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		panic("tests need python3: " + err.Error())
	}
	return strings.TrimSpace(string(out))
})

// modes are the ways to start a program, by name: the modules to preload.
var modes = map[string][]string{"cold": nil, "warm": {"early"}}

// inModes runs a test in each mode.
func inModes(t *testing.T, test func(t *testing.T, preload []string)) {
	for name, preload := range modes {
		t.Run(name, func(t *testing.T) { test(t, preload) })
	}
}

// episode is an episode with one task.
type episode string

func (e episode) Messages() []chat.Message {
	return []chat.Message{
		{Role: chat.System, Content: "help"}, {Role: chat.User, Content: "say no"}, {Role: chat.Assistant, Content: "no"},
		{Role: chat.User, Content: string(e)},
	}
}
func (episode) Tools() []chat.Tool                                   { return nil }
func (episode) Call(context.Context, string, string) (string, error) { return "", nil }
func (episode) Score(context.Context, string) (env.Score, error)     { return env.Score{}, nil }
func (episode) Close() error                                         { return nil }

// answers is a policy that says "seven" until it fails with an error.
type answers struct {
	good int
	err  error

	mu   sync.Mutex
	seen int // guarded by mu
}

func (a *answers) Complete(_ context.Context, r agent.Request) (agent.Reply, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.seen++; a.seen > a.good {
		return agent.Reply{}, a.err
	}
	return agent.Reply{
		Message: chat.Message{Role: chat.Assistant, Content: "seven", Tokens: []int32{7, 1}},
		Call:    a.seen - 1, Prompt: []int32{1}, LogProbs: []float32{-1, -1}, Pieces: []string{"seven", "<end>"},
	}, nil
}

// fixture is an agent with the test's program, and what the program meets.
type fixture struct {
	*Agent
	meter   *meter
	scratch string
	log     *safeBuffer
}

// newFixture makes an agent that is closed with the test, which then finds nothing left of it.
func newFixture(t testing.TB, preload []string, change ...func(*Options)) *fixture {
	t.Helper()
	g, err := gateway.Serve(gateway.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	f := &fixture{meter: newMeter(t), scratch: t.TempDir(), log: &safeBuffer{}}
	o := Options{
		Gateway: g, Roles: []string{"solver"}, Scratch: f.scratch, Grace: patience,
		Command: Command{
			Args: []string{python(), "agent.py", "an argument"}, Dir: "testdata", Preload: preload,
			Environ: []string{"METER=" + f.meter.listener.Addr().String(), "EXTRA=more"},
		},
		Log: slog.New(slog.NewTextHandler(f.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	for _, c := range change {
		c(&o)
	}
	if f.Agent, err = New(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(f.scratch); err != nil || len(left) > 0 {
			t.Errorf("folders are left: %v, %v", left, err)
		}
	})
	return f
}

// play runs one rollout with a task.
func (f *fixture) play(t testing.TB, task string) (agent.Result, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	return f.Run(ctx, &answers{good: 100}, episode(task))
}

// mustPlay is the answer of one rollout.
func (f *fixture) mustPlay(t testing.TB, task string) string {
	t.Helper()
	r, err := f.play(t, task)
	if err != nil || r.End != agent.Answered {
		t.Fatalf("%s: %+v, %v", task, r, err)
	}
	return r.Answer
}

// meter meets the processes that connect to it.
type meter struct{ listener *net.TCPListener }

func newMeter(t testing.TB) *meter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return &meter{l.(*net.TCPListener)}
}

// meet waits until a process runs. What it returns waits until it has ended.
func (m *meter) meet(t testing.TB) (gone func()) {
	t.Helper()
	m.listener.SetDeadline(time.Now().Add(patience))
	conn, err := m.listener.Accept()
	if err != nil {
		t.Fatal("no process came: ", err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(patience))
	lines := bufio.NewReader(conn)
	if said, err := lines.ReadString('\n'); err != nil || said != "here\n" {
		t.Fatalf("the process said %q, %v", said, err)
	}
	return func() {
		t.Helper()
		if _, err := lines.ReadByte(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("a process is left: ", err)
		}
	}
}

// safeBuffer is a buffer for concurrent use.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer // guarded by mu
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
