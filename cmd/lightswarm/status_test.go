package main

import (
	"strings"
	"testing"
	"time"

	"github.com/lightswarm/lightswarm/node/api"
)

func TestSizesSuitPeople(t *testing.T) {
	for bytes, want := range map[int64]string{0: "0B", 1023: "1023B", 1024: "1KiB", 410792: "401.2KiB", 4 << 30: "4GiB", 5 << 50: "5120TiB"} {
		if got := size(bytes); got != want {
			t.Errorf("%d bytes are %s, want %s", bytes, got, want)
		}
	}
}

func TestLearnersSayWhatTheyWaitFor(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	head := &api.Release{Version: 9}
	for name, c := range map[string]struct {
		head    *api.Release
		learner *api.LearnerStatus
		want    string
	}{
		"no learner": {head, nil, ""},
		"no release": {nil, &api.LearnerStatus{Batch: 32}, ""},
		"nothing":    {head, &api.LearnerStatus{Batch: 32}, "waiting for rollouts; a step needs 32 groups"},
		"some":       {head, &api.LearnerStatus{Batch: 32, Waiting: 8, StepDue: now.Add(12 * time.Second)}, "8 groups of 32; the step begins in 12 s at the latest"},
		"flat": {
			head, &api.LearnerStatus{Batch: 32, Most: 64, Waiting: 40, Teaching: 8, StepDue: now.Add(12 * time.Second)},
			"40 groups, of which 8 teach something, of 32; the step begins in 12 s at the latest",
		},
		"enough":   {head, &api.LearnerStatus{Batch: 32, Waiting: 40}, ""},
		"training": {head, &api.LearnerStatus{Batch: 32, Training: true}, "training the next version"},
		"final":    {&api.Release{Version: 9, Final: true}, &api.LearnerStatus{}, "waiting for the evaluation of version 9, the final one"},
		"finished": {&api.Release{Version: 9, Final: true}, &api.LearnerStatus{Finished: true},
			"finished: version 9 is final, and served until this is stopped"},
	} {
		t.Run(name, func(t *testing.T) {
			s := api.Status{Head: c.head, Learner: c.learner}
			if got := waitsFor(&s, now); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestStatusOfRunners(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	var b strings.Builder
	statusText(&b, &api.Status{Started: now, Rollout: &api.RolloutStatus{Since: now,
		Agent: &api.AgentStatus{Lightning: "127.0.0.1:4747", Running: 3, Waiting: 5, Started: 40}}}, now)
	if want := "agent     runners of Agent Lightning at 127.0.0.1:4747 play 3 rollouts, 5 wait; 40 attempts since the start\n"; !strings.Contains(b.String(), want) {
		t.Errorf("the status lacks %q:\n%s", want, b.String())
	}
}

func TestStatusNamesRolesAndMeasures(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	var b strings.Builder
	statusText(&b, &api.Status{
		Started: now, Head: &api.Release{Version: 9, Created: now}, Phase: "running under version 9",
		Store: api.StoreStatus{BlockBytes: 410792, MaxBlockBytes: 4 << 30},
		Rollout: &api.RolloutStatus{Activity: "running", Since: now.Add(-3 * time.Second), Running: 4,
			Agent: &api.AgentStatus{Command: "python3 agent.py", Running: 3, Started: 40}},
		Learner: &api.LearnerStatus{Batch: 32, Waiting: 8, StepDue: now.Add(time.Second), Evaluations: []api.Evaluation{
			{Version: 5, Purpose: "evaluate-sampled", Complete: true, Tasks: 256, Success: 0.5, Low: 0.439, High: 0.561},
			{Version: 5, Purpose: "evaluate-greedy", Complete: true, Tasks: 256, Success: 1},
		}},
	}, now)
	for _, want := range []string{
		"learner   8 groups of 32; the step begins in 1 s at the latest\n",
		"rollout   running for 3s, 4 groups and evaluation blocks at work\n",
		"agent     python3 agent.py, 3 processes of it now, 40 since the start\n",
		"held-out  0.500 sampled (95%: 0.439-0.561), version 5, 256 tasks\n", "held-out  1.000 greedy (95%: ",
		"store     401.2KiB of 4GiB\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the status lacks %q:\n%s", want, b.String())
		}
	}
}
