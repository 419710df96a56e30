package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lightswarm/lightswarm/node/config"
)

// An interrupt writes no policy, and says how to go on if that is possible.
func TestInterruptedTraining(t *testing.T) {
	bundles := t.TempDir()
	if err := recordGroups(t.Context(), bundles, 1, 0); err != nil {
		t.Fatal(err)
	}
	p := &program{out: io.Discard, err: os.Stderr}
	for state, want := range map[string]string{"": "interrupted", t.TempDir(): "interrupted; the same command goes on behind version 0"} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errInterrupted)
		out := filepath.Join(t.TempDir(), "out")
		training := &folderTraining{bundles: bundles, charter: filepath.Join(bundles, "charter"), out: out, state: state}
		err := p.trainFolder(ctx, training, config.Default().Learner)
		if exitCode(err) != exitInterrupted || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("exit code %d, %v, want %q", exitCode(err), err, want)
		}
		if exists(out) {
			t.Error("a policy is written")
		}
	}
}
