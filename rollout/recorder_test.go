package rollout

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/policy/grammar"
	"github.com/lightswarm/lightswarm/rollout/agent"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

// testRecorder records at most 8 calls of 40 tokens; the first byte of a call's key is its number.
func testRecorder(s *fakeSession) *recorder {
	return &recorder{
		policy: testPolicy(0, s), maxTokens: 40, maxCalls: 8,
		key: func(call uint32) policy.SampleKey { return policy.SampleKey{byte(call)} },
	}
}

func ask(s string) agent.Request {
	return agent.Request{Agent: "solver", Messages: []chat.Message{{Role: chat.User, Content: s}}}
}

// Calls that run at once keep the numbers that they began with, in whatever order they end.
func TestConcurrentCallsKeepTheirNumbers(t *testing.T) {
	const n = 8
	var turn [n + 1]chan struct{}
	for i := range turn {
		turn[i] = make(chan struct{})
	}
	close(turn[n])
	r := testRecorder(&fakeSession{behave: func(r policy.Request) (chat.Message, error) {
		number := int(r.Key[0])
		<-turn[number+1] // the last to begin ends first
		close(turn[number])
		return text(string('a' + rune(number))), nil
	}})
	var all sync.WaitGroup
	replies := make([]agent.Reply, n)
	for range n {
		all.Go(func() {
			reply, err := r.Complete(t.Context(), ask("hi"))
			if err != nil {
				t.Error(err)
			}
			replies[reply.Call] = reply
		})
	}
	all.Wait()
	if _, err := r.Complete(t.Context(), ask("more")); !errors.Is(err, agent.ErrExhausted) {
		t.Errorf("call %d: %v", n, err)
	}
	calls, err := r.finish()
	if err != nil || len(calls) != n {
		t.Fatalf("%d calls, %v", len(calls), err)
	}
	for i, c := range calls {
		want := text(string('a' + rune(i)))
		if tokens := testTemplate().RenderCompletion(want); !slices.Equal(c.Completion, tokens) || replies[i].Message.Content != want.Content {
			t.Errorf("call %d completes %v, replies %q", i, c.Completion, replies[i].Message.Content)
		}
		if len(replies[i].Pieces) != len(c.Completion) || !slices.Equal(replies[i].LogProbs, c.LogProbs) || !slices.Equal(replies[i].Prompt, c.Prompt) {
			t.Errorf("reply %d: %+v", i, replies[i])
		}
	}
}

func TestFinishWaits(t *testing.T) {
	began, release := make(chan struct{}), make(chan struct{})
	r := testRecorder(&fakeSession{behave: func(policy.Request) (chat.Message, error) {
		close(began)
		<-release
		return text("late"), nil
	}})
	go r.Complete(context.Background(), ask("hi"))
	<-began
	finished := make(chan []bundle.Call)
	go func() {
		calls, _ := r.finish()
		finished <- calls
	}()
	for !func() bool { r.mu.Lock(); defer r.mu.Unlock(); return r.ended }() {
		runtime.Gosched()
	}
	if _, err := r.Complete(t.Context(), ask("again")); !errors.Is(err, agent.ErrEnded) {
		t.Errorf("a call after the end: %v", err)
	}
	select {
	case <-finished:
		t.Error("finished while a call ran")
	default:
	}
	close(release)
	if calls := <-finished; len(calls) != 1 {
		t.Errorf("%d calls", len(calls))
	}
}

// When a rollout's time is over, nothing more is done for it.
func TestLateCallsAreNotRendered(t *testing.T) {
	r := testRecorder(&fakeSession{behave: func(policy.Request) (chat.Message, error) { return text("late"), nil }})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Complete(ctx, ask("hi")); !errors.Is(err, context.Canceled) {
		t.Errorf("a late call: %v", err)
	}
	if calls, err := r.finish(); len(calls) != 0 || err != nil {
		t.Errorf("%d calls, %v", len(calls), err)
	}
}

// A number whose call failed goes to the next call, so that the calls stay without a gap.
func TestFailedNumbersAreUsedAgain(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		failure error
		want    error // of the call that fails
		end     error // of a rollout that gives up there
	}{
		"engine":  {broken, broken, broken},
		"no room": {policy.ErrPromptTooLong, agent.ErrNoRoom, nil},
	} {
		t.Run(name, func(t *testing.T) {
			fail := true
			r := testRecorder(&fakeSession{behave: func(r policy.Request) (chat.Message, error) {
				if r.Key[0] == 1 && fail {
					return chat.Message{}, c.failure
				}
				return text("ok"), nil
			}})
			for i, want := range []error{nil, c.want} {
				if _, err := r.Complete(t.Context(), ask("hi")); !errors.Is(err, want) {
					t.Fatalf("call %d: %v", i, err)
				}
			}
			r.slots = append(r.slots, slot{taken: true, call: &bundle.Call{}}) // began after 1, ended well
			if calls, err := r.finish(); len(calls) != 1 || !errors.Is(err, c.end) {
				t.Errorf("%d calls, %v", len(calls), err)
			}
			r.ended, fail = false, false
			reply, err := r.Complete(t.Context(), ask("hi"))
			if err != nil || reply.Call != 1 {
				t.Errorf("call %d, %v", reply.Call, err)
			}
			if calls, err := r.finish(); len(calls) != 3 || err != nil {
				t.Errorf("then %d calls, %v", len(calls), err)
			}
		})
	}
}

// tolerant is an agent that takes a failed call for an answer.
type tolerant struct{}

func (tolerant) Run(ctx context.Context, llm agent.LLM, _ env.Episode) (agent.Result, error) {
	llm.Complete(ctx, ask("hi"))
	return agent.Result{End: agent.Answered, Answer: "0"}, nil
}

// An engine's failure is no outcome, whatever the agent makes of it.
func TestEngineFailureCannotBeHidden(t *testing.T) {
	n := calcNetwork(t)
	n.Agent = tolerant{}
	broken := errors.New("broken")
	s := &fakeSession{behave: func(policy.Request) (chat.Message, error) { return chat.Message{}, broken }}
	if _, err := RunGroup(t.Context(), n, testPolicy(0, s), testPeer(), 0); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func TestReplies(t *testing.T) {
	stray := []int32{5, 5, testTemplate().Stop()}
	for name, c := range map[string]struct {
		request agent.Request
		writes  chat.Message
		want    chat.Message
		err     error
		free    bool // of the rollout's calls
	}{
		"a message":      {request: ask("hi"), writes: text("yes"), want: text("yes")},
		"calls":          {request: ask("hi"), writes: callTool("{}"), want: callTool("{}")},
		"no message":     {request: ask("hi"), writes: chat.Message{Tokens: stray}, want: text("<|tools|><|tools|>"), err: agent.ErrMalformed},
		"cut":            {request: ask("hi"), writes: text(string(make([]byte, 50))), want: text(string(make([]byte, 40))), err: agent.ErrCut},
		"a text":         {request: agent.Request{Text: "1+1="}, writes: text("2"), want: text("2")},
		"a text is text": {request: agent.Request{Text: "1+1="}, writes: callTool("{}"), want: text("<|call|>calculator<|args|>{}")},
		"ids":            {request: agent.Request{Prompt: stray}, writes: text("2"), want: text("2")},
		"a text, cut":    {request: agent.Request{Text: "1"}, writes: text(string(make([]byte, 50))), want: text(string(make([]byte, 40))), err: agent.ErrCut},
		"bad ids":        {request: agent.Request{Prompt: []int32{-1}}, err: chat.ErrConversation, free: true},
		"bad messages":   {request: agent.Request{Messages: []chat.Message{{}}}, err: chat.ErrConversation, free: true},
		"no room":        {request: ask(string(make([]byte, 300))), err: agent.ErrNoRoom, free: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := testRecorder(&fakeSession{behave: func(policy.Request) (chat.Message, error) { return c.writes, nil }})
			r.policy.Context = 200
			reply, err := r.Complete(t.Context(), c.request)
			if !errors.Is(err, c.err) || errors.Is(err, agent.ErrNoRoom) && !errors.Is(err, agent.ErrCut) {
				t.Errorf("error %v, want %v", err, c.err)
			}
			calls, err := r.finish()
			if err != nil {
				t.Error(err)
			}
			if c.free {
				if len(calls) != 0 {
					t.Errorf("%d calls", len(calls))
				}
				return
			}
			if diff := cmp.Diff(c.want, reply.Message, cmpopts.IgnoreFields(chat.Message{}, "Tokens")); diff != "" {
				t.Error(diff)
			}
			if len(calls) != 1 || !slices.Equal(calls[0].Completion, reply.Message.Tokens) {
				t.Errorf("recorded %+v", calls)
			}
		})
	}
}

// A session that cannot sample within a grammar is not given one, and the agent is told.
func TestGrammarsNeedAnEngine(t *testing.T) {
	g, err := grammar.Compile(grammar.Demand{Object: true})
	if err != nil {
		t.Fatal(err)
	}
	r := testRecorder(&fakeSession{behave: func(r policy.Request) (chat.Message, error) {
		if r.Grammar != nil {
			t.Error("the session got a grammar")
		}
		return text("no object"), nil
	}})
	q := ask("hi")
	q.Grammar = g
	reply, err := r.Complete(t.Context(), q)
	if err != nil || reply.Constrained {
		t.Errorf("constrained: %v, %v", reply.Constrained, err)
	}
	if calls, err := r.finish(); err != nil || calls[0].Grammar != "" {
		t.Errorf("recorded: %+v, %v", calls, err)
	}
}
