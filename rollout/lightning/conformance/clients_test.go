//go:build sdks && unix

package conformance

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	compare "github.com/google/go-cmp/cmp"

	"github.com/lightswarm/lightswarm/policy/base"
	"github.com/lightswarm/lightswarm/policy/embedded"
	"github.com/lightswarm/lightswarm/rollout"
	"github.com/lightswarm/lightswarm/rollout/agent"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/calc"
	"github.com/lightswarm/lightswarm/rollout/gateway"
	"github.com/lightswarm/lightswarm/rollout/lightning"
	"github.com/lightswarm/lightswarm/rollout/process"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

const (
	// groups is how many groups each program plays, members how many rollouts each has.
	groups, members = 2, 4
	// patience bounds what a program does, on a machine that does much else: the imports alone take many seconds.
	patience = 5 * time.Minute
	key      = "0123456789abcdef"
	// offline keeps a library that the package brings along from asking the network for prices.
	offline = "LITELLM_LOCAL_MODEL_COST_MAP=True"
)

// heeding is the built-in environment, whose manifest lets the agent's rewards count.
type heeding struct{ env.Environment }

func (h heeding) Manifest() wire.EnvironmentManifest {
	m := h.Environment.Manifest()
	m.AgentRewards = wire.AgentRewardFinal | wire.AgentRewardCalls
	return m
}

// seen is one rollout: as a program printed it, and as a bundle has it.
type seen struct {
	Texts   []string
	Reward  float32
	First   float32 // the first call's
	Style   float32 // a part of the rollout's
	Outcome bundle.OutcomeKind
}

// table is what plays groups.
type table struct {
	network rollout.Network
	policy  *rollout.Policy
	gateway *gateway.Gateway
	text    func(tokens []int32) string
}

func newTable(t *testing.T) *table {
	snapshot, err := base.Load()
	if err != nil {
		t.Fatal(err)
	}
	engine := embedded.New(embedded.Options{Threads: 1})
	t.Cleanup(func() { engine.Close() })
	if err := engine.Load(t.Context(), snapshot); err != nil {
		t.Fatal(err)
	}
	session, err := engine.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	p, err := rollout.NewPolicy(0, snapshot, session, bundle.EngineExact)
	if err != nil {
		t.Fatal(err)
	}
	environment := heeding{calc.New()}
	set, err := env.NewSet(environment)
	if err != nil {
		t.Fatal(err)
	}
	reference, err := env.Reference(environment)
	if err != nil {
		t.Fatal(err)
	}
	g, err := gateway.Serve(gateway.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := g.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return &table{
		network: rollout.Network{
			ID: wire.SumCID([]byte("lightning")), Environments: set, Timeout: patience,
			Charter: &wire.Charter{
				Environments: []wire.EnvironmentRef{reference},
				Rollout:      wire.RolloutRules{GroupSize: members, MaxCalls: 3, MaxCompletionTokens: 24, Sampling: wire.Sampling{Temperature: 1}},
			},
		},
		policy: p, gateway: g,
		text: func(tokens []int32) string { return textOf(p, tokens) },
	}
}

// textOf is what an agent sees of a completion.
func textOf(p *rollout.Policy, tokens []int32) string {
	if message, err := p.Template.Parse(tokens); err == nil {
		return message.Content
	}
	pieces := p.Template.Pieces(tokens)
	if len(tokens) > 0 && slices.Contains(p.Stop, tokens[len(tokens)-1]) {
		pieces = pieces[:len(pieces)-1]
	}
	return strings.ToValidUTF8(strings.Join(pieces, ""), "\uFFFD")
}

// play plays groups with an agent, and returns their rollouts.
func (b *table) play(t *testing.T, a agent.Agent) (all []seen) {
	b.network.Agent = a
	peer := wire.NewKey(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))).Peer()
	for counter := range uint64(groups) {
		got, err := rollout.RunGroup(t.Context(), &b.network, b.policy, peer, counter)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range got.Rollouts {
			s := seen{Outcome: r.Outcome, Reward: r.Reward}
			for i, c := range r.Calls {
				s.Texts = append(s.Texts, b.text(c.Completion))
				if i == 0 && c.Reward != nil {
					s.First = *c.Reward
				}
			}
			for _, part := range r.Components {
				if part.Name == "style" {
					s.Style = part.Value
				}
			}
			all = append(all, s)
		}
	}
	return all
}

// check compares what programs printed with what bundles have. The order is not the same.
func check(t *testing.T, printed []byte, outcome bundle.OutcomeKind, got []seen) {
	t.Helper()
	var want []seen
	for line := range bytes.Lines(printed) {
		s := seen{Outcome: outcome}
		if json.Unmarshal(line, &s) == nil && s.Texts != nil {
			want = append(want, s)
		}
	}
	order := func(a, b seen) int {
		return cmp.Or(slices.Compare(a.Texts, b.Texts), cmp.Compare(a.Reward, b.Reward))
	}
	slices.SortFunc(want, order)
	slices.SortFunc(got, order)
	if diff := compare.Diff(want, got); diff != "" || len(got) != groups*members {
		t.Errorf("%d rollouts (-printed +recorded):\n%s", len(got), diff)
	}
}

// python is the interpreter with what scripts/checks/agentlightning-clients installs.
func python(t *testing.T) string {
	cache := os.Getenv("AGENTLIGHTNING_CACHE")
	if cache == "" {
		t.Fatal("AGENTLIGHTNING_CACHE is not set; run scripts/checks/agentlightning-clients")
	}
	return filepath.Join(cache, "bin", "python")
}

func TestRunners(t *testing.T) {
	interpreter, b := python(t), newTable(t)
	program, err := filepath.Abs("python/trainer.py")
	if err != nil {
		t.Fatal(err)
	}
	for argument, outcome := range map[string]bundle.OutcomeKind{
		"function": bundle.OutcomeScored, "agent": bundle.OutcomeScored, "broken": bundle.OutcomeAgentError,
	} {
		t.Run(argument, func(t *testing.T) {
			a, err := lightning.Serve(lightning.Options{Gateway: b.gateway, Key: key, Roles: []string{"solver"}})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			run := exec.CommandContext(ctx, interpreter, program, argument)
			run.Dir = t.TempDir() // a library keeps a log there
			run.Env = append(a.Environ(), "PATH="+os.Getenv("PATH"), "HOME="+t.TempDir(), offline)
			var printed, complaints bytes.Buffer
			run.Stdout, run.Stderr = &printed, &complaints
			run.Cancel = func() error { return run.Process.Signal(os.Interrupt) }
			run.WaitDelay = time.Minute
			run.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			if err := run.Start(); err != nil {
				t.Fatal(err)
			}
			if err := a.Ready(ctx); err != nil {
				t.Error(err)
			}
			got := b.play(t, a)
			if s := a.Stats(); s.Started != groups*members || s.Waiting+s.Running != 0 {
				t.Errorf("%+v", s)
			}
			cancel()
			run.Wait()                                      // it was told to end
			syscall.Kill(-run.Process.Pid, syscall.SIGKILL) // what it started, if that did not
			if err := a.Close(); err != nil {
				t.Error(err)
			}
			check(t, printed.Bytes(), outcome, got)
			if t.Failed() {
				t.Logf("%s\n%s", printed.Bytes(), complaints.Bytes())
			}
		})
	}
}

func TestAgentsOfVersion1(t *testing.T) {
	b, record := newTable(t), filepath.Join(t.TempDir(), "seen")
	a, err := process.New(process.Options{
		Gateway: b.gateway, Roles: []string{"solver"}, Scratch: t.TempDir(), Concurrent: 2,
		Command: process.Command{Args: []string{python(t), "agent_v1.py"}, Dir: "python", Environ: []string{"SEEN=" + record}},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := b.play(t, a)
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	printed, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	check(t, printed, bundle.OutcomeScored, got)
}
