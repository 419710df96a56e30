package program

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/protocol"
	"github.com/lightswarm/lightswarm/wire"
)

// What the test's own binary is started with to be something else.
const (
	childArgument = "program-child"
	nodeArgument  = "program-node"
)

// The test's own binary is the beginning of a program's process too.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == childArgument {
		// Not on the process's first thread, as it may happen.
		runtime.LockOSThread()
		err := make(chan error)
		go func() { err <- Work(os.Args[2]) }()
		fmt.Fprintln(os.Stderr, <-err)
		os.Exit(1)
	}
	if len(os.Args) == 2 && os.Args[1] == nodeArgument {
		fmt.Fprintln(os.Stderr, node())
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// node says the number of a program's process, which sleeps from then on. It does not return but with an error.
func node() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	p, err := env.NewPackage(manifest(), map[string][]byte{"hostile.py": hostile})
	if err != nil {
		return err
	}
	ctx := context.Background()
	e, err := New(Options{Command: []string{self, childArgument}}).Open(ctx, p)
	if err != nil {
		return err
	}
	episode, err := e.Reset(ctx, "train", 0)
	if err != nil {
		return err
	}
	pid, err := episode.Call(ctx, "pid", "")
	if err != nil {
		return err
	}
	fmt.Println(pid)
	_, err = episode.Call(ctx, "sleep", "")
	return err
}

//go:embed testdata/hostile.py
var hostile []byte

// needSandbox skips where there is nothing to test.
func needSandbox(t testing.TB) {
	t.Helper()
	landlock, err := support()
	if err == nil && !landlock {
		err = errors.New("this system has no Landlock")
	}
	if err != nil {
		t.Skip(err)
	}
	if _, err := exec.LookPath("python3"); err != nil {
		t.Fatal(err)
	}
}

// TestSandboxCanBeTested is skipped where most others are: scripts/test says so at its end.
func TestSandboxCanBeTested(t *testing.T) { needSandbox(t) }

func testDriver(t testing.TB) *Driver {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return New(Options{Command: []string{self, childArgument}, Episodes: 4})
}

// manifest is that of a program with little memory and time.
func manifest() wire.EnvironmentManifest {
	return wire.EnvironmentManifest{
		Name: "hostile", Version: "1.0.0", Licence: "Apache-2.0", Kind: Kind, Entry: "hostile.py",
		Splits:    []wire.Split{{Name: "train", Tasks: 1000}},
		RewardMin: 0, RewardMax: 1, Determinism: wire.DeterminismStochastic, Agents: []string{"solver"},
		Limits: wire.EpisodeLimits{MemoryBytes: 128 << 20, Steps: 20_000},
	}
}

func newPackage(t testing.TB, m wire.EnvironmentManifest, program []byte) *env.Package {
	t.Helper()
	p, err := env.NewPackage(m, map[string][]byte{m.Entry: program})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// openHostile opens the program in testdata, and closes it with the test.
func openHostile(t testing.TB, m wire.EnvironmentManifest) *Environment {
	t.Helper()
	needSandbox(t)
	e, err := testDriver(t).Open(context.WithoutCancel(t.Context()), newPackage(t, m, hostile))
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

// act has a new episode do one thing.
func act(t testing.TB, e env.Environment, name, arguments string) (string, error) {
	t.Helper()
	p, err := e.Reset(t.Context(), "train", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	return p.Call(t.Context(), name, arguments)
}

// failure is what an error says of a program.
func failure(t testing.TB, err error) protocol.Failure {
	t.Helper()
	var f *protocol.Failure
	if !errors.As(err, &f) {
		t.Fatalf("%v is no failure of the environment", err)
	}
	return *f
}
