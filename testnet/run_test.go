package testnet

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

// A run that is interrupted in the middle still stops every node, leaves no goroutine behind and writes its report.
func TestInterruptedRun(t *testing.T) {
	defer goleak.VerifyNone(t,
		// These of libp2p's dependencies live as long as the process.
		goleak.IgnoreTopFunction("github.com/ipfs/go-log/v2/writer.(*MirrorWriter).logRoutine"),
		goleak.IgnoreCurrent())
	o := DefaultOptions()
	o.Nodes, o.Dir = 2, filepath.Join(t.TempDir(), "run")
	o.Settings.Learner.Groups = 4
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	result, err := Run(ctx, o, func(p Progress) {
		if p.Step >= 1 && len(p.Evaluations) > 0 { // The measure of version 0 may take longer than the first step.
			cancel(errors.New("enough"))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	r := result.Report
	if !result.Interrupted || result.TimedOut || result.Reached {
		t.Errorf("interrupted %v, timed out %v, reached %v", result.Interrupted, result.TimedOut, result.Reached)
	}
	if r.Steps < 1 || len(r.Peers) != 3 || r.HeldOut.Start.Tasks != 256 || len(r.Examples) < o.Examples {
		t.Errorf("%d steps, %d peers, %d tasks measured, %d examples", r.Steps, len(r.Peers), r.HeldOut.Start.Tasks, len(r.Examples))
	}
	for _, name := range []string{"report.json", "report.html", "log.txt"} {
		if _, err := os.Stat(filepath.Join(o.Dir, name)); err != nil {
			t.Error(err)
		}
	}
}
