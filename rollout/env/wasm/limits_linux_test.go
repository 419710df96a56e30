package wasm_test

import (
	"fmt"
	"os"
	"regexp"
	"testing"

	"github.com/lightswarm/lightswarm/rollout/env/wasm"
)

// The process of an environment has limits besides its modules', and nothing of the node's environment.
func TestProcessHasLimits(t *testing.T) {
	e := sharedHostile(t)
	folder := fmt.Sprintf("/proc/%d/", wasm.ChildID(e))
	limits, err := os.ReadFile(folder + "limits")
	if err != nil {
		t.Fatal(err)
	}
	// 1 GiB, and three times 16 MiB for each of 8 episodes.
	for _, want := range []string{`Max data size +1476395008 +1476395008`, `Max core file size +0 +0`, `Max open files +64 +64`} {
		if !regexp.MustCompile(want).Match(limits) {
			t.Errorf("there is no %q in:\n%s", want, limits)
		}
	}
	if environ, err := os.ReadFile(folder + "environ"); err != nil || string(environ) != "GOTRACEBACK=none\x00" {
		t.Errorf("its environment is %q, %v", environ, err)
	}
}
