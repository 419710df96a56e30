package learner

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lightswarm/lightswarm/learner/row"
	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/policy/safetensors"
	"github.com/lightswarm/lightswarm/policy/tokenizer"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
	"github.com/lightswarm/lightswarm/wire/draw"
)

// keys holds what key made, by number: tests ask for a few keys thousands of times.
var keys sync.Map

// key returns the key of made-up peer n.
func key(n byte) wire.Key {
	if k, ok := keys.Load(n); ok {
		return k.(wire.Key)
	}
	k := wire.NewKey(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, ed25519.SeedSize)))
	keys.Store(n, k)
	return k
}

// learnerKey signs the releases of test networks; peers are key(1), key(2), ….
var learnerKey = key(100)

// testContext is the context length of the test models.
const testContext = 64

func testTokenizer(t testing.TB) *tokenizer.Tokenizer {
	t.Helper()
	tok, err := tokenizer.Train(slices.Values([]string{"one two three"}), 256+len(chat.Specials()), chat.Specials())
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// testPolicy returns a policy with the given weights.
func testPolicy(t testing.TB, config []byte, tensors []policy.Tensor) *policy.Snapshot {
	t.Helper()
	tok := testTokenizer(t)
	end, ok := tok.Special("<|end|>")
	if !ok {
		t.Fatal("the tokenizer has no end token")
	}
	s, err := policy.New(config, tok, chat.Lightswarm1, policy.GenerationConfig{Stop: []int32{end}}, tensors)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// network is a test network: its charter, and the policy that it starts from.
type network struct {
	charter wire.SignedCharter
	base    *policy.Snapshot
}

// newNetwork founds a network on a policy. change may alter the charter.
func newNetwork(t testing.TB, base *policy.Snapshot, change func(*wire.Charter)) network {
	t.Helper()
	anchor, _, err := base.Encode()
	if err != nil {
		t.Fatal(err)
	}
	c := wire.Charter{
		Name:     "test",
		Created:  time.UnixMilli(1_700_000_000_000),
		Nonce:    []byte("nonce"),
		Learners: []wire.PeerID{learnerKey.Peer()},
		Environments: []wire.EnvironmentRef{
			{Manifest: wire.SumCID([]byte("environment a")), Name: "a", Weight: 3, TrainTasks: 1000, ValidationTasks: 10},
			{Manifest: wire.SumCID([]byte("environment b")), Name: "b", Weight: 1, TrainTasks: 50, ValidationTasks: 20},
		},
		Base: wire.PolicyRef{Digest: base.Digest(), StateDigest: base.State, Anchor: anchor},
		Rollout: wire.RolloutRules{
			GroupSize:           4,
			MaxCalls:            3,
			MaxCompletionTokens: 4,
			Sampling:            wire.Sampling{Temperature: 1, TopP: 1},
			MaxLag:              8,
			GroupsPerVersion:    16,
		},
		Evaluation: wire.EvaluationRules{Tasks: 10, BlockTasks: 4},
	}
	if change != nil {
		change(&c)
	}
	signed, err := wire.SignCharter(learnerKey, c)
	if err != nil {
		t.Fatal(err)
	}
	return network{signed, base}
}

// plainNetwork is a network on a policy that a fakeTrainer trains.
func plainNetwork(t testing.TB) network {
	base := testPolicy(t, []byte(`{"vocab_size":512}`), (&fakeTrainer{weights: make([]float32, 4)}).tensors())
	return newNetwork(t, base, nil)
}

// group makes the valid training bundle of a draw: a rollout of two calls for each member, rewarded in turn.
func (n network) group(version uint64, digest policy.Digest, peer wire.PeerID, counter uint64) *bundle.Bundle {
	task := draw.Train(n.charter.ID, &n.charter.Charter, version, peer, counter)
	b := &bundle.Bundle{}
	b.Network, b.Purpose, b.Environment, b.Split = n.charter.ID, wire.PurposeTrain, task.Environment, task.Split
	b.PolicyVersion, b.PolicyDigest, b.Peer, b.Counter = version, digest, peer, counter
	b.Sampling, b.MaxCompletionTokens = n.charter.Rollout.Sampling, n.charter.Rollout.MaxCompletionTokens
	b.Engine = bundle.EngineExact
	for member := range n.charter.Rollout.GroupSize {
		first := testCall([]int32{40, 41, int32(counter % 100)}, int(b.MaxCompletionTokens))
		second := testCall(slices.Concat(first.Prompt, first.Completion, []int32{50}), int(b.MaxCompletionTokens))
		b.Rollouts = append(b.Rollouts, bundle.Rollout{
			Member:  member,
			Task:    task.Index,
			Outcome: bundle.OutcomeScored,
			Reward:  float32(member % 2),
			Calls:   []bundle.Call{first, second},
		})
	}
	return b
}

// evaluation makes a valid bundle of an evaluation block, of which the first solved tasks succeed.
func (n network) evaluation(version uint64, digest policy.Digest, purpose wire.Purpose, block, solved int) *bundle.Bundle {
	tasks := draw.EvaluationBlock(&n.charter.Charter, block)
	b := n.group(version, digest, key(1).Peer(), 0)
	member := b.Rollouts[0]
	b.Peer, b.Purpose, b.Environment, b.Split, b.Counter = "", purpose, tasks.Environment, wire.SplitValidation, uint64(block)
	if purpose == wire.PurposeEvaluateGreedy {
		b.Sampling = wire.Sampling{}
	}
	b.Rollouts = nil
	for i := range tasks.Tasks {
		r := member
		r.Member, r.Task, r.Reward = i, tasks.First+uint64(i), 0
		if int(i) < solved {
			r.Reward = 1
		}
		b.Rollouts = append(b.Rollouts, r)
	}
	return b
}

func testCall(prompt []int32, length int) bundle.Call {
	c := bundle.Call{Agent: "agent", Prompt: prompt, Finish: uint8(policy.FinishLength)}
	for i := range length {
		c.Completion = append(c.Completion, int32(60+i))
		c.LogProbs = append(c.LogProbs, -1-float32(i)/4)
	}
	return c
}

// encode encodes a bundle and announces it.
func encode(t testing.TB, b *bundle.Bundle, peer wire.PeerID) (wire.SignedAnnouncement, []byte) {
	t.Helper()
	raw, err := bundle.Encode(b)
	if err != nil {
		t.Fatal(err)
	}
	a := announce(raw, b)
	a.Signer = peer
	return a, raw
}

// fakeTrainer is a Trainer whose weights rise by the learning rate at each step, whatever the rows.
type fakeTrainer struct {
	weights []float32
	steps   int
	norm    func(step int) float64 // what Step returns; nil for 1
}

func (f *fakeTrainer) tensors() []policy.Tensor {
	return []policy.Tensor{safetensors.FromFloat32s("w", safetensors.BF16, []int{len(f.weights)}, f.weights)}
}

func (f *fakeTrainer) Context() int { return testContext }

// Hidden has states that tell prompts apart by their length and last token, and change with the weights.
func (f *fakeTrainer) Hidden(rows []row.Row) ([][][]float32, error) {
	hidden := make([][][]float32, len(rows))
	for i, r := range rows {
		for _, p := range r.Positions {
			hidden[i] = append(hidden[i], []float32{float32(p) / testContext, float32(r.Tokens[p-1]) / 512, f.weights[0]})
		}
	}
	return hidden, nil
}

func (f *fakeTrainer) Accumulate(rows []row.Row, loss func(int, []float32, []float32, []float32)) error {
	for i, r := range rows {
		loss(i, r.LogProbs, make([]float32, len(r.LogProbs)), make([]float32, len(r.LogProbs)))
	}
	return nil
}

func (f *fakeTrainer) LogProbs(rows []row.Row) ([][]float32, error) {
	logProbs := make([][]float32, len(rows))
	for i, r := range rows {
		logProbs[i] = r.LogProbs
	}
	return logProbs, nil
}

func (f *fakeTrainer) Step(learningRate float64, _ Optimiser) (float64, error) {
	norm := 1.0
	if f.norm != nil {
		norm = f.norm(f.steps)
	}
	f.steps++
	if !math.IsNaN(norm) {
		for i := range f.weights {
			f.weights[i] += float32(learningRate) * 1000
		}
	}
	return norm, nil
}

func (f *fakeTrainer) Released() ([]policy.Tensor, error) { return f.tensors(), nil }

func (f *fakeTrainer) State() ([]byte, error) { return json.Marshal(f.weights) }

func (f *fakeTrainer) Restore(state []byte) error { return json.Unmarshal(state, &f.weights) }

// swarm is what a learner sees of the world: bundles that can be fetched, and the releases that it published.
type swarm struct {
	mu       sync.Mutex
	bundles  map[wire.CID][]byte
	releases []wire.SignedRelease
	verdicts map[Reason]int
	steps    []Step
	results  []Evaluation

	// fetch, when set, runs before a bundle is given out.
	fetch func(ctx context.Context, cid wire.CID) error
	// publish, when set, runs after a release was recorded.
	publish func(wire.SignedRelease)
}

func newSwarm() *swarm {
	return &swarm{bundles: make(map[wire.CID][]byte), verdicts: make(map[Reason]int)}
}

func (s *swarm) add(raw []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bundles[wire.SumCID(raw)] = raw
}

func (s *swarm) Fetch(ctx context.Context, cid wire.CID, _ wire.PeerID, limit int) ([]byte, error) {
	if s.fetch != nil {
		if err := s.fetch(ctx, cid); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	raw, ok := s.bundles[cid]
	if !ok || len(raw) > limit {
		return nil, errors.New("nobody has it")
	}
	return raw, nil
}

func (s *swarm) Publish(_ context.Context, r wire.SignedRelease, p *policy.Snapshot) error {
	if got := p.Digest(); got != policy.Digest(r.Policy.Digest) {
		return fmt.Errorf("version %d is published with policy %s", r.Version, got.Short())
	}
	s.mu.Lock()
	s.releases = append(s.releases, r)
	s.mu.Unlock()
	if s.publish != nil {
		s.publish(r)
	}
	return nil
}

func (s *swarm) Stepped(step Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps = append(s.steps, step)
}

func (s *swarm) Evaluated(e Evaluation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.results = append(s.results, e)
}

func (s *swarm) Judged(_ *wire.SignedAnnouncement, v Verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.verdicts[v.Reason]++
}

func (s *swarm) Released(wire.SignedRelease) {}

// counted returns how many verdicts there were of a reason.
func (s *swarm) counted(r Reason) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.verdicts[r]
}

// config is a configuration for the network with small bounds.
func (n network) config(s *swarm) Config {
	c := DefaultConfig()
	c.Charter, c.Key, c.Base = n.charter, learnerKey, n.base
	c.Trainer = &fakeTrainer{weights: make([]float32, 4)}
	c.Store, c.Fetcher, c.Publisher, c.Observer = NewMemory(), s, s, s
	c.Batch.Groups = 4
	return c
}

// checkChain fails unless releases are versions 0, 1, … in turn, each with the right parent, repetitions aside.
func checkChain(t *testing.T, releases []wire.SignedRelease) {
	t.Helper()
	byVersion := make(map[uint64]wire.SignedRelease)
	for i, r := range releases {
		if known, ok := byVersion[r.Version]; ok {
			if known.ID != r.ID {
				t.Fatalf("version %d was published as %s and as %s", r.Version, known.ID, r.ID)
			}
			continue
		}
		if r.Version != uint64(len(byVersion)) {
			t.Fatalf("publication %d is of version %d after %d versions", i, r.Version, len(byVersion))
		}
		if r.Version > 0 {
			parent := byVersion[r.Version-1]
			if r.Parent != parent.ID || r.ParentStateDigest != parent.Policy.StateDigest {
				t.Fatalf("version %d has another parent than version %d", r.Version, parent.Version)
			}
		}
		byVersion[r.Version] = r
	}
}

// unique returns distinct bytes.
func unique(n int) []byte { return binary.BigEndian.AppendUint64([]byte("unique"), uint64(n)) }
