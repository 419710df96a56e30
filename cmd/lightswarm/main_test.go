package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"lightswarm": main})
}

// The scripts of testdata/script run the program as it is built for users, without the race detector; each script has one
// theme. They are about what a command takes, says and leaves. What the program does at once is raced by the tests of its
// packages and by TestRacedScripts; a race that only another script would show is not found. With the detector most of their
// time would go into starting processes and compiling modules, fifteen times more slowly.
func TestScripts(t *testing.T) {
	folder := t.TempDir()
	// GOFLAGS may ask for the detector, and a copy of the source need be no repository.
	build := exec.Command("go", "build", "-race=false", "-buildvcs=false", "-o", folder+string(filepath.Separator), ".")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the program: %v: %s", err, said)
	}
	runScripts(t, "testdata/script", folder)
}

// The scripts of testdata/raced run the test binary as the program, so under the race detector when the tests are. They have
// what only the program brings together: a whole network in one process, one of processes that lose their parent, and a
// learner that is asked while it works and is interrupted.
func TestRacedScripts(t *testing.T) { runScripts(t, "testdata/raced", "") }

// runScripts runs the scripts of a folder. They find the program in another one, or else it is the test binary.
func runScripts(t *testing.T, scripts, program string) {
	// Modules are built with the packages that are built already, and compiled once for all scripts.
	goCache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	cache := t.TempDir()
	testscript.Run(t, testscript.Params{
		Dir: scripts,
		Setup: func(e *testscript.Env) error {
			if program != "" {
				e.Setenv("PATH", program+string(filepath.ListSeparator)+e.Getenv("PATH"))
			}
			// Nothing of the user's reaches a script. A node of a test answers on loopback only.
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("XDG_DATA_HOME", e.WorkDir)
			e.Setenv("XDG_CACHE_HOME", cache)
			// A process need not wait a second at its end for what the race detector may still find.
			e.Setenv("GORACE", "atexit_sleep_ms=0")
			e.Setenv("GOCACHE", strings.TrimSpace(string(goCache)))
			e.Setenv("LIGHTSWARM_P2P_LISTEN", "/ip4/127.0.0.1/tcp/0")
			e.Setenv("LIGHTSWARM_P2P_MDNS", "false")
			e.Setenv("LIGHTSWARM_P2P_DHT", "false")
			e.Setenv("LIGHTSWARM_P2P_NAT_PORT_MAP", "false")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exitcode":     exitCodeCommand,
			"jsonline":     jsonLineCommand,
			"member":       memberCommand,
			"package":      packageCommand,
			"recordbundle": recordBundleCommand,
			"recordgroups": recordGroupsCommand,
			"waitfinished": waitFinishedCommand,
			"waitfor":      waitForCommand,
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
	})
}
