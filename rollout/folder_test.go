package rollout_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/policy/base"
	"github.com/lightswarm/lightswarm/policy/embedded"
	"github.com/lightswarm/lightswarm/rollout"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/calc"
	"github.com/lightswarm/lightswarm/virtualtime"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

// calcNetwork is a network of environment calc with groups of 4, two a version.
func calcNetwork(t *testing.T) *rollout.Network {
	t.Helper()
	set, err := env.NewSet(calc.New())
	if err != nil {
		t.Fatal(err)
	}
	reference, err := env.Reference(calc.New())
	if err != nil {
		t.Fatal(err)
	}
	return &rollout.Network{
		ID:           wire.SumCID([]byte("folder")),
		Environments: set,
		Charter: &wire.Charter{
			Environments: []wire.EnvironmentRef{reference},
			Rollout: wire.RolloutRules{
				GroupSize: 4, MaxCalls: 4, MaxCompletionTokens: 48, Sampling: wire.Sampling{Temperature: 1}, GroupsPerVersion: 2,
			},
			Evaluation: wire.EvaluationRules{Tasks: 8, BlockTasks: 8},
		},
	}
}

func peer() wire.PeerID {
	return wire.NewKey(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))).Peer()
}

func basePolicy(t *testing.T) *policy.Snapshot {
	t.Helper()
	s, err := base.Load()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestWorkerRunsOnFolders runs a worker from a folder of policies to a folder of bundles, with the embedded engine and
// no network, and computes its bundles again.
func TestWorkerRunsOnFolders(t *testing.T) {
	first := basePolicy(t)
	changed := slices.Clone(first.Tensors)
	changed[0].Data = append([]byte(nil), changed[0].Data...)
	changed[0].Data[1] ^= 1
	second, err := first.WithTensors(changed)
	if err != nil {
		t.Fatal(err)
	}
	policies, results := t.TempDir(), t.TempDir()
	network := calcNetwork(t)
	virtualtime.Test(t, func(t *testing.T) {
		engine := embedded.New(embedded.Options{Threads: 1})
		defer engine.Close()
		folder, err := rollout.OpenFolder(results)
		if err != nil {
			t.Fatal(err)
		}
		worker, err := rollout.NewWorker(rollout.WorkerConfig{
			Peer: peer(), Network: network, Policies: rollout.NewFolderPolicies(policies, engine, bundle.EngineExact),
			Announcer: folder, Counters: folder, Evaluations: folder, Patience: time.Hour,
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- worker.Run(ctx) }()
		for version, s := range []*policy.Snapshot{first, second} {
			if err := s.WriteDir(filepath.Join(policies, []string{"0", "1"}[version])); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v", err)
		}

		names, err := filepath.Glob(filepath.Join(results, "*.bundle"))
		if err != nil {
			t.Fatal(err)
		}
		want := []string{
			"v00000000-000000000000.bundle", "v00000000-000000000001.bundle",
			"v00000001-000000000002.bundle", "v00000001-000000000003.bundle",
		}
		for i, name := range names {
			names[i] = filepath.Base(name)
		}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Fatalf("bundles (-want +got):\n%s", diff)
		}
		for _, name := range names {
			data, err := os.ReadFile(filepath.Join(results, name))
			if err != nil {
				t.Fatal(err)
			}
			recorded, err := bundle.Decode(data, bundle.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			again := recompute(t, network, []*policy.Snapshot{first, second}[recorded.PolicyVersion], recorded)
			if diff := cmp.Diff(recorded, again, cmp.Comparer(func(a, b wire.CID) bool { return a == b })); diff != "" {
				t.Errorf("%s is not what its draw gives (-recorded +again):\n%s", name, diff)
			}
		}
	})
}

// recompute runs a recorded group again, one rollout at a time on an engine with one slot.
func recompute(t *testing.T, n *rollout.Network, s *policy.Snapshot, b *bundle.Bundle) *bundle.Bundle {
	t.Helper()
	engine := embedded.New(embedded.Options{Slots: 1, Threads: 1, CacheBytes: -1})
	defer engine.Close()
	if err := engine.Load(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	session, err := engine.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	p, err := rollout.NewPolicy(b.PolicyVersion, s, session, bundle.EngineExact)
	if err != nil {
		t.Fatal(err)
	}
	alone := *n
	alone.MaxConcurrent = 1
	again, err := rollout.RunGroup(t.Context(), &alone, p, b.Peer, b.Counter)
	if err != nil {
		t.Fatal(err)
	}
	return again
}

func TestFolderKeepsCounters(t *testing.T) {
	dir := t.TempDir()
	announce := func(f *rollout.Folder, purpose wire.Purpose, counter uint64) {
		t.Helper()
		if err := f.Announce(t.Context(), wire.Announcement{Purpose: purpose, PolicyVersion: 5, Counter: counter}, []byte("body")); err != nil {
			t.Fatal(err)
		}
	}
	f, err := rollout.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	for want := range uint64(5) { // the last one under version 6
		if got, err := f.Reserve(t.Context(), 5+want/4); err != nil || got != want {
			t.Errorf("Reserve = %d, %v, want %d", got, err, want)
		}
	}
	announce(f, wire.PurposeTrain, 2)
	announce(f, wire.PurposeEvaluateGreedy, 1)
	for range 2 { // as it is, and opened again
		if left, err := f.Resume(t.Context(), 5); err != nil || !cmp.Equal(left, []uint64{0, 1, 3}) {
			t.Errorf("Resume = %v, %v", left, err)
		}
		if f.Claim(5, wire.PurposeEvaluateGreedy, 1) != rollout.Settled || f.Claim(5, wire.PurposeEvaluateSampled, 1) != rollout.Unclaimed || f.Claim(4, wire.PurposeEvaluateGreedy, 1) != rollout.Unclaimed {
			t.Error("Claim does not follow the announcements")
		}
		if f, err = rollout.OpenFolder(dir); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := f.Reserve(t.Context(), 6); err != nil || got != 5 {
		t.Errorf("Reserve after opening again = %d, %v", got, err)
	}
	if left, err := f.Resume(t.Context(), 6); err != nil || !cmp.Equal(left, []uint64{5}) {
		t.Errorf("Resume under version 6 = %v, %v: counter 4 was left out", left, err)
	}
	for _, broken := range []string{"many", "", "7 3"} {
		if err := os.WriteFile(filepath.Join(dir, "counters"), []byte(broken), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := rollout.OpenFolder(dir); err == nil {
			t.Errorf("a folder with counters %q is opened", broken)
		}
	}
}

func TestNewPolicyNeedsTheSessionsSnapshot(t *testing.T) {
	engine := embedded.New(embedded.Options{Threads: 1})
	defer engine.Close()
	s := basePolicy(t)
	if err := engine.Load(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	session, err := engine.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	other, err := s.WithTensors(s.Tensors[1:])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rollout.NewPolicy(0, other, session, bundle.EngineExact); err == nil {
		t.Error("a session of another policy is taken")
	}
	p, err := rollout.NewPolicy(0, s, session, bundle.EngineExact)
	if err != nil {
		t.Fatal(err)
	}
	m, err := rollout.Measure(t.Context(), calc.New(), p, calcNetwork(t).Charter.Rollout, calc.Validation, 6, 5, 1)
	if err != nil {
		t.Fatal(err)
	}
	again, err := rollout.Measure(t.Context(), calc.New(), p, calcNetwork(t).Charter.Rollout, calc.Validation, 6, 5, 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Rollouts) != 30 || m.Mean() != again.Mean() || m.Best() < m.Mean() || m.Best() > 1 {
		t.Errorf("%d rollouts, mean %v then %v, best %v", len(m.Rollouts), m.Mean(), again.Mean(), m.Best())
	}
}
