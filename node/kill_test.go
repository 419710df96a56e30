package node

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/lightswarm/lightswarm/node/api"
	"github.com/lightswarm/lightswarm/node/config"
	"github.com/lightswarm/lightswarm/node/store"
)

// victim is set in the environment of the process that TestKilledNodeContinues kills; it names its data folder.
const victim = "LIGHTSWARM_NODE_TEST_VICTIM"

// killed are the options of the node that is killed, and of the one that continues.
func killed(t *testing.T, folder string) Options {
	o := options(t, settings(config.RoleLearner, config.RoleRollout))
	o.Folder, o.Found = folder, parityNetwork(t)
	return o
}

// A node that is killed at any moment continues: every release that it told of is there, and every bundle that it said
// it accepted waits or was trained on.
func TestKilledNodeContinues(t *testing.T) {
	t.Parallel()
	if folder := os.Getenv(victim); folder != "" {
		tell(t, killed(t, folder))
	}
	folder := t.TempDir()
	for round := range 3 {
		var version uint64
		var accepted []string
		for _, line := range killAfter(t, folder, 12+9*round) {
			var made uint64
			if cid, ok := strings.CutPrefix(line, "accepted "); ok {
				accepted = append(accepted, cid)
			} else if _, err := fmt.Sscanf(line, "made %d", &made); err == nil {
				version = made
			}
		}
		checkNothingLost(t, folder, version, accepted)
	}
	n := start(t, killed(t, folder))
	before := n.Status().Head.Version
	n.until("a new version is out", func() bool { return n.Status().Head.Version > before })
}

// killAfter runs the node in a process of its own, kills it after it told some things, and returns all that it told.
func killAfter(t *testing.T, folder string, lines int) (told []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	command := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestKilledNodeContinues$")
	command.Env = append(os.Environ(), victim+"="+folder)
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	scanner := bufio.NewScanner(output)
	for scanner.Scan() {
		told = append(told, scanner.Text())
		if len(told) == lines {
			if err := command.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := command.Wait(); len(told) < lines {
		t.Fatalf("the node ended early: %v; it told %q", err, told)
	}
	return told
}

// checkNothingLost looks into the database of a node that does not run.
func checkNothingLost(t *testing.T, folder string, version uint64, accepted []string) {
	t.Helper()
	s, err := store.Open(store.Options{Folder: config.View(folder).Database(), MaxBlockBytes: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.Head() < version {
		t.Errorf("the head is %d, the node had told of %d", s.Head(), version)
	}
	recovery, err := s.Learner().Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if version > 0 && (recovery.Checkpoint == nil || recovery.Checkpoint.Version < version) {
		t.Errorf("there is no checkpoint of version %d", version)
	}
	kept := map[string]bool{}
	for _, r := range recovery.Records {
		kept[r.CID.String()] = true
	}
	ledger, err := s.Ledger(0, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range ledger {
		for _, cid := range slices.Concat(e.Trained, e.Evaluated) {
			kept[cid.String()] = true
		}
	}
	for _, cid := range accepted {
		if !kept[cid] {
			t.Errorf("accepted bundle %s is lost", cid)
		}
	}
}

// tell is the victim: it says what it made and accepted until it is killed.
func tell(t *testing.T, o Options) {
	n := start(t, o)
	events, end := n.Subscribe(1 << 12)
	defer end()
	for e := range events {
		switch {
		case e.Type == api.EventVerdict && e.Verdict.Accepted:
			fmt.Fprintln(os.Stdout, "accepted", e.Verdict.CID)
		case e.Type == api.EventStep:
			fmt.Fprintln(os.Stdout, "made", e.Step.Version)
		}
	}
}
