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

// The scripts run the program as a user does; testdata/script has one for each theme.
func TestScripts(t *testing.T) {
	// Modules are built with the packages that are built already, and compiled once for all scripts.
	goCache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	cache := t.TempDir()
	t.Cleanup(func() {
		// What two versions of the engine compiled was compiled twice, once under the race detector: it takes minutes.
		modules, err := filepath.Glob(filepath.Join(cache, "lightswarm", "modules", "*"))
		compiled, err2 := filepath.Glob(filepath.Join(cache, "lightswarm", "modules", "*", "*"))
		if err != nil || err2 != nil || len(modules) == 0 || len(compiled) != len(modules) {
			t.Errorf("%d modules were compiled to %q: see package wasmtest", len(modules), compiled)
		}
	})
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
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
			"compile":      compileCommand,
			"exitcode":     exitCodeCommand,
			"jsonline":     jsonLineCommand,
			"member":       memberCommand,
			"package":      packageCommand,
			"recordbundle": recordBundleCommand,
			"waitfinished": waitFinishedCommand,
			"waitfor":      waitForCommand,
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
	})
}
