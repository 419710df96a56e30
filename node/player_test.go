package node

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lightswarm/lightswarm/node/config"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

// answerer is an agent that asks the policy once and prints what it says.
const answerer = `
import json, os, sys, urllib.request
request = urllib.request.Request(
    os.environ["OPENAI_BASE_URL"] + "/chat/completions",
    json.dumps({"model": "gpt-4o-mini", "messages": [{"role": "user", "content": sys.stdin.read()}]}).encode(),
    {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"})
print(json.load(urllib.request.urlopen(request))["choices"][0]["message"]["content"])
if os.environ["MOOD"] != "good" or "LIGHTSWARM_SECRET" in os.environ:
    sys.exit("wrong variables")
`

// A volunteer whose rollouts are played by a program contributes to training like any other, and ends without a trace.
func TestProgramPlaysRollouts(t *testing.T) {
	t.Setenv("MOOD", "good")
	t.Setenv("LIGHTSWARM_SECRET", "1")
	files := t.TempDir()
	if err := os.WriteFile(filepath.Join(files, "answerer.py"), []byte(answerer), 0o600); err != nil {
		t.Fatal(err)
	}
	c := settings(config.RoleLearner)
	c.Learner.Steps, c.Learner.Groups = 1, 2
	o := options(t, c)
	o.Found = parityNetwork(t)
	o.Found.Evaluation.Tasks = 4
	founder := start(t, o)

	joining := join(t, founder, config.RoleRollout)
	joining.Folder = filepath.Join(t.TempDir(), "volunteer")
	left := filepath.Join(joining.Folder, "agents", "agent-1", "run-1", "work", "read-only")
	if err := os.MkdirAll(filepath.Join(left, "more"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(left, 0o500); err != nil { // by a program whose node was killed
		t.Fatal(err)
	}
	program := &joining.Config.Rollout.Agent
	program.Command, program.Folder = []string{"python3", "answerer.py"}, files
	program.Preload, program.Variables = []string{"json", "urllib.request"}, []string{"MOOD"}
	volunteer := start(t, joining)
	founder.until("the learner is finished", func() bool { return founder.Status().Learner.Finished })

	if accepted := founder.Status().Learner.RolloutsAccepted; accepted < 2*4 {
		t.Errorf("%d rollouts were accepted", accepted)
	}
	status := volunteer.Status().Rollout
	if status.Agent == nil || status.Agent.Command != "python3 answerer.py" || status.Agent.Started < 2*4+2*4 {
		t.Errorf("the volunteer's agent is %+v", status.Agent)
	}
	for outcome, n := range status.Total.Outcomes {
		if outcome != bundle.OutcomeScored.String() && outcome != bundle.OutcomeTruncated.String() && n > 0 {
			t.Errorf("%d rollouts ended in %s", n, outcome)
		}
	}
	volunteer.end()
	remains, err := os.ReadDir(filepath.Join(joining.Folder, "agents"))
	if err != nil || len(remains) > 0 {
		t.Errorf("left in the data folder: %q, %v", remains, err)
	}
}

func TestAgentCommand(t *testing.T) {
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	has := func(name string) (string, bool) { return "of " + name, strings.HasPrefix(name, "A") }
	got, err := agentCommand(config.Agent{Command: []string{"run"}, Preload: []string{"json"}, Variables: []string{"A1", "A2"}}, has)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]any{here, []string{"A1=of A1", "A2=of A2"}}, []any{got.Dir, got.Environ}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := agentCommand(config.Agent{Command: []string{"run"}, Variables: []string{"B"}}, has); err == nil || !strings.Contains(err.Error(), "B, which this node does not have") {
		t.Errorf("a variable that is not there: %v", err)
	}
}

// team is parity with other roles.
type team struct{ parity }

func (team) Manifest() wire.EnvironmentManifest {
	m := parity{}.Manifest()
	m.Name, m.Agents = "team", []string{"planner", "solver"}
	return m
}

func TestNetworksThatNoProgramCanPlay(t *testing.T) {
	for want, of := range map[string][]env.Environment{
		`"parity" and "team" have different roles`: {parity{}, team{}},
		"upgrade it": {team{}},
	} {
		c := settings(config.RoleRollout)
		c.Rollout.Agent.Command = []string{"sh"}
		o := options(t, c)
		founding, err := DefaultFounding("many", of...)
		if err != nil {
			t.Fatal(err)
		}
		founding.Base, founding.Evaluation = tinyPolicy(), wire.EvaluationRules{}
		o.Found, o.Folder = &founding, t.TempDir()
		if o.Environments, err = env.NewSet(of...); err != nil {
			t.Fatal(err)
		}
		if len(of) == 1 { // found it, then have a program that does not know the environment
			o.Config.Rollout.Agent.Command = nil
			n, err := New(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if err := n.Close(); err != nil {
				t.Fatal(err)
			}
			o.Config.Rollout.Agent.Command, o.Environments = []string{"sh"}, nil
		}
		if n, err := New(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the node is %v: %v", n, err)
		}
	}
}

// A module that is not there ends Run, and says so.
func TestMissingModuleIsAnError(t *testing.T) {
	files := t.TempDir()
	if err := os.WriteFile(filepath.Join(files, "answerer.py"), []byte(answerer), 0o600); err != nil {
		t.Fatal(err)
	}
	c := settings(config.RoleRollout)
	c.Rollout.Agent.Command, c.Rollout.Agent.Folder = []string{"python3", "answerer.py"}, files
	c.Rollout.Agent.Preload = []string{"no_such_module"}
	o := options(t, c)
	o.Found = parityNetwork(t)
	n, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := n.Run(ctx); err == nil || !strings.Contains(err.Error(), `the agent "python3 answerer.py"`) || !strings.Contains(err.Error(), "No module named 'no_such_module'") {
		t.Error(err)
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
}

// A program that is not there ends New, with nothing left.
func TestMissingProgramIsAnError(t *testing.T) {
	c := settings(config.RoleRollout)
	c.Rollout.Agent.Command = []string{"no-such-program-anywhere"}
	o := options(t, c)
	o.Found, o.Folder = parityNetwork(t), t.TempDir()
	if n, err := New(t.Context(), o); err == nil || !strings.Contains(err.Error(), "no-such-program-anywhere") {
		t.Errorf("the node is %v: %v", n, err)
	}
}
