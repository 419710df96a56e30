// Command survivekill trains a network of separate processes, kills a rollout node and the learner with SIGKILL on the
// way, starts them again, and checks that nothing was lost.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/lightswarm/lightswarm/node/api"
)

const (
	rolloutNodes = 3
	// The node dies once nodeAt is released, the learner once learnerAt is.
	nodeAt, learnerAt = 4, 9
	// patience is how long the whole training may take; on two idle processors it takes about half a minute.
	patience = 5 * time.Minute
)

func main() {
	quick := flag.Bool("quick", false, "end soon after the learner's death, with what was learned until then")
	work := flag.String("work", "", "folder for the data folders, kept afterwards (default a temporary one)")
	flag.Parse()
	if err := run(*work, *quick); err != nil {
		fmt.Fprintln(os.Stderr, "processes-survive-kill:", err)
		os.Exit(1)
	}
}

func run(work string, quick bool) error {
	if work == "" {
		temporary, err := os.MkdirTemp("", "survivekill")
		if err != nil {
			return err
		}
		defer os.RemoveAll(temporary)
		work = temporary
	}
	binary, err := filepath.Abs(".cache/bin/survivekill/lightswarm")
	if err != nil {
		return err
	}
	if out, err := exec.Command("go", "build", "-o", binary, "./cmd/lightswarm").CombinedOutput(); err != nil {
		return fmt.Errorf("build the program: %w: %s", err, out)
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), patience, fmt.Errorf("it took longer than %s", patience))
	defer cancel()
	s := &swarm{binary: binary, work: work, ctx: ctx, goal: whole, seen: newRecord(), started: time.Now()}
	if quick {
		s.goal = soon
	}
	defer s.end()
	if err := s.train(); err != nil {
		return err
	}
	return s.verify()
}

// goal is what training has to come to.
type goal struct {
	// success is that of the last version on held-out tasks. Version 0 has about a third.
	success float64
	// settings of the learner end training.
	settings []string
}

var (
	// Where success has only just got there, the evaluation of the last version falls below the target by chance.
	whole = goal{0.95, []string{"LIGHTSWARM_LEARNER_TARGET=0.95", "LIGHTSWARM_LEARNER_HOLD=6"}}
	soon  = goal{0.6, []string{"LIGHTSWARM_LEARNER_STEPS=16"}}
)

// swarm is the network under test.
type swarm struct {
	goal
	binary, work string
	ctx          context.Context
	started      time.Time
	learner      *node
	nodes        []*node
	join         []string
	seen         *record
	killed       struct {
		node            string // its peer id
		nodeVersion     uint64
		learnerVersion  uint64
		resumedVersion  uint64
		acceptedBefore  int
		contributedThen int // of the node that was killed, before the kill
	}
	final  api.Status
	ledger []api.LedgerEntry
}

// train founds the network, and kills and restarts as it learns.
func (s *swarm) train() error {
	data := filepath.Join(s.work, "learner")
	create := exec.Command(s.binary, "network", "create", "--name", "survivor", "--data", data, "--listen", "/ip4/127.0.0.1/tcp/0",
		"--groups-per-version", "11", "--json")
	create.Env = s.environment()
	out, err := create.Output()
	if err != nil {
		return fmt.Errorf("found the network: %w", err)
	}
	var created struct{ Network string }
	if err := json.Unmarshal(out, &created); err != nil {
		return fmt.Errorf("found the network: %w", err)
	}
	if s.learner, err = s.start(data, "learn"); err != nil {
		return err
	}
	s.join = []string{"join", created.Network}
	for _, address := range s.learner.Addresses {
		s.join = append(s.join, "--bootstrap", address)
	}
	for i := range rolloutNodes {
		n, err := s.start(filepath.Join(s.work, fmt.Sprintf("node%d", i+1)), s.join...)
		if err != nil {
			return err
		}
		s.nodes = append(s.nodes, n)
	}

	if err := s.watch(func() bool { return s.seen.head >= nodeAt }); err != nil {
		return fmt.Errorf("waiting for version %d: %w", nodeAt, err)
	}
	victim := s.nodes[0]
	s.killed.node, s.killed.nodeVersion, s.killed.contributedThen = victim.Peer, s.seen.head, s.seen.contributed[victim.Peer]
	s.say("killing rollout node %s at version %d", victim.Peer, s.seen.head)
	if err := victim.kill(); err != nil {
		return err
	}
	if s.nodes[0], err = s.start(victim.data, "join"); err != nil {
		return fmt.Errorf("start the killed rollout node again: %w", err)
	}

	if err := s.watch(func() bool { return s.seen.head >= learnerAt }); err != nil {
		return fmt.Errorf("waiting for version %d: %w", learnerAt, err)
	}
	s.killed.learnerVersion, s.killed.acceptedBefore = s.seen.head, len(s.seen.accepted)
	s.say("killing the learner at version %d, with %d bundles accepted", s.seen.head, len(s.seen.accepted))
	if err := s.learner.kill(); err != nil {
		return err
	}
	if s.learner, err = s.start(data, "learn"); err != nil {
		return fmt.Errorf("start the killed learner again: %w", err)
	}
	status, err := s.learner.client.Status(s.ctx)
	if err != nil {
		return err
	}
	s.killed.resumedVersion = status.Head.Version
	s.say("the learner continues at version %d", status.Head.Version)

	if err := s.watch(s.seen.done); err != nil {
		return fmt.Errorf("waiting for the final version: %w", err)
	}
	if s.final, err = s.learner.client.Status(s.ctx); err != nil {
		return err
	}
	s.ledger, err = s.learner.ledger(s.ctx)
	return err
}

// watch records the learner's events until a condition holds.
func (s *swarm) watch(until func() bool) error {
	return s.learner.watch(s.ctx, func(e api.Event) bool {
		s.seen.add(e)
		if e.Evaluation != nil {
			s.say("version %d: held-out %.3f, %s", e.Evaluation.Version, e.Evaluation.Success, e.Evaluation.Purpose)
		}
		return until()
	})
}

func (s *swarm) say(format string, values ...any) {
	fmt.Fprintf(os.Stderr, "%6.1fs %s\n", time.Since(s.started).Seconds(), fmt.Sprintf(format, values...))
}

// end leaves no process behind.
func (s *swarm) end() {
	for _, n := range append(s.nodes, s.learner) {
		if n != nil {
			n.kill() //nolint:errcheck // it may have ended
		}
	}
}
