package node

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/lightswarm/lightswarm/node/config"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/pack"
	"github.com/lightswarm/lightswarm/rollout/env/wasm"
	"github.com/lightswarm/lightswarm/rollout/env/wasm/wasmtest"
	"github.com/lightswarm/lightswarm/wire"
)

// contributed is the template's package with the parity environment in it, built once.
var contributed = sync.OnceValues(func() (*env.Package, error) {
	dir, err := os.MkdirTemp("", "node-test-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	folder := filepath.Join(dir, "evenness")
	if _, err := pack.Template(folder, "evenness", wasm.Kind); err != nil {
		return nil, err
	}
	const source = `package main

type Task int

func newTask(string, uint64) Task { return 0 }
func (Task) open() Opening        { return Opening{Messages: []Message{{Role: "user", Content: "0"}}} }
func (Task) call(string, string) string { return "" }
func (Task) score(answer string) Score  { return Score{Reward: float32(1 - len(answer)%2)} }
func (Task) solve(string) Solution      { return Solution{Answer: "00"} }
`
	if err := os.WriteFile(filepath.Join(folder, "environment.go"), []byte(source), 0o600); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(folder, "validation.jsonl"), []byte("0\n1\n2\n3\n4\n"), 0o600); err != nil {
		return nil, err
	}
	return pack.Read(context.Background(), folder)
})

// drivers run packages in processes of the test's own binary. They find the contributed one compiled.
func drivers(t *testing.T) env.Drivers {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p, err := contributed()
	if err != nil {
		t.Fatal(err)
	}
	cache := t.TempDir()
	if err := wasmtest.Compile(t.Context(), cache, p.Artefact(p.Manifest().Entry)); err != nil {
		t.Fatal(err)
	}
	return env.Drivers{wasm.New(wasm.Options{Command: []string{self, workArgument}, Cache: cache, Episodes: 4})}
}

// contributedNetwork are the options of the learner of a network that trains on the contributed environment.
func contributedNetwork(t *testing.T) Options {
	t.Helper()
	p, err := contributed()
	if err != nil {
		t.Fatal(err)
	}
	f, err := DefaultFounding("evenness")
	if err != nil {
		t.Fatal(err)
	}
	f.Base = tinyPolicy()
	f.Rollout.GroupSize, f.Rollout.MaxCompletionTokens, f.Rollout.GroupsPerVersion = 4, 6, 2
	if err := f.Train(p, 1); err != nil {
		t.Fatal(err)
	}
	if f.Evaluation.Tasks != 5 {
		t.Errorf("%d tasks are measured on, of 5 that the environment holds out", f.Evaluation.Tasks)
	}
	c := settings(config.RoleLearner)
	c.Learner.Steps = 2
	o := options(t, c)
	o.Found = &f
	return o
}

// A volunteer that never saw an environment gets it by its CID, runs it, and the learner trains on what it sends. Another
// one gets it when the founder serves it no more, and goes on with nobody to ask.
func TestContributedEnvironmentTrains(t *testing.T) {
	t.Parallel()
	founder := start(t, contributedNetwork(t))
	if len(founder.opened) != 0 {
		t.Error("the learner runs what only rollout nodes have to")
	}
	o := join(t, founder, config.RoleRollout)
	o.Folder, o.Drivers = filepath.Join(t.TempDir(), "volunteer"), drivers(t)
	volunteer := start(t, o)
	founder.until("the learner is finished", func() bool { return founder.Status().Learner.Finished })
	s := founder.Status().Learner
	if s.Reasons["accepted"] == 0 || s.Reasons["too_few_scored"] > 0 || s.RolloutsAccepted == 0 {
		t.Errorf("verdicts: %v", s.Reasons)
	}
	measured := false
	for _, e := range s.Evaluations {
		measured = measured || e.Complete && e.Version == 2 && e.Tasks == 5
	}
	if !measured {
		t.Errorf("evaluations: %+v", s.Evaluations)
	}

	p, err := contributed()
	if err != nil {
		t.Fatal(err)
	}
	second := join(t, volunteer, config.RoleRollout)
	second.Drivers = o.Drivers
	founder.end()
	other := start(t, second)
	for cid := range p.Blocks() {
		if there, err := other.store.Has(cid); err != nil || !there {
			t.Errorf("block %s is missing: %v", cid, err)
		}
	}
	other.end()
	volunteer.end()
	if _, err := volunteer.opened[0].Reset(t.Context(), wire.SplitTrain, 0); !errors.Is(err, env.ErrClosed) {
		t.Errorf("an environment of a closed node: %v", err)
	}
	o.Config.P2P.Bootstrap = nil
	again := start(t, o)
	pinned, err := again.store.Pinned("environment/" + p.CID().String())
	if err != nil || len(pinned) != len(p.Blocks()) {
		t.Errorf("%d of %d blocks are pinned, %v", len(pinned), len(p.Blocks()), err)
	}
}

// What a node runs is its owner's to say, and it is said before the environment's files are asked for.
func TestOwnerRefusesKinds(t *testing.T) {
	t.Parallel()
	founder := start(t, contributedNetwork(t))
	refuse := func(o Options, says string, is error) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		defer cancel()
		n, err := New(ctx, o)
		if err == nil {
			n.Close()
		}
		if err == nil || !strings.Contains(err.Error(), says) || is != nil && !errors.Is(err, is) {
			t.Errorf("%v, want …%s…", err, says)
		}
	}
	o := join(t, founder, config.RoleRollout)
	o.Drivers = drivers(t)
	o.Config.Rollout.Environments.Kinds = []string{config.KindBuiltin}
	refuse(o, `rollout.environments.kinds is builtin: add wasm to it`, ErrKind)

	o = join(t, founder, config.RoleRollout) // a program without a driver for it
	refuse(o, "upgrade lightswarm", nil)

	o = options(t, settings(config.RoleRollout))
	o.Found = parityNetwork(t)
	o.Config.Rollout.Environments.Kinds = []string{config.KindWasm}
	refuse(o, `rollout.environments.kinds is wasm: add builtin to it`, ErrKind)

	// The founder signed what nobody had signed, and members tell who did.
	stranger := "12D3KooWKnDdG3iXw9eTFijk3EWSunZcFi54Zka4wmtqtt6rPxc8"
	o = join(t, founder, config.RoleRollout)
	o.Drivers = drivers(t)
	o.Config.Rollout.Environments.Signers = []string{stranger}
	refuse(o, "is signed by "+founder.Peer().String(), ErrAuthor)
	o = join(t, founder, config.RoleRollout)
	o.Drivers = drivers(t)
	o.Config.Rollout.Environments.Signers = []string{stranger, founder.Peer().String()}
	volunteer := start(t, o)
	if kept, err := volunteer.keptPackages(wire.CID{}); err != nil || len(kept) != 1 || kept[0].Author != founder.Peer() {
		t.Errorf("the volunteer keeps %+v, %v", kept, err)
	}

	o = join(t, founder, config.RoleRelay) // which runs none
	o.Config.Rollout.Environments.Kinds = []string{config.KindBuiltin}
	start(t, o)
}

// counted is a driver that counts what it opens.
type counted struct {
	env.Driver
	opened int
}

func (c *counted) Open(ctx context.Context, p *env.Package) (env.Environment, error) {
	c.opened++
	return c.Driver.Open(ctx, p)
}

// An environment runs only where all of its network's may: the owner who lets one kind run does not run it for nothing.
func TestNothingRunsUnlessAllMay(t *testing.T) {
	t.Parallel()
	o := contributedNetwork(t)
	other, err := env.NewPackage(wire.EnvironmentManifest{
		Name: "other", Version: "1.0.0", Licence: "MIT", Kind: "exec", Entry: "a.py",
		Splits:    []wire.Split{{Name: wire.SplitTrain, Tasks: 9}, {Name: wire.SplitValidation, Tasks: 9}},
		RewardMin: 0, RewardMax: 1, Determinism: wire.DeterminismStochastic, Agents: []string{"solver"},
	}, map[string][]byte{"a.py": []byte("#!/usr/bin/env python3\n")})
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Found.Train(other, 1); err != nil {
		t.Fatal(err)
	}
	founder := start(t, o)
	o = join(t, founder, config.RoleRollout)
	o.Config.Rollout.Environments.Kinds = []string{config.KindWasm}
	driver := &counted{Driver: drivers(t)[0]}
	o.Drivers = env.Drivers{driver}
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	n, err := New(ctx, o)
	if err == nil {
		n.Close()
	}
	if !errors.Is(err, ErrKind) || driver.opened > 0 {
		t.Errorf("%d environments were opened, %v", driver.opened, err)
	}
}

// A charter that promises what the package does not have, or more than nodes hold, is refused.
func TestFoundingChecksPackages(t *testing.T) {
	m := wire.EnvironmentManifest{
		Name: "tasks", Version: "1.0.0", Licence: "MIT", Kind: wasm.Kind, Entry: "a.wasm",
		Splits:    []wire.Split{{Name: wire.SplitValidation, Tasks: 1}},
		RewardMin: 0, RewardMax: 1, Determinism: wire.DeterminismExact, Agents: []string{"solver"},
	}
	p, err := env.NewPackage(m, map[string][]byte{"a.wasm": []byte("module")})
	if err != nil {
		t.Fatal(err)
	}
	f, err := DefaultFounding("tasks")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Train(p, 1); err == nil || !strings.Contains(err.Error(), `no split "train"`) {
		t.Errorf("a package without tasks to train on: %v", err)
	}
	m.Splits = append(m.Splits, wire.Split{Name: wire.SplitTrain, Tasks: 1})
	big := make([]byte, wire.MaxArtefactBlocks*wire.MaxBlockBytes)
	if p, err = env.NewPackage(m, map[string][]byte{"a.wasm": big}); err != nil {
		t.Fatal(err)
	}
	for range maxEnvironmentBytes / len(big) {
		if err := f.Train(p, 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Train(p, 1); err == nil || !strings.Contains(err.Error(), "may have 256 MiB") {
		t.Errorf("too many files: %v", err)
	}
}
