package node

import (
	"errors"
	"testing"
	"time"

	"github.com/lightswarm/lightswarm/node/api"
	"github.com/lightswarm/lightswarm/virtualtime"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

// A program that fails always is told of now and then, by the first and the last line of what it said.
func TestFailuresAreToldNowAndThen(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		var events api.Broadcaster
		told, end := events.Subscribe(16)
		defer end()
		f := &failures{events: &events}
		cause := errors.New("the program failed; its standard error:\nTraceback\nKeyError: 'KEY'")
		for range 10 {
			f.tell(bundle.OutcomeAgentError, cause)
		}
		if n := len(told); n != 1 {
			t.Fatalf("ten failures at once are %d events, want 1", n)
		}
		const want = "rollouts fail, the newest with agent_error: the program failed; its standard error: … KeyError: 'KEY'"
		if e := <-told; e.Problem == nil || e.Problem.Message != want {
			t.Errorf("told %+v, want %q", e.Problem, want)
		}
		<-time.After(failureInterval)
		f.tell(bundle.OutcomeTimeout, errors.New("slow"))
		if n := len(told); n != 1 {
			t.Errorf("a failure after a while is %d events, want 1", n)
		}
	})
}
