package openenv_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/lightswarm/lightswarm/rollout/agent"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/drivertest"
	"github.com/lightswarm/lightswarm/rollout/env/openenv"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

// answers is an agent that asks no policy: each of its runs gives the next answer.
type answers chan string

func (a answers) Run(context.Context, agent.LLM, env.Episode) (agent.Result, error) {
	return agent.Result{End: agent.Answered, Answer: <-a}, nil
}

// A server that fails costs its own rollouts alone: their outcome is env_error, and the others of the group are scored.
func TestServerFailuresAreEnvErrors(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer ws.CloseNow()
		for {
			_, raw, err := ws.Read(context.Background())
			said := string(raw)
			answer := `{"type":"observation","data":{"observation":{"task":"go"},"reward":1,"done":true}}`
			switch {
			case err != nil || strings.Contains(said, "close"):
				return
			case strings.Contains(said, "break"):
				answer = `{"type":"error","data":{"code":"EXECUTION_ERROR","message":"broken"}}`
			case strings.Contains(said, "reset"):
				answer = `{"type":"observation","data":{"observation":{"task":"go"},"reward":null,"done":false}}`
			}
			if ws.Write(context.Background(), websocket.MessageText, []byte(answer)) != nil {
				return
			}
		}
	}))
	defer server.Close()
	spec := openenv.Spec{Server: "the test's", Observe: []string{"task"}, Answer: &openenv.Answer{Field: "answer"}, Reward: openenv.RewardSum}
	raw, err := spec.Encode()
	if err != nil {
		t.Fatal(err)
	}
	p, err := env.NewPackage(wire.EnvironmentManifest{
		Name: "frail", Version: "1.0.0", Licence: "MIT", Kind: openenv.Kind, Entry: openenv.SpecFile, RewardMax: 1,
		Splits: []wire.Split{{Name: "train", Tasks: 10}}, Determinism: wire.DeterminismStochastic, Agents: []string{"solver"},
		Limits: wire.EpisodeLimits{Steps: 20_000},
	}, map[string][]byte{openenv.SpecFile: raw})
	if err != nil {
		t.Fatal(err)
	}
	e, err := env.Drivers{openenv.New(openenv.Options{Server: server.URL})}.Open(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	defer env.Close(e)
	a := make(answers, 6)
	for _, answer := range []string{"a", "break", "b", "c", "break", "close"} {
		a <- answer
	}
	var outcomes []bundle.OutcomeKind
	for _, r := range drivertest.PlayGroup(t, e, a, cap(a)) {
		outcomes = append(outcomes, r.Outcome)
		if want := r.Outcome == bundle.OutcomeScored; (r.Reward == 1) != want {
			t.Errorf("%v with reward %v", r.Outcome, r.Reward)
		}
	}
	slices.Sort(outcomes)
	want := []bundle.OutcomeKind{
		bundle.OutcomeScored, bundle.OutcomeScored, bundle.OutcomeScored,
		bundle.OutcomeEnvError, bundle.OutcomeEnvError, bundle.OutcomeEnvError,
	}
	if slices.Sort(want); !slices.Equal(outcomes, want) {
		t.Errorf("%v, want %v", outcomes, want)
	}
}
