package testnet

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lightswarm/lightswarm/node/api"
	"github.com/lightswarm/lightswarm/testnet/report"
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
	if !result.Interrupted || result.TimedOut || result.Reached || r.End != report.EndInterrupt {
		t.Errorf("interrupted %v, timed out %v, reached %v, ended by %s", result.Interrupted, result.TimedOut, result.Reached, r.End)
	}
	if r.Steps < 1 || len(r.Peers) != 3 || r.HeldOut.Start.Tasks != 256 || len(r.Examples) < o.Examples {
		t.Errorf("%d steps, %d peers, %d tasks measured, %d examples", r.Steps, len(r.Peers), r.HeldOut.Start.Tasks, len(r.Examples))
	}
	for _, name := range []string{"report.json", "report.html", "log.txt", "metrics.jsonl"} {
		if _, err := os.Stat(filepath.Join(o.Dir, name)); err != nil {
			t.Error(err)
		}
	}
}

func TestEndOfARun(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		steps   int
		ctx     context.Context
		watched error
		want    report.End
	}{
		{0, t.Context(), nil, report.EndTarget},
		{7, t.Context(), nil, report.EndTarget},
		{6, t.Context(), nil, report.EndSteps},
		{6, t.Context(), errTimeout, report.EndTimeout},
		{6, cancelled, context.Canceled, report.EndInterrupt},
		{6, cancelled, nil, report.EndSteps}, // the interrupt came too late
		{6, t.Context(), errEnded, report.EndFailure},
	} {
		r := &run{Options: DefaultOptions(), collector: NewCollector(time.Now(), 8, 0.95)}
		r.Settings.Learner.Steps = c.steps
		r.collector.Add("learner", api.Event{Release: &api.Release{Version: 6, Final: true}})
		if got := r.end(c.ctx, c.watched); got != c.want {
			t.Errorf("%d steps, %v: ended by %s, want %s", c.steps, c.watched, got, c.want)
		}
	}
}
