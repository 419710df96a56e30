package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lightswarm/lightswarm/policy/pretrain"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/protocol"
	"github.com/lightswarm/lightswarm/rollout/warmstart"
)

// Advice is of the request that failed: what an environment says of another one has nothing to do with it.
func TestAdviceFitsTheFailure(t *testing.T) {
	reported := func(detail string) error {
		return &protocol.Failure{Reason: protocol.ReasonReported, Detail: detail}
	}
	for _, c := range []struct {
		err    error
		advice string
	}{
		{reported("reply: it reports: no such request"), "With --agent an environment has to answer solve and reply"},
		{env.ErrNoReplies, "With --agent an environment has to answer solve and reply"},
		{reported("solve: it reports: no such request"), "A first policy is for an environment that answers solve"},
		{env.ErrNoSolution, "A first policy is for an environment that answers solve"},
		{reported("score: it reports: no database"), ""},
		{&protocol.Failure{Reason: protocol.ReasonAnswer, Detail: "reply: its answer is not UTF-8"}, ""},
		{fmt.Errorf("%w: %s", warmstart.ErrSlow, time.Second), "Allow more with --rollout-timeout"},
		{warmstart.ErrTooManyCalls, "Allow more with --max-calls"},
		{&pretrain.TooLongError{Tokens: 2, Context: 1}, "or use --size mid"},
		{errors.New("disk full"), ""},
	} {
		err := fmt.Errorf("demonstrate task 7 of train: %w", c.err)
		text := explainPretrain(err, warmstart.Small).Error()
		if rest := strings.TrimPrefix(text, err.Error()); !strings.Contains(rest, c.advice) || (rest == "") != (c.advice == "") {
			t.Errorf("%v: %q", err, rest)
		}
	}
}
