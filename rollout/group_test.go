package rollout

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/rollout/agent"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/calc"
	"github.com/lightswarm/lightswarm/virtualtime"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
	"github.com/lightswarm/lightswarm/wire/draw"
)

// TestGroupIsAFunctionOfItsDraw runs groups and blocks again with other concurrency and on another session, and wants
// the same bytes.
func TestGroupIsAFunctionOfItsDraw(t *testing.T) {
	n := calcNetwork(t)
	one := *n
	one.MaxConcurrent = 1
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Uint64Range(0, 200).Draw(t, "version")
		counter := rapid.Uint64().Draw(t, "counter")
		purpose := rapid.SampledFrom([]wire.Purpose{wire.PurposeTrain, wire.PurposeEvaluateSampled, wire.PurposeEvaluateGreedy}).Draw(t, "purpose")
		var bodies [][]byte
		for _, network := range []*Network{n, &one} {
			p := testPolicy(v, &fakeSession{})
			b, err := RunGroup(context.Background(), network, p, testPeer(), counter)
			if purpose != wire.PurposeTrain {
				b, err = RunEvaluationBlock(context.Background(), network, p, purpose, counter%3)
			}
			if err != nil {
				t.Fatal(err)
			}
			body, err := bundle.Encode(b)
			if err != nil {
				t.Fatal(err)
			}
			bodies = append(bodies, body)
		}
		if !bytes.Equal(bodies[0], bodies[1]) {
			t.Fatal("concurrency changes a bundle")
		}
	})
}

func TestGroupFollowsTheDraw(t *testing.T) {
	n := calcNetwork(t)
	b, err := RunGroup(t.Context(), n, testPolicy(3, &fakeSession{}), testPeer(), 8)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Validate(); err != nil {
		t.Fatal(err)
	}
	task := draw.Train(n.ID, n.Charter, 3, testPeer(), 8)
	if b.Split != calc.Train || b.Peer != testPeer() || b.Counter != 8 || b.Environment != task.Environment || len(b.Rollouts) != 4 {
		t.Errorf("bundle %+v", b)
	}
	for i, r := range b.Rollouts {
		if r.Member != uint32(i) || r.Task != task.Index {
			t.Errorf("rollout %d: member %d, task %d, want %d", i, r.Member, r.Task, task.Index)
		}
	}
	// The last block of ten tasks in blocks of four has two.
	b, err = RunEvaluationBlock(t.Context(), n, testPolicy(3, &fakeSession{}), wire.PurposeEvaluateGreedy, 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Validate(); err != nil {
		t.Fatal(err)
	}
	if b.Split != calc.Validation || b.Peer != "" || b.Counter != 2 || b.Sampling != (wire.Sampling{}) || len(b.Rollouts) != 2 ||
		b.Rollouts[0].Task != 8 || b.Rollouts[1].Task != 9 || b.Rollouts[1].Member != 1 {
		t.Errorf("bundle %+v", b)
	}
	if _, err := RunEvaluationBlock(t.Context(), n, testPolicy(3, &fakeSession{}), wire.PurposeEvaluateGreedy, 3); err == nil {
		t.Error("a block beyond the last is run")
	}
	if _, err := RunEvaluationBlock(t.Context(), n, testPolicy(3, &fakeSession{}), wire.PurposeTrain, 0); err == nil {
		t.Error("training is taken for an evaluation")
	}
}

// TestRecorderKeepsExactTokens checks that a rollout's calls chain: each prompt is the one before, its completion as
// sampled, and the tool's answer.
func TestRecorderKeepsExactTokens(t *testing.T) {
	asked := 0
	s := &fakeSession{behave: func(r policy.Request) (chat.Message, error) {
		if asked++; asked%2 == 1 {
			// A spelling that encoding its text again would not give.
			m := callTool(`{"expression":"6*7"}`)
			m.Tokens = splitTokens(testTemplate().RenderCompletion(m))
			return m, nil
		}
		return text("42"), nil
	}}
	n := calcNetwork(t)
	n.MaxConcurrent = 1
	b, err := RunGroup(t.Context(), n, testPolicy(0, s), testPeer(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range b.Rollouts {
		if len(r.Calls) != 2 || r.Outcome != bundle.OutcomeScored {
			t.Fatalf("rollout %+v", r)
		}
		first, second := r.Calls[0], r.Calls[1]
		if want := append(slices.Clone(first.Prompt), first.Completion...); !slices.Equal(second.Prompt[:len(want)], want) {
			t.Errorf("the second prompt does not extend the first call")
		}
		if first.Agent != "solver" || first.Finish != uint8(policy.FinishStop) || len(first.LogProbs) != len(first.Completion) {
			t.Errorf("call %+v", first)
		}
	}
}

// splitTokens spells a learned token as its bytes, if there is one, so that the ids are not canonical.
func splitTokens(ids []int32) []int32 {
	specials := int32(len(chat.Specials()))
	var out []int32
	for _, id := range ids {
		if id < specials+256 {
			out = append(out, id)
			continue
		}
		for _, b := range []byte("calculator") {
			out = append(out, specials+int32(b))
		}
	}
	return out
}

func TestOutcomes(t *testing.T) {
	always := func(m chat.Message) func(policy.Request) (chat.Message, error) {
		return func(policy.Request) (chat.Message, error) { return m, nil }
	}
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		behave  func(policy.Request) (chat.Message, error)
		flaws   flawed
		agent   agent.Agent
		outcome bundle.OutcomeKind
		reward  float32
		calls   int
	}{
		"answered":         {behave: always(text("7")), outcome: bundle.OutcomeScored, reward: 0.5, calls: 1},
		"malformed":        {behave: always(chat.Message{Tokens: []int32{5, testTemplate().Stop()}}), outcome: bundle.OutcomeScored, reward: -1, calls: 1},
		"cut":              {behave: always(text(strings.Repeat("word ", 30))), outcome: bundle.OutcomeTruncated, reward: -1, calls: 1},
		"out of calls":     {behave: always(callTool("{}")), outcome: bundle.OutcomeTruncated, reward: -1, calls: 3},
		"prompt too long":  {behave: func(policy.Request) (chat.Message, error) { return chat.Message{}, policy.ErrPromptTooLong }, outcome: bundle.OutcomeTruncated, reward: -1},
		"reset fails":      {behave: always(text("7")), flaws: flawed{reset: broken}, outcome: bundle.OutcomeEnvError},
		"tool fails":       {behave: always(callTool("{}")), flaws: flawed{call: broken}, outcome: bundle.OutcomeEnvError, calls: 1},
		"score fails":      {behave: always(text("7")), flaws: flawed{score: broken}, outcome: bundle.OutcomeEnvError, calls: 1},
		"close fails":      {behave: always(text("7")), flaws: flawed{close: broken}, outcome: bundle.OutcomeEnvError, calls: 1},
		"reward too large": {behave: always(text("7")), flaws: flawed{reward: 2}, outcome: bundle.OutcomeEnvError, calls: 1},
		"reward NaN":       {behave: always(text("7")), flaws: flawed{reward: float32(math.NaN())}, outcome: bundle.OutcomeEnvError, calls: 1},
		"component NaN":    {behave: always(text("7")), flaws: flawed{component: float32(math.NaN())}, outcome: bundle.OutcomeEnvError, calls: 1},
		"component name":   {behave: always(text("7")), flaws: flawed{name: "two\nlines"}, outcome: bundle.OutcomeEnvError, calls: 1},
		"agent crashes":    {behave: always(text("7")), agent: crashing{broken}, outcome: bundle.OutcomeAgentError},
		"agent is lost":    {behave: always(text("7")), agent: crashing{}, outcome: bundle.OutcomeAgentError},
	} {
		flaws := c.flaws
		n := testNetwork(t, &flaws)
		n.Agent = c.agent
		b, err := RunGroup(t.Context(), n, testPolicy(0, &fakeSession{behave: c.behave}), testPeer(), 0)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := b.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, r := range b.Rollouts {
			if r.Outcome != c.outcome || r.Reward != c.reward || len(r.Calls) != c.calls {
				t.Errorf("%s: %s, reward %v, %d calls", name, r.Outcome, r.Reward, len(r.Calls))
			}
			if want := []bundle.Component{{Name: "a", Value: 1}, {Name: "b"}}; r.Outcome.Trainable() && cmp.Diff(want, r.Components) != "" {
				t.Errorf("%s: components %v", name, r.Components)
			}
		}
	}
}

func TestEngineFailureIsNoOutcome(t *testing.T) {
	broken := errors.New("engine is gone")
	s := &fakeSession{behave: func(r policy.Request) (chat.Message, error) {
		if r.Key[0]%2 == 0 {
			return chat.Message{}, broken
		}
		return text("7"), nil
	}}
	if b, err := RunGroup(t.Context(), calcNetwork(t), testPolicy(2, s), testPeer(), 0); !errors.Is(err, broken) || b != nil ||
		!strings.HasPrefix(err.Error(), "group 0 of version 2: ") {
		t.Errorf("RunGroup = %v, %v", b, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := RunGroup(ctx, calcNetwork(t), testPolicy(2, &fakeSession{}), testPeer(), 0); !errors.Is(err, context.Canceled) {
		t.Errorf("RunGroup after cancel = %v", err)
	}
}

func TestTimeoutIsAnOutcome(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		n := calcNetwork(t)
		n.Timeout = 10 * time.Second
		slow := &fakeSession{delay: 7 * time.Second, behave: func(policy.Request) (chat.Message, error) {
			return callTool(`{"expression":"6*7"}`), nil
		}}
		b, err := RunGroup(t.Context(), n, testPolicy(0, slow), testPeer(), 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range b.Rollouts {
			if r.Outcome != bundle.OutcomeTimeout || r.Reward != 0 || len(r.Calls) != 1 {
				t.Errorf("%s with %d calls", r.Outcome, len(r.Calls))
			}
		}
	})
}

// crashing is an agent that fails, or ends in no way that there is.
type crashing struct{ err error }

func (c crashing) Run(context.Context, agent.LLM, env.Episode) (agent.Result, error) {
	return agent.Result{}, c.err
}

// flawed is an environment of one task, with rewards from -1 to 1, whose parts fail as a test wants.
type flawed struct {
	reset, call, score, close error
	reward, component         float32
	name                      string // of component, "b" if empty
}

func (f *flawed) Manifest() wire.EnvironmentManifest {
	return wire.EnvironmentManifest{
		Name: "flawed", Version: "1", Description: "fails", Licence: "Apache-2.0", Kind: "builtin", Entry: "flawed",
		Splits:    []wire.Split{{Name: wire.SplitTrain, Tasks: 1}},
		RewardMin: -1, RewardMax: 1, Determinism: wire.DeterminismExact, Agents: []string{"solver"},
	}
}

func (f *flawed) Reset(context.Context, string, uint64) (env.Episode, error) {
	return flawedEpisode{f}, f.reset
}

type flawedEpisode struct{ f *flawed }

func (e flawedEpisode) Messages() []chat.Message {
	return []chat.Message{{Role: chat.User, Content: "go"}}
}

func (e flawedEpisode) Tools() []chat.Tool { return nil }

func (e flawedEpisode) Call(context.Context, string, string) (string, error) { return "ok", e.f.call }

func (e flawedEpisode) Score(_ context.Context, answer string) (env.Score, error) {
	name := "b"
	if e.f.name != "" {
		name = e.f.name
	}
	s := env.Score{Reward: 0.5, Components: map[string]float32{name: e.f.component, "a": 1}}
	if answer == "" {
		s.Reward = -1
	}
	if e.f.reward != 0 {
		s.Reward = e.f.reward
	}
	return s, e.f.score
}

func (e flawedEpisode) Close() error { return e.f.close }
