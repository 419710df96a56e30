package testnet

import (
	"context"
	"errors"
	"math"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/policy/embedded"
	"github.com/lightswarm/lightswarm/policy/pretrain"
	"github.com/lightswarm/lightswarm/policy/transformer"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/gateway"
	programs "github.com/lightswarm/lightswarm/rollout/process"
	"github.com/lightswarm/lightswarm/rollout/warmstart"
	"github.com/lightswarm/lightswarm/wire"
)

// duet is an environment for the agent of two roles in the tests of package warmstart: a word is to be written in capitals,
// and a critic, which nobody trains, is to agree.
type duet struct{}

var duetWords = []string{"ab", "ba", "abba", "baab", "aab", "bba", "abab", "baba"}

func (duet) Manifest() wire.EnvironmentManifest {
	return wire.EnvironmentManifest{
		Name: "duet", Version: "1.0.0", Description: "Capitals.", Licence: "Apache-2.0", Kind: env.KindBuiltin, Entry: "duet",
		RewardMax: 1, Determinism: wire.DeterminismExact, Agents: []string{"writer", "critic"}, TrainedAgents: []string{"writer"},
		Splits: []wire.Split{{Name: wire.SplitTrain, Tasks: 8}, {Name: wire.SplitValidation, Tasks: 8}},
	}
}

func (duet) Reset(_ context.Context, _ string, index uint64) (env.Episode, error) {
	return duetTask(duetWords[index]), nil
}

type duetTask string

func (d duetTask) Messages() []chat.Message {
	return []chat.Message{{Role: chat.User, Content: string(d)}}
}
func (duetTask) Tools() []chat.Tool { return nil }
func (duetTask) Call(context.Context, string, string) (string, error) {
	return "", errors.New("the agent has a tool of its own")
}
func (d duetTask) Score(_ context.Context, answer string) (env.Score, error) {
	if answer == strings.ToUpper(string(d)) {
		return env.Score{Reward: 1}, nil
	}
	return env.Score{}, nil
}
func (duetTask) Close() error { return nil }
func (duetTask) Solve(context.Context) (env.Solution, error) {
	return env.Solution{Unsolved: true, Habits: []string{"meek"}}, nil
}

// Reply implements env.Replier. The meek write small letters.
func (d duetTask) Reply(_ context.Context, q env.Question) (chat.Message, error) {
	m := chat.Message{Role: chat.Assistant}
	switch last := q.Messages[len(q.Messages)-1]; {
	case q.Role == "critic":
		m.Content = `{"good":true}`
	case last.Role != chat.ToolRole:
		m.ToolCalls = []chat.ToolCall{{Name: "look", Arguments: `{"word":"` + string(d) + `"}`}}
	case q.Habit != "":
		m.Content = string(d)
	default:
		m.Content = last.Content
	}
	return m, nil
}

// duetAgent is how its agent is started.
var duetAgent = programs.Command{
	Args: []string{"python3", "two_roles.py"}, Dir: filepath.Join("..", "rollout", "warmstart", "testdata"),
	Preload: []string{"json", "urllib.request"},
}

// duetPolicy learns what both roles say, for some seconds.
func duetPolicy(t *testing.T) (*policy.Snapshot, pretrain.Options) {
	t.Helper()
	g, err := gateway.Serve(gateway.Options{})
	if err != nil {
		t.Fatal(err)
	}
	a, err := programs.New(programs.Options{Gateway: g, Command: duetAgent, Roles: duet{}.Manifest().Agents})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := errors.Join(a.Close(), g.Close(ctx)); err != nil {
			t.Error(err)
		}
	}()
	o, err := warmstart.Recipe(t.Context(), warmstart.Options{Environment: duet{}, Agent: a, Seed: 1, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	o.Model = transformer.Config{
		Hidden: 32, Layers: 2, Heads: 1, KVHeads: 1, HeadDim: 32, Intermediate: 64, Vocab: 300, Context: 256,
		RopeTheta: 10000, NormEpsilon: 1e-6, TieEmbeddings: true,
	}
	o.TokenizerTexts, o.HeldOut, o.BatchSize, o.RoundSteps, o.LearningRate, o.Warmup = 100, 16, 8, 150, 5e-3, 10
	o.Measure = func(context.Context, *policy.Snapshot) (pretrain.Ability, error) { return pretrain.Ability{}, nil }
	o.Gate = pretrain.Gate{MinReachable: 0.9, ReachableProbability: 0.1, MaxSampled: 1, MaxGreedy: 1}
	s, report, err := pretrain.Run(t.Context(), o, nil)
	if err != nil {
		t.Fatalf("%v: %+v", err, report)
	}
	return s, o
}

// A policy that was made for an agent of two roles knows both, and trains in a network with it: both roles' calls are
// recorded by their names, and a step is made of the trained one's.
func TestAnAgentOfTwoRoles(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Fatal(err)
	}
	s, demonstrated := duetPolicy(t)
	for d, err := range demonstrated.Right {
		if err != nil {
			t.Fatal(err)
		}
		critic, writer := probability(t, s, d[0]), probability(t, s, d[1])
		if d[0].Role != "critic" || d[1].Role != "writer" || critic < 0.9 || writer < 0.1 {
			t.Errorf("the %s's answer has the probability %v, the %s's %v", d[0].Role, critic, d[1].Role, writer)
		}
		break
	}
	o := DefaultOptions()
	o.Dir, o.Policy = filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "policy")
	if err := s.WriteDir(o.Policy); err != nil {
		t.Fatal(err)
	}
	var err error
	if o.Package, err = env.NewPackage(duet{}.Manifest(), nil); err != nil {
		t.Fatal(err)
	}
	o.Drivers = env.Drivers{env.Builtin(duet{})}
	o.Nodes, o.GroupSize, o.EvaluationTasks, o.MaxCalls, o.MaxCompletionTokens = 1, 8, 8, 3, 32
	o.Settings.Learner.Groups, o.Settings.Learner.Steps, o.Settings.Learner.Target = 4, 1, 0
	o.Settings.Rollout.Agent.Command, o.Settings.Rollout.Agent.Folder = duetAgent.Args, duetAgent.Dir
	o.Settings.Rollout.Agent.Preload = duetAgent.Preload
	result, err := Run(t.Context(), o, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := result.Report
	if r.Steps != 1 || r.RolloutsAccepted < 4*8 || len(r.Examples) == 0 {
		t.Fatalf("%d steps, %d rollouts, %d examples, dropped %v", r.Steps, r.RolloutsAccepted, len(r.Examples), r.RolloutsDropped)
	}
	both := false
	for _, e := range r.Examples {
		var roles []string
		for _, c := range e.Calls {
			roles = append(roles, c.Agent)
		}
		both = both || slices.Equal(roles, []string{"writer", "writer", "critic"})
	}
	if !both {
		t.Errorf("no example has both roles' calls: %+v", r.Examples)
	}
	if n := r.RolloutsDropped["untrained"]; n > 0 {
		t.Errorf("%d rollouts have no call that is trained", n)
	}
}

// probability is that of what a policy says in a conversation.
func probability(t *testing.T, s *policy.Snapshot, c pretrain.Conversation) float64 {
	t.Helper()
	template, err := chat.NewTemplate(s.Template, s.Tokenizer)
	if err != nil {
		t.Fatal(err)
	}
	engine := embedded.New(embedded.Options{Threads: 1})
	defer engine.Close()
	if err := engine.Load(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	session, err := engine.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	sum := 0.0
	for _, i := range c.Said {
		prompt, err := template.Render(c.Messages[:i], c.Tools)
		if err != nil {
			t.Fatal(err)
		}
		logProbs, err := session.Score(t.Context(), append(prompt, template.RenderCompletion(c.Messages[i])...), len(prompt))
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range logProbs {
			sum += float64(l)
		}
	}
	return math.Exp(sum)
}
