package program

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/wire"
)

// Where there is no sandbox, nothing is run, and the error says why and what to do.
func TestWithoutSandbox(t *testing.T) {
	p := newPackage(t, manifest(), []byte("#!/usr/bin/env python3\n"))
	d := testDriver(t)
	d.support = func() (bool, error) { return false, errors.New("there is none here") }
	if _, err := d.Open(t.Context(), p); err == nil || !strings.Contains(err.Error(), "run in a sandbox: there is none here") {
		t.Errorf("%v", err)
	}
	d.options.WithoutLandlock = true
	if _, err := d.Open(t.Context(), p); err == nil {
		t.Error("the rest of the sandbox can be done without")
	}
	d.support = func() (bool, error) { return false, nil }
	d.options.WithoutLandlock = false
	if _, err := d.Open(t.Context(), p); err == nil || !strings.Contains(err.Error(), "Landlock is missing. Use Linux 5.13 or later") {
		t.Errorf("%v", err)
	}
}

// The owner of a machine without Landlock may allow it; the other walls stand.
func TestWithoutLandlock(t *testing.T) {
	needSandbox(t)
	d := testDriver(t)
	d.support = func() (bool, error) { return false, nil }
	d.options.WithoutLandlock = true
	e, err := d.Open(t.Context(), newPackage(t, manifest(), hostile))
	if err != nil {
		t.Fatal(err)
	}
	defer env.Close(e)
	if said, err := act(t, e, "read", `["/proc/self/stat"]`); err != nil || !strings.HasPrefix(said, "did") {
		t.Errorf("%q, %v", said, err)
	}
	if said, err := act(t, e, "calls", ""); err != nil || said != "[]" {
		t.Errorf("not refused: %s, %v", said, err)
	}
}

// What cannot be run is refused when it is opened.
func TestPackagesThatCannotBeRun(t *testing.T) {
	needSandbox(t)
	const shebang = "#!/usr/bin/env "
	script := filepath.Join(t.TempDir(), "chooser")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", os.Getenv("PATH")+string(os.PathListSeparator)+filepath.Dir(script))
	for _, c := range []struct{ program, says string }{
		{"print('hello')\n", "its first line must be"},
		{"#!/bin/sh\n", "its first line must be"},
		{shebang + "../../bin/sh\n", "its first line must be"},
		{shebang + "-S python3 -c 1\n", "its first line must be"},
		{shebang + "python3", "its first line must be"},
		{shebang + strings.Repeat("x", maxName+1) + "\n", "its first line must be"},
		{shebang + "no-such-interpreter\n", "there is no no-such-interpreter in PATH: install it"},
		{shebang + "chooser\n", "is no executable but a script"},
	} {
		_, err := testDriver(t).Open(t.Context(), newPackage(t, manifest(), []byte(c.program)))
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %v, want …%s…", c.program, err, c.says)
		}
	}
	for says, change := range map[string]func(*wire.EnvironmentManifest){
		"must be the artefact":                   func(m *wire.EnvironmentManifest) { m.Entry = "other.py" },
		"limits.memory_bytes is 0":               func(m *wire.EnvironmentManifest) { m.Limits.MemoryBytes = 0 },
		"limits.steps is 1; milliseconds":        func(m *wire.EnvironmentManifest) { m.Limits.Steps = 1 },
		"determinism must be stochastic: what a": func(m *wire.EnvironmentManifest) { m.Determinism = wire.DeterminismExact },
	} {
		m := manifest()
		change(&m)
		p, err := env.NewPackage(m, map[string][]byte{"hostile.py": hostile})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := testDriver(t).Open(t.Context(), p); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want …%s…", err, says)
		}
	}
}

// An executable needs no interpreter, and another interpreter than Python is found too.
func TestOtherPrograms(t *testing.T) {
	needSandbox(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	binary, err := os.ReadFile("/bin/true")
	if err != nil {
		t.Skip(err)
	}
	for _, program := range [][]byte{binary, []byte("#!/usr/bin/env sh\nexit 0\n")} {
		e, err := New(Options{Command: []string{self, childArgument}}).Open(t.Context(), newPackage(t, manifest(), program))
		if err != nil {
			t.Fatal(err)
		}
		_, err = e.Reset(t.Context(), "train", 0)
		if f := failure(t, err); !strings.Contains(f.Detail, "reset: it ended with status 0 before it had answered") {
			t.Errorf("%v", f)
		}
		if err := env.Close(e); err != nil {
			t.Error(err)
		}
	}
}

// An interpreter among other files is none that may be read.
func TestInterpretersHaveFoldersOfTheirOwn(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	inside := filepath.Join(home, "python")
	if err := os.Mkdir(inside, 0o700); err != nil {
		t.Fatal(err)
	}
	found, err := filepath.EvalSymlinks(inside)
	if err != nil {
		t.Fatal(err)
	}
	if folders, err := outside(inside); err != nil || len(folders) != 1 || folders[0] != found {
		t.Errorf("%q, %v", folders, err)
	}
	if folders, err := outside("/usr/bin"); err != nil || folders != nil {
		t.Errorf("%q, %v", folders, err)
	}
	local := filepath.Join(home, ".local")
	if err := os.MkdirAll(filepath.Join(local, "share"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{home, filepath.Dir(home), "/", local} {
		if folders, err := outside(folder); err == nil {
			t.Errorf("%s: %q", folder, folders)
		}
	}
	if _, err := exec.LookPath("python3"); err == nil {
		if command, _, err := interpreter(t.Context(), hostile); err != nil || len(command) != 1 {
			t.Errorf("%q, %v", command, err)
		}
	}
}
