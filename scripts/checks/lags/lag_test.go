package lags

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lightswarm/lightswarm/virtualtime"
)

var (
	check  = flag.Bool("lag.check", false, "run the check; scripts/checks/lag does")
	quick  = flag.Bool("lag.quick", false, "run S = 0, 1 and 4 of the first loss for a few steps, and judge neither success nor what is trained")
	losses = flag.String("lag.loss", "dppo,ppo,reinforce", "losses, between commas; the first is judged")
)

// TestLag compares learners with different bounds on lag. Each run has virtual time of its own: rollouts wait, updates
// take a tenth of a second a step, and everything else takes no time.
func TestLag(t *testing.T) {
	if !*check {
		t.Skip("it takes minutes: run scripts/checks/lag")
	}
	e := experiment{steps: 40, tasks: 512, waits: waits{100 * time.Millisecond}, update: 50 * time.Millisecond}
	bounds, seeds, names := []uint64{0, 1, 2, 4, judgedBound, 16}, uint64(3), strings.Split(*losses, ",")
	if *quick {
		e.steps, e.tasks = 12, 128
		bounds, seeds, names = []uint64{0, 1, 4}, 1, names[:1]
	}
	warm(t, names)

	fmt.Fprint(os.Stdout, header)
	var wrong []string
	for i, name := range names {
		cells := e.cells(t, name, bounds, seeds)
		wrong = append(wrong, bounded(cells)...)
		switch last := cells[len(cells)-1]; {
		case i > 0: // shown beside the first
		case *quick:
			wrong = append(wrong, faster(cells[0], last)...)
		default:
			judged := cells[slices.Index(bounds, judgedBound)]
			wrong = append(wrong, learned(cells[0], judged)...)
			wrong = append(wrong, faster(cells[0], judged)...)
		}
	}
	if !*quick {
		wrong = append(wrong, realTime(t, e, names[0])...)
	}
	for _, w := range wrong {
		t.Error(w)
	}
	if len(wrong) == 0 {
		fmt.Fprintln(os.Stdout, "lag: holds")
	}
}

// cells runs a loss with each bound, the first of which is 0, and shows the rows as they come.
func (e experiment) cells(t *testing.T, loss string, bounds []uint64, seeds uint64) (cells []cell) {
	e.loss = loss
	for _, e.bound = range bounds {
		c := cell{loss: loss, bound: e.bound}
		for seed := range seeds {
			e.seed = 1 + seed
			virtualtime.Test(t, func(t *testing.T) { c.runs = append(c.runs, e.must(t)) })
		}
		cells = append(cells, c)
		fmt.Fprint(os.Stdout, c.row(cells[0]))
	}
	return cells
}

// realTime lets rollouts wait in real time, where computing takes as long as it takes. The first step of a run is synchronous
// whatever the bound, for want of anything older: the steps are as many as make little of it.
func realTime(t *testing.T, e experiment, loss string) []string {
	e.loss, e.seed, e.steps, e.tasks, e.update = loss, 1, 16, 0, 0
	e.waits = waits{200 * time.Millisecond}
	var cells []cell
	for _, bound := range []uint64{0, judgedBound} {
		e.bound = bound
		cells = append(cells, cell{e.loss, bound, []outcome{e.must(t)}})
	}
	fmt.Fprintf(os.Stdout, "real time, S=0 and %d: %.1f and %.1f rollouts/s\n", judgedBound, cells[0].rate(), cells[1].rate())
	return append(bounded(cells), faster(cells[0], cells[1])...)
}

// must runs an experiment.
func (e experiment) must(t *testing.T) outcome {
	t.Helper()
	o, err := e.run(t.Context())
	if err != nil {
		t.Fatalf("%s, S=%d, seed %d: %v", e.loss, e.bound, e.seed, err)
	}
	return o
}

// warm makes what is made once in a process and shared, such as the bundle codec's state, which one virtual time must not
// own, and tries the losses' names.
func warm(t *testing.T, names []string) {
	t.Helper()
	for _, name := range names {
		experiment{loss: name, steps: 1}.must(t)
	}
}
