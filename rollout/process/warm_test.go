//go:build unix

package process

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// soiled is what a program found of others' marks.
type soiled struct {
	Found      []string
	Lot        float64
	ImportedIn int `json:"imported_in"`
}

func soil(t *testing.T, f *fixture) (s soiled) {
	t.Helper()
	if err := json.Unmarshal([]byte(f.mustPlay(t, "soil")), &s); err != nil {
		t.Error(err)
	}
	return s
}

func TestEachRolloutIsClean(t *testing.T) {
	inModes(t, func(t *testing.T, preload []string) {
		f := newFixture(t, preload)
		var mu sync.Mutex
		lots, interpreters := map[float64]bool{}, map[int]bool{}
		var running sync.WaitGroup
		for range 3 {
			running.Go(func() {
				for range 2 {
					s := soil(t, f)
					mu.Lock()
					if len(s.Found) > 0 {
						t.Errorf("marks of others: %s", s.Found)
					}
					lots[s.Lot], interpreters[s.ImportedIn] = true, true
					mu.Unlock()
				}
			})
		}
		running.Wait()
		if left, err := os.ReadDir(f.Agent.scratch); err != nil || len(left) != len(preload) { // the interpreter's
			t.Errorf("folders are left: %v, %v", left, err)
		}
		if len(lots) != 6 {
			t.Errorf("random numbers repeat: %v", lots)
		}
		if len(interpreters) != 1 {
			t.Errorf("interpreters: %v", interpreters)
		}
	})
}

// Certificates that are put off are there when they are asked for.
func TestCertificatesAreTheSame(t *testing.T) {
	found := map[string]string{}
	for mode, preload := range modes {
		found[mode] = newFixture(t, preload).mustPlay(t, "certificates")
	}
	if cold, warm := found["cold"], found["warm"]; cold == "" || cold != warm {
		t.Errorf("a fork's contexts have %s, want %s", warm, cold)
	}
}

func TestTheInterpreterIsStartedAgain(t *testing.T) {
	f := newFixture(t, modes["warm"])
	w := f.start.(*warm)
	seen := map[string]bool{}
	for range 3 {
		i := w.interpreter()
		said := f.mustPlay(t, "murder interpreter") // and goes on
		<-i.gone
		if seen[said] {
			t.Error("an interpreter was killed twice: ", said)
		}
		seen[said] = true
	}
	if said := f.mustPlay(t, "say 7"); said != "7" {
		t.Error(said)
	}
	if !strings.Contains(f.log.String(), "started again") {
		t.Error("the log is silent about it")
	}
}

// A guard is for one agent after the other, and only for agents that left nothing.
func TestAGuardIsKept(t *testing.T) {
	f := newFixture(t, modes["warm"])
	first := f.mustPlay(t, "guard")
	if second := f.mustPlay(t, "guard"); second != first {
		t.Errorf("the second agent has guard %s, want %s", second, first)
	}
	if _, err := f.play(t, "murder guard"); err == nil {
		t.Error("an agent outlived its guard")
	}
	if other := f.mustPlay(t, "guard"); other == first {
		t.Error("a guard came back from death")
	}
	if i := f.start.(*warm).interpreter(); len(i.guards) != 1 {
		t.Errorf("%d guards have nothing to do, want 1", len(i.guards))
	}
}

// What is told to an agent that has just ended is not for the next.
func TestLateWordsToAGuard(t *testing.T) {
	f := newFixture(t, modes["warm"])
	first := f.mustPlay(t, "guard")
	i := f.start.(*warm).interpreter()
	if _, err := i.guards[0].Write([]byte("tk")); err != nil {
		t.Fatal(err)
	}
	if second := f.mustPlay(t, "guard"); second != first {
		t.Errorf("the second agent has guard %s, want %s", second, first)
	}
}

func TestAGuardTakesItsAgentWithIt(t *testing.T) {
	f := newFixture(t, modes["warm"])
	done := make(chan error)
	go func() {
		_, err := f.play(t, "murder guard")
		done <- err
	}()
	// It may be faster than its guard is to say that it was born.
	if err := <-done; err == nil || !strings.Contains(err.Error(), errLost.Error()) && !strings.Contains(err.Error(), errUnborn.Error()) {
		t.Error(err)
	}
	if said := f.mustPlay(t, "say 7"); said != "7" {
		t.Error(said)
	}
}

func TestAGuardThatIsStopped(t *testing.T) {
	all := newMeter(t)
	f := newFixture(t, modes["warm"], func(o *Options) {
		o.Grace = time.Millisecond
		o.Command.Environ = append(o.Command.Environ, "EARLY_METER="+all.listener.Addr().String())
	})
	f.start.(*warm).killing = 100 * time.Millisecond
	allGone := all.meet(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := f.Run(ctx, &answers{}, episode("stop guard"))
		done <- err
	}()
	agentGone := f.meter.meet(t)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	agentGone()
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	allGone()
}

// When the node is gone its end of each guard's socket is closed.
func TestAgentsEndWithTheNode(t *testing.T) {
	f := newFixture(t, modes["warm"])
	w := f.start.(*warm)
	r, err := w.prepare(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.tell("hang stubborn")
	program, err := w.start(t.Context(), r, append(base(r.place), w.command.Environ...))
	if err != nil {
		t.Fatal(err)
	}
	r.listen()
	gone := f.meter.meet(t)
	program.(*fork).talk.Close()
	gone()
	program.wait()
	if err := r.vacate(); err != nil {
		t.Error(err)
	}
}

func TestModulesThatCannotBeImported(t *testing.T) {
	f := newFixture(t, []string{"early", "no_such_module"})
	if err := f.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "No module named 'no_such_module'") {
		t.Error(err)
	}
	for range 3 { // each with a new start
		if _, err := f.play(t, "say 7"); err == nil || !strings.Contains(err.Error(), "ended: exit status 1;") || !isEnvironments(err) {
			t.Error(err)
		}
	}
}

func TestAScriptWithAnErrorInIt(t *testing.T) {
	f := newFixture(t, modes["warm"], func(o *Options) { o.Command.Args = []string{python(), "broken.py"} })
	if _, err := f.play(t, "say 7"); err == nil || !strings.Contains(err.Error(), "SyntaxError") {
		t.Error(err)
	}
}
