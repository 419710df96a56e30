package process

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lightswarm/lightswarm/rollout/agent"
	"github.com/lightswarm/lightswarm/rollout/gateway"
)

// starter starts programs.
type starter interface {
	// ready waits until programs can be started. An error says why they cannot be.
	ready(ctx context.Context) error
	// prepare makes the room of one rollout's program; ctx bounds the wait for it. The caller vacates it.
	prepare(ctx context.Context) (*room, error)
	// start starts the program in its room; ctx bounds the start alone. The caller waits for the child.
	start(ctx context.Context, r *room, environ []string) (child, error)
	// close frees what it holds, after all children have ended.
	close()
}

// child is a program that was started.
type child interface {
	// ask and kill end the program and all that it started: ask lets it do so by itself. They may come late.
	ask()
	kill()
	// wait returns once the program has ended and what it had started is killed. An error says that how it ended is
	// not known; if it is errUnborn, the program never began. It is called once.
	wait() (status, error)
}

// status is how a program ended: ok, or else in words, such as "exit status 1".
type status struct {
	ok    bool
	words string
}

// errUnborn is the end of a program that never began.
var errUnborn = errors.New("the process that was prepared for it was killed, did not answer or could not fork")

// notStarted is the error of a rollout whose program could not be started: the failure of what is around the agent, from
// which nothing follows about it.
func notStarted(doing string, cause error) error {
	return &agent.EnvironmentError{Err: fmt.Errorf("%s: %w", doing, cause)}
}

// play runs the program of one rollout.
func (a *Agent) play(ctx context.Context, llm agent.LLM, task string) (agent.Result, error) {
	r, err := a.start.prepare(ctx)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return agent.Result{}, cause
		}
		return agent.Result{}, notStarted("make room for the program", err)
	}
	defer func() {
		if err := r.vacate(); err != nil {
			a.options.Log.Warn("a rollout's folder is left", "cause", err)
		}
	}()
	calls := &agent.Watch{LLM: llm}
	session, err := a.options.Gateway.Open(ctx, gateway.SessionOptions{Access: r.access, LLM: calls, Agents: a.options.Roles})
	if err != nil {
		return agent.Result{}, notStarted("open a session", err)
	}
	defer session.End()
	r.tell(task)
	program, err := a.start.start(ctx, r, withTask(environ(r.place, a.options.Command.Environ, session.Access), task))
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return agent.Result{}, cause
		}
		return agent.Result{}, notStarted("start the program", err)
	}
	a.programs.started.Add(1)
	r.listen()
	ended, stopped := make(chan struct{}), make(chan request, 1)
	go func() { stopped <- stop(ctx, program, a.options.Grace, ended) }()
	how, lost := program.wait()
	a.programs.ended.Add(1)
	close(ended)
	asked := <-stopped
	out, complaints := r.finish()
	seen := session.End()
	if complaints != "" {
		a.options.Log.Debug("an agent's standard error", "rollout", session.ID(), "text", complaints)
	}
	e := ending{
		status: how, lost: lost, asked: asked != notAsked, refused: calls.Refused(), failure: seen.Failure,
		out: out, limit: a.options.MaxOutput, complaints: complaints,
	}
	if asked == askedAhead && !e.answered() {
		<-ctx.Done() // the deadline is not far: the rollout took all its time
	}
	e.over = context.Cause(ctx)
	result, err := judge(e)
	result.Feedback = seen.Feedback
	return result, err
}

// request says whether, and when, a program was asked to end.
type request uint8

const (
	notAsked   request = iota
	askedAhead         // of its deadline
	askedLate          // when its context had ended
)

// stop asks the program to end when ctx does, and kills it grace later. Of a deadline, the grace is a part, but at most
// half of the time that is left: the program is asked ahead of it and killed at it, so that the answer of one that heeds
// is in time. It returns once the program has ended.
func stop(ctx context.Context, program child, grace time.Duration, ended <-chan struct{}) (asked request) {
	var ahead <-chan time.Time
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline)
		timer := time.NewTimer(max(left-grace, left/2))
		defer timer.Stop()
		ahead = timer.C
	}
	select {
	case <-ended:
		return notAsked
	case <-ahead:
		asked = askedAhead
		program.ask()
		select {
		case <-ended:
			return asked
		case <-ctx.Done():
		}
	case <-ctx.Done():
		asked = askedLate
		program.ask()
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-ended:
			return asked
		case <-timer.C:
		}
	}
	program.kill()
	<-ended
	return asked
}

// ending is all that is known of a program's end.
type ending struct {
	status     status
	lost       error     // why the status is not known
	asked      bool      // it was asked to end
	over       error     // why the rollout's context ended
	refused    agent.End // Exhausted or Cut if the policy refused a call, else 0
	failure    error     // the machinery's last failure that the program saw
	out        output
	limit      int
	complaints string
}

// answer is what the program has said.
func (e *ending) answer() string {
	return strings.TrimSpace(strings.ToValidUTF8(e.out.text, "\uFFFD"))
}

// answered says whether the program came to an answer. Many end with status 0 when they are asked to end: if they say
// nothing then, it is no answer.
func (e *ending) answered() bool {
	return e.lost == nil && e.status.ok && (!e.asked || e.answer() != "")
}

// judge says what a program's end means.
func judge(e ending) (agent.Result, error) {
	switch {
	case e.answered() && e.out.more:
		return agent.Result{}, fmt.Errorf("the program's answer is longer than %d bytes", e.limit)
	case e.answered():
		return agent.Result{End: agent.Answered, Answer: e.answer()}, nil
	case e.over != nil:
		return agent.Result{}, e.over
	case errors.Is(e.lost, errUnborn):
		return agent.Result{}, notStarted("start the program", e.lost)
	case e.lost == nil && e.refused != 0 && e.failure == nil:
		return agent.Result{End: e.refused}, nil
	}
	words := e.status.words
	if e.lost != nil {
		words = e.lost.Error()
	}
	if e.failure != nil {
		// As text: whether a failure is the rollout's is for whoever records the calls, which may have been repeated.
		words += fmt.Sprintf(" after the policy failed (%v)", e.failure)
	}
	if e.complaints != "" {
		words += "; the end of its standard error:\n" + e.complaints
	}
	return agent.Result{}, errors.New("the program failed: " + words)
}
