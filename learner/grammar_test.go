package learner

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/lightswarm/lightswarm/learner/row"
	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/policy/grammar"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
	"github.com/lightswarm/lightswarm/wire/draw"
)

func compile(t testing.TB, d grammar.Demand) *grammar.Grammar {
	t.Helper()
	g, err := grammar.Compile(d)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// playWithin runs a group whose first calls were sampled within a grammar; the second calls go on from them without one.
func (b *bandit) playWithin(t *testing.T, peer wire.PeerID, counter uint64, grammars ...*grammar.Grammar) *bundle.Bundle {
	t.Helper()
	g := b.network.group(b.version, b.session.Policy(), peer, counter)
	for i := range g.Rollouts {
		r := &g.Rollouts[i]
		r.Calls, r.Reward = nil, float32(i%2)
		prompt := []int32{int32(100 + r.Task%8), 99}
		for call := range uint32(2) {
			q := policy.Request{
				Prompt: prompt, MaxTokens: int(g.MaxCompletionTokens), Stop: b.network.base.Generation.Stop,
				Sampling: policy.Sampling{Temperature: 1},
				Key:      draw.TrainKey(g.Network, g.PolicyVersion, peer, counter, r.Member, call),
			}
			recorded := bundle.Call{Agent: "agent", Prompt: prompt}
			if call == 0 {
				q.Grammar = grammars[i%len(grammars)]
				recorded.Grammar = q.Grammar.Bytes()
			}
			c, err := b.session.Generate(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			recorded.Completion, recorded.LogProbs, recorded.Finish = c.Tokens, c.LogProbs, uint8(c.Finish)
			r.Calls = append(r.Calls, recorded)
			prompt = append(append(prompt[:len(prompt):len(prompt)], c.Tokens...), 98)
		}
	}
	return g
}

func grammarNetwork(t testing.TB) network {
	return newNetwork(t, tinyModel(t), func(c *wire.Charter) {
		c.Rollout.GroupSize, c.Rollout.MaxCompletionTokens = 8, 20
		c.Evaluation = wire.EvaluationRules{}
	})
}

// What was sampled within a grammar is admitted, and trained on with an importance ratio of 1, to the bit.
func TestGrammarsAreTrainedOn(t *testing.T) {
	n := grammarNetwork(t)
	player := newBandit(t, n)
	if err := player.load(t.Context(), 0, n.base); err != nil {
		t.Fatal(err)
	}
	rules, err := NewRules(n.charter, n.base, testContext, nil)
	if err != nil {
		t.Fatal(err)
	}
	trainer, err := NewEmbedded(n.base, 2)
	if err != nil {
		t.Fatal(err)
	}
	object := compile(t, grammar.Demand{Schema: []byte(`{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]}`)})
	sent := player.playWithin(t, key(1).Peer(), 0, object, compile(t, grammar.Demand{Object: true}))
	for i, r := range sent.Rollouts {
		c := r.Calls[0]
		var said map[string]any
		text := n.base.Tokenizer.Decode(c.Completion[:len(c.Completion)-1])
		if err := json.Unmarshal([]byte(text), &said); err != nil || policy.FinishReason(c.Finish) != policy.FinishStop {
			t.Fatalf("rollout %d: %q: %v", i, text, err)
		}
	}
	a, raw := encode(t, sent, key(1).Peer())
	got, err := bundle.Decode(raw, bundle.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if v := rules.Check(&a, got); !v.Accepted() {
		t.Fatal(v)
	}
	algorithm := DefaultAlgorithm()
	algorithm.Minibatches = 1
	p := algorithm.plan(&rules, []group{{bundle: got}})
	stats, _, updates, undo, err := algorithm.update(trainer, p.minibatches, 1e-2)
	if err != nil || undo != "" || updates != 1 {
		t.Fatalf("%d updates, %q, %v", updates, undo, err)
	}
	if stats.onPolicyTokens != stats.trained || stats.trained != got.CompletionTokens() || stats.onPolicyError != 0 {
		t.Errorf("the ratio of %d of %d tokens is off by %v", stats.onPolicyTokens, stats.trained, stats.onPolicyError)
	}
	if len(p.minibatches[0].rows[0].Grammars) != 1 || len(p.minibatches[0].rows[0].LogProbs) <= len(got.Rollouts[0].Calls[0].Completion) {
		t.Error("a row does not hold both calls of a rollout")
	}
	// Without the grammars the same tokens have other log-probs: the test would notice.
	fresh, err := NewEmbedded(n.base, 1)
	if err != nil {
		t.Fatal(err)
	}
	bare := p.minibatches[0].rows[0].Row
	bare.Grammars = nil
	if err := fresh.Accumulate([]row.Row{bare}, func(_ int, logProbs, _, _ []float32) {
		if slices.Equal(logProbs, bare.LogProbs) {
			t.Error("the grammar changes nothing")
		}
	}); err != nil {
		t.Fatal(err)
	}
}

func TestWrongGrammarsAreRefused(t *testing.T) {
	n := grammarNetwork(t)
	player := newBandit(t, n)
	if err := player.load(t.Context(), 0, n.base); err != nil {
		t.Fatal(err)
	}
	rules, err := NewRules(n.charter, n.base, testContext, nil)
	if err != nil {
		t.Fatal(err)
	}
	object := compile(t, grammar.Demand{Object: true})
	for name, change := range map[string]func(c *bundle.Call){
		"a completion that it does not allow": func(c *bundle.Call) {
			c.Completion[0] = 65
		},
		"another grammar": func(c *bundle.Call) { c.Grammar = compile(t, grammar.Demand{Schema: []byte(`{"const":1}`)}).Bytes() },
		"no grammar":      func(c *bundle.Call) { c.Grammar = "x" },
	} {
		b := player.playWithin(t, key(1).Peer(), 0, object)
		change(&b.Rollouts[3].Calls[0])
		a, _ := encode(t, b, key(1).Peer())
		if v := rules.Check(&a, b); v.Reason != WrongGrammar {
			t.Errorf("%s: %s", name, v)
		}
	}
	// A group that asks for more work than a learner does is refused, whatever it says.
	g := newGrammars(rules.Vocabulary)
	g.work = maxGrammarWork
	b := player.playWithin(t, key(1).Peer(), 0, object)
	if v := g.check(&b.Rollouts[0].Calls[0], 20); v.Reason != WrongGrammar {
		t.Errorf("work without end: %s", v)
	}
	if grammar.MaxBytes != wire.MaxGrammarBytes {
		t.Error("what a bundle can carry is not what a grammar may have")
	}
}
