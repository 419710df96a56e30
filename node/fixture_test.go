package node

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lightswarm/lightswarm/node/config"
	"github.com/lightswarm/lightswarm/p2p"
	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/policy/safetensors"
	"github.com/lightswarm/lightswarm/policy/tokenizer"
	"github.com/lightswarm/lightswarm/policy/transformer"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/wasm"
	"github.com/lightswarm/lightswarm/wire"
)

// workArgument makes the test's own binary the process in which modules run.
const workArgument = "environment-work"

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == workArgument {
		if err := wasm.Work(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// deadline bounds everything that a test waits for.
const deadline = time.Minute

// parity is an environment of one call whose reward is whether the answer has an even number of bytes: even a policy of
// random weights gets some of either.
type parity struct{}

func (parity) Manifest() wire.EnvironmentManifest {
	return wire.EnvironmentManifest{
		Name: "parity", Version: "1", Kind: "builtin", Entry: "parity",
		Splits:    []wire.Split{{Name: wire.SplitTrain, Tasks: 1000}, {Name: wire.SplitValidation, Tasks: 100}},
		RewardMin: 0, RewardMax: 1, Determinism: wire.DeterminismExact, Agents: []string{"solver"},
	}
}

func (parity) Reset(_ context.Context, _ string, index uint64) (env.Episode, error) {
	return parityEpisode{index}, nil
}

type parityEpisode struct{ index uint64 }

func (e parityEpisode) Messages() []chat.Message {
	return []chat.Message{{Role: chat.User, Content: fmt.Sprint(e.index)}}
}

func (parityEpisode) Tools() []chat.Tool { return nil }

func (parityEpisode) Call(context.Context, string, string) (string, error) { return "", nil }

func (parityEpisode) Score(_ context.Context, answer string) (env.Score, error) {
	return env.Score{Reward: float32(1 - len(answer)%2)}, nil
}

func (parityEpisode) Close() error { return nil }

// tinyPolicy is a policy of random weights.
var tinyPolicy = sync.OnceValue(func() *policy.Snapshot {
	tok, err := tokenizer.Train(slices.Values([]string{"0 1 2"}), 256+len(chat.Specials()), chat.Specials())
	if err != nil {
		panic(err)
	}
	c := transformer.Config{
		Hidden: 16, Layers: 1, Heads: 2, KVHeads: 1, HeadDim: 8, Intermediate: 24, Vocab: tok.VocabSize(), Context: 64,
		RopeTheta: 10000, NormEpsilon: 1e-6, TieEmbeddings: true,
	}
	end, _ := tok.Special("<|end|>")
	s, err := policy.New(c.JSON(), tok, chat.Lightswarm1, policy.GenerationConfig{Stop: []int32{end}},
		transformer.Init(c, 1).Tensors(safetensors.BF16))
	if err != nil {
		panic(err)
	}
	return s
})

// parityNetwork is a network of the parity environment on the tiny policy.
func parityNetwork(t *testing.T) *Founding {
	t.Helper()
	f, err := DefaultFounding("parity", parity{})
	if err != nil {
		t.Fatal(err)
	}
	f.Base = tinyPolicy()
	f.Rollout.GroupSize, f.Rollout.MaxCompletionTokens, f.Rollout.GroupsPerVersion = 4, 6, 2
	f.Evaluation = wire.EvaluationRules{Tasks: 8, BlockTasks: 4}
	return &f
}

// settings are those of a test node with these roles.
func settings(roles ...config.Role) config.Config {
	c := config.Default()
	c.Roles = roles
	c.P2P = config.P2P{Listen: []string{"/ip4/127.0.0.1/tcp/0"}}
	c.Rollout.Threads, c.Learner.Workers = 1, 1
	c.Learner.Groups, c.Learner.EvaluateEvery = 3, 2
	c.Learner.Patience = 2 * time.Second
	return c
}

// options are those of a test node in memory.
func options(t *testing.T, c config.Config) Options {
	t.Helper()
	set, err := env.NewSet(parity{})
	if err != nil {
		t.Fatal(err)
	}
	return Options{
		Config: c, Environments: set, Version: "test",
		Tuning: p2p.Tuning{SyncInterval: time.Second, GapInterval: 200 * time.Millisecond, PublishWait: 500 * time.Millisecond},
	}
}

// running is a node whose Run runs.
type running struct {
	*Node
	t      *testing.T
	limit  time.Duration // of until
	cancel context.CancelFunc
	done   chan error
}

// start makes and runs a node; it ends with the test, if end was not called before.
func start(t *testing.T, o Options) *running {
	t.Helper()
	joining, stop := context.WithTimeout(t.Context(), deadline)
	defer stop()
	n, err := New(joining, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{Node: n, t: t, limit: deadline, cancel: cancel, done: make(chan error, 1)}
	go func() { r.done <- n.Run(ctx) }()
	t.Cleanup(r.end)
	return r
}

// end stops the node and checks that it stops cleanly.
func (r *running) end() {
	r.cancel()
	if r.done == nil {
		return
	}
	if err := <-r.done; err != nil {
		r.t.Errorf("run: %v", err)
	}
	r.done = nil
	if err := r.Close(); err != nil {
		r.t.Errorf("close: %v", err)
	}
}

// until waits until a condition holds, which is looked at after every event of the node and now and then.
func (r *running) until(what string, holds func() bool) {
	r.t.Helper()
	events, end := r.Subscribe(64)
	defer end()
	late := time.After(r.limit)
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for !holds() {
		select {
		case <-events:
		case <-again.C:
		case err := <-r.done:
			r.done <- err
			r.t.Fatalf("waiting until %s: the node ended: %v", what, err)
		case <-late:
			r.t.Fatalf("waited too long until %s; the node is %s", what, r.phase())
		}
	}
}

// join are the options of a node that joins through another one.
func join(t *testing.T, through *running, roles ...config.Role) Options {
	t.Helper()
	c := settings(roles...)
	c.Network = through.Charter().ID.String()
	c.P2P.Bootstrap = through.Addresses()
	return options(t, c)
}
