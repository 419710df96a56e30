package learner

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/lightswarm/lightswarm/learner/loss"
	"github.com/lightswarm/lightswarm/learner/row"
	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/policy/embedded"
	"github.com/lightswarm/lightswarm/policy/safetensors"
	"github.com/lightswarm/lightswarm/policy/transformer"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
	"github.com/lightswarm/lightswarm/wire/draw"
)

// tinyModel is a transformer that learns within a second.
func tinyModel(t testing.TB) *policy.Snapshot {
	c := transformer.Config{
		Hidden: 16, Layers: 1, Heads: 2, KVHeads: 1, HeadDim: 8, Intermediate: 32, Vocab: testTokenizer(t).VocabSize(),
		Context: testContext, RopeTheta: 10000, NormEpsilon: 1e-6, TieEmbeddings: true,
	}
	return testPolicy(t, c.JSON(), transformer.Init(c, 1).Tensors(safetensors.BF16))
}

// bandit is a rollout node whose task is one arm out of many: the first token of the answer to a prompt decides the
// reward. A second call, whose prompt goes on from the first, has no say.
type bandit struct {
	network network
	engine  *embedded.Engine
	session policy.Session
	version uint64
}

func newBandit(t *testing.T, n network) *bandit {
	b := &bandit{network: n, engine: embedded.New(embedded.Options{Threads: 1})}
	t.Cleanup(func() {
		if b.session != nil {
			b.session.Close()
		}
		if err := b.engine.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// load makes a release's policy the one that plays.
func (b *bandit) load(ctx context.Context, version uint64, s *policy.Snapshot) error {
	if b.session != nil {
		b.session.Close()
	}
	if err := b.engine.Load(ctx, s); err != nil {
		return err
	}
	var err error
	b.session, err = b.engine.Open()
	b.version = version
	return err
}

// pays says whether an arm pays.
func pays(arm int32) bool { return arm%4 == 0 }

// play runs one group.
func (b *bandit) play(ctx context.Context, peer wire.PeerID, counter uint64) (*bundle.Bundle, error) {
	g := b.network.group(b.version, b.session.Policy(), peer, counter)
	for i := range g.Rollouts {
		r := &g.Rollouts[i]
		r.Calls, r.Reward = nil, 0
		prompt := []int32{int32(100 + r.Task%8), 99}
		for call := range uint32(2) {
			c, err := b.session.Generate(ctx, policy.Request{
				Prompt:    prompt,
				MaxTokens: int(g.MaxCompletionTokens),
				Stop:      b.network.base.Generation.Stop,
				Sampling:  policy.Sampling{Temperature: 1},
				Key:       draw.TrainKey(g.Network, g.PolicyVersion, peer, counter, r.Member, call),
			})
			if err != nil {
				return nil, err
			}
			r.Calls = append(r.Calls, bundle.Call{
				Agent: "agent", Prompt: prompt, Completion: c.Tokens, LogProbs: c.LogProbs, Finish: uint8(c.Finish),
			})
			prompt = append(append(prompt[:len(prompt):len(prompt)], c.Tokens...), 98)
		}
		if pays(r.Calls[0].Completion[0]) {
			r.Reward = 1
		}
	}
	return g, nil
}

func banditNetwork(t testing.TB) network {
	return newNetwork(t, tinyModel(t), func(c *wire.Charter) {
		c.Rollout.GroupSize, c.Rollout.MaxCompletionTokens = 8, 2
		c.Evaluation = wire.EvaluationRules{}
	})
}

func banditConfig(t testing.TB, n network, s *swarm) Config {
	t.Helper()
	c := n.config(s)
	trainer, err := NewEmbedded(n.base, 1)
	if err != nil {
		t.Fatal(err)
	}
	c.Trainer = trainer
	c.Batch.Groups = 16
	c.Algorithm.Schedule.Peak = 2e-2
	return c
}

// A learner that is fed by a node turns a policy that wins one time in four into one that nearly always wins, and sees
// its own rollouts on-policy to the bit.
func TestLearnerLearns(t *testing.T) { learns(t, func(*Config) {}) }

// So does one with any other loss. Here nothing is stale: what a loss does to old data is not seen.
func TestLearnerLearnsByEveryLoss(t *testing.T) {
	for _, name := range loss.Kinds.Names() {
		f, err := loss.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		if f.Part == loss.Default {
			continue // The test above has it.
		}
		t.Run(name, func(t *testing.T) {
			learns(t, func(c *Config) {
				c.Algorithm.Loss = f.Part
				if name == "gspo" {
					c.Batch.Groups = 16 // Its clip is the tightest: it needs more data.
				}
			})
		})
	}
}

// learns lets a learner train on a bandit.
func learns(t *testing.T, change func(*Config)) {
	t.Helper()
	n := banditNetwork(t)
	s := newSwarm()
	c := banditConfig(t, n, s)
	c.Stop.MaxVersion, c.Batch.Groups = 20, 8
	change(&c)
	player := newBandit(t, n)
	var l *Learner
	counter := uint64(0)
	c.Publisher = publisherFunc(func(ctx context.Context, r wire.SignedRelease, p *policy.Snapshot) error {
		if err := s.Publish(ctx, r, p); err != nil || r.Final {
			return err
		}
		if err := player.load(ctx, r.Version, p); err != nil {
			return err
		}
		for range c.Batch.Groups {
			peer := key(byte(1 + counter%3)).Peer()
			g, err := player.play(ctx, peer, counter)
			if err != nil {
				return err
			}
			counter++
			a, raw := encode(t, g, peer)
			s.add(raw)
			if v := l.Offer(a); !v.Accepted() {
				return fmt.Errorf("counter %d: %s", counter, v)
			}
		}
		return nil
	})
	var err error
	if l, err = Open(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := l.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	checkChain(t, s.releases)
	if len(s.steps) != 20 {
		t.Fatalf("%d steps, want 20", len(s.steps))
	}
	for _, step := range s.steps {
		t.Logf("version %d: reward %.3f, learned from %d of %d groups, entropy %.2f, clipped %.3f, norm %.3g, skipped %q",
			step.Version, step.RewardMean, step.Learned, step.Groups, step.Entropy, step.Clipped, step.GradientNorm, step.Skipped)
		if step.OnPolicyError != 0 {
			t.Errorf("version %d: the importance ratio of fresh tokens is off by %v", step.Version, step.OnPolicyError)
		}
		if step.Skipped == "" && step.OnPolicyTokens == 0 {
			t.Errorf("version %d: no fresh tokens", step.Version)
		}
	}
	first, last := s.steps[0].RewardMean, s.steps[19].RewardMean
	// GSPO, on twice the groups, ends between 0.88 and 0.98, the others from 0.9 on.
	if first > 0.5 || last < 0.8 {
		t.Errorf("the reward went from %.3f to %.3f, want from at most 0.5 to at least 0.8", first, last)
	}
	if !s.releases[len(s.releases)-1].Final {
		t.Error("the last release is not final")
	}
}

type publisherFunc func(context.Context, wire.SignedRelease, *policy.Snapshot) error

func (f publisherFunc) Publish(ctx context.Context, r wire.SignedRelease, s *policy.Snapshot) error {
	return f(ctx, r, s)
}

// Recorded bundles train a policy without a network, and the same bundles train the same policy.
func TestRunFolder(t *testing.T) {
	n := banditNetwork(t)
	dir := t.TempDir()
	player := newBandit(t, n)
	if err := player.load(t.Context(), 0, n.base); err != nil {
		t.Fatal(err)
	}
	write := func(name string, data []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for counter := range uint64(134) {
		peer := key(1).Peer()
		if counter%10 == 9 {
			peer = key(2).Peer() // has fewer than its share, which is nobody's concern here
		}
		g, err := player.play(t.Context(), peer, counter)
		if err != nil {
			t.Fatal(err)
		}
		if counter == 3 {
			g.Rollouts[0].Task++
		}
		_, raw := encode(t, g, peer)
		write(fmt.Sprintf("%03d%s", counter, BundleSuffix), raw)
		if counter == 5 {
			write("006-again"+BundleSuffix, raw)
		}
	}
	write("broken"+BundleSuffix, []byte("no bundle either"))
	write("notes.txt", []byte("no bundle"))

	run := func(c Config) (*policy.Snapshot, Status) {
		t.Helper()
		c.Key, c.Store, c.Publisher, c.Fetcher = nil, nil, nil, nil
		c.Intake.Waiting, c.Intake.PeerPending = c.Batch.Groups, 1
		lag := uint64(100) // the files hold what version 0 did
		c.MaxLag = &lag
		trained, status, err := RunFolder(t.Context(), dir, c)
		if err != nil {
			t.Fatal(err)
		}
		return trained, status
	}
	s := newSwarm()
	trained, status := run(banditConfig(t, n, s))
	if again, _ := run(banditConfig(t, n, newSwarm())); again.Digest() != trained.Digest() {
		t.Error("the same bundles trained another policy")
	}
	// 133 good groups make 8 steps of 16 and one of 5.
	want := map[Reason]uint64{Admitted: 133, WrongDraw: 1, Duplicate: 1, Malformed: 1}
	for reason, n := range want {
		if status.Reasons[reason] != n {
			t.Errorf("%d bundles are %s, want %d", status.Reasons[reason], reason, n)
		}
	}
	if status.Head.Version != 9 || status.Waiting != 0 || len(s.steps) != 9 || s.steps[8].Groups != 5 {
		t.Errorf("version %d, %d groups wait, %d steps", status.Head.Version, status.Waiting, len(s.steps))
	}
	if err := player.load(t.Context(), 9, trained); err != nil {
		t.Fatal(err)
	}
	won, played := 0, 0
	for counter := range uint64(32) {
		g, err := player.play(t.Context(), key(1).Peer(), counter)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range g.Rollouts {
			played++
			won += int(r.Reward)
		}
	}
	if before, after := s.steps[0].RewardMean, float64(won)/float64(played); after < before+0.2 {
		t.Errorf("the trained policy wins %.2f of its games, the base won %.2f", after, before)
	}
}

// Groups that have nothing to compare leave a step's weights as they would be without them.
func TestFlatGroupsChangeNoWeight(t *testing.T) {
	n := banditNetwork(t)
	player := newBandit(t, n)
	if err := player.load(t.Context(), 0, n.base); err != nil {
		t.Fatal(err)
	}
	var groups, taught []*bundle.Bundle
	for counter := range uint64(6) {
		g, err := player.play(t.Context(), key(1).Peer(), counter)
		if err != nil {
			t.Fatal(err)
		}
		for i := range g.Rollouts {
			g.Rollouts[i].Reward = float32(counter % 2)
			if counter%3 != 1 {
				g.Rollouts[i].Reward = float32(i % 2)
			}
		}
		if groups = append(groups, g); counter%3 != 1 {
			taught = append(taught, g)
		}
	}
	// run makes steps of a batch, or of more until as many groups teach.
	run := func(groups []*bundle.Bundle, batch int, dynamic float64) (*policy.Snapshot, []Step) {
		t.Helper()
		dir := t.TempDir()
		for _, g := range groups {
			_, raw := encode(t, g, key(1).Peer())
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d%s", g.Counter, BundleSuffix)), raw, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s := newSwarm()
		c := banditConfig(t, n, s)
		c.Key, c.Store, c.Publisher, c.Fetcher = nil, nil, nil, nil
		c.Batch.Groups, c.Batch.Dynamic = batch, dynamic
		trained, _, err := RunFolder(t.Context(), dir, c)
		if err != nil {
			t.Fatal(err)
		}
		return trained, s.steps
	}
	trained, steps := run(groups, 16, 1)
	if len(steps) != 1 || steps[0].Learned != 4 || steps[0].Drops[ZeroVariance] != 2 || trained.Digest() == n.base.Digest() {
		t.Errorf("%+v", steps)
	}
	if without, _ := run(taught, 16, 1); without.Digest() != trained.Digest() {
		t.Error("flat groups changed the weights")
	}
	trained, steps = run(groups, 2, 2)
	if len(steps) != 2 || steps[0].Learned != 2 || steps[1].Learned != 2 || steps[0].Groups != 3 || steps[1].Groups != 3 {
		t.Errorf("%+v", steps)
	}
	if without, _ := run(taught, 2, 1); without.Digest() != trained.Digest() {
		t.Error("flat groups changed the weights of steps that go on behind them")
	}
}

// Merging the calls of a rollout changes neither log-probs, to the bit, nor gradients, and runs fewer tokens.
func TestMergedRowsTrainAlike(t *testing.T) {
	n := banditNetwork(t)
	player := newBandit(t, n)
	if err := player.load(t.Context(), 0, n.base); err != nil {
		t.Fatal(err)
	}
	var merged, separate []row.Row
	for counter := range uint64(4) {
		g, err := player.play(t.Context(), key(1).Peer(), counter)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range g.Rollouts {
			var calls []row.Call
			for _, c := range r.Calls {
				call := row.Call{Prompt: c.Prompt, Completion: c.Completion, LogProbs: c.LogProbs, Advantage: float64(r.Reward) - 0.25, Train: true}
				calls = append(calls, call)
				separate = append(separate, row.Merge([]row.Call{call})...)
			}
			merged = append(merged, row.Merge(calls)...)
		}
	}
	run := func(rows []row.Row) (norm float64, tokens int) {
		trainer, err := NewEmbedded(n.base, 1)
		if err != nil {
			t.Fatal(err)
		}
		err = trainer.Accumulate(rows, func(i int, logProbs, _, gradient []float32) {
			tokens += len(rows[i].Tokens)
			for j, p := range logProbs {
				if p != rows[i].LogProbs[j] {
					t.Errorf("row %d: log-prob %v, sampled with %v", i, p, rows[i].LogProbs[j])
				}
				gradient[j] = float32(rows[i].Advantages[j])
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		norm, err = trainer.Step(1e-3, Optimiser{Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8})
		if err != nil {
			t.Fatal(err)
		}
		return norm, tokens
	}
	mergedNorm, mergedTokens := run(merged)
	norm, tokens := run(separate)
	if diff := mergedNorm/norm - 1; diff > 1e-5 || diff < -1e-5 {
		t.Errorf("gradient norms %v and %v", mergedNorm, norm)
	}
	if len(merged)*2 != len(separate) || mergedTokens >= tokens {
		t.Errorf("%d rows of %d tokens merge into %d rows of %d", len(separate), tokens, len(merged), mergedTokens)
	}
}
