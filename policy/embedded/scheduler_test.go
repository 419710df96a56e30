package embedded

import (
	"context"
	"testing"

	"github.com/lightswarm/lightswarm/policy"
)

// bench is a scheduler that the test steps itself, and a policy for it.
type bench struct {
	*scheduler
	resident *resident
}

func newBench(t *testing.T, o Options) *bench {
	t.Helper()
	model, err := newModel(snapshot(t, tiny, 6))
	if err != nil {
		t.Fatal(err)
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = 1 << 30
	}
	return &bench{newScheduler(o, new(counters)), &resident{model: model}}
}

// call submits a request for some tokens after prompt.
func (b *bench) call(ctx context.Context, prompt []int32, tokens int) *call {
	c := &call{
		ctx: ctx, resident: b.resident, tokens: prompt[:len(prompt):len(prompt)], reusable: len(prompt) - 1, room: tokens,
		request: policy.Request{Sampling: policy.Sampling{Temperature: 1}}, done: make(chan error, 1),
	}
	b.submit(c)
	return c
}

// run steps until nothing is left and returns the number of steps.
func (b *bench) run() (steps int) {
	for ; !b.idle(); steps++ {
		b.step()
	}
	return steps
}

func prompt(n int, first int32) []int32 {
	p := make([]int32, n)
	for i := range p {
		p[i] = first + int32(i)
	}
	return p
}

func TestGroupPaysForItsPromptOnce(t *testing.T) {
	b := newBench(t, Options{Slots: 8, Threads: 1})
	for range 8 {
		b.call(context.Background(), prompt(40, 5), 10)
	}
	b.run()
	// Each member feeds the prompt's last token and all but the last of its own ten.
	if got, want := b.counters.computed.Load(), int64(39+8*10); got != want {
		t.Errorf("computed %d tokens, want %d", got, want)
	}
	if got, want := b.counters.reused.Load(), int64(7*39); got != want {
		t.Errorf("reused %d tokens, want %d", got, want)
	}
}

func TestConversationGoesOnInItsCache(t *testing.T) {
	b := newBench(t, Options{Slots: 1, Threads: 1})
	first := b.call(context.Background(), prompt(20, 5), 10)
	b.run()
	cache := b.prefixes.idle.Front().Value.(*idle).cache
	before := b.counters.computed.Load()
	next := append(append(prompt(20, 5), first.completion...), 1, 2, 3)
	b.call(context.Background(), next, 1)
	b.run()
	// The first call never fed its last token.
	if got := b.counters.computed.Load() - before; got != 4 {
		t.Errorf("the second turn computed %d tokens, want 4", got)
	}
	if b.prefixes.idle.Len() != 1 || b.prefixes.idle.Front().Value.(*idle).cache != cache {
		t.Error("the second turn did not take the first one's cache over")
	}
}

func TestLongPromptsDoNotHoldUpCompletions(t *testing.T) {
	b := newBench(t, Options{Slots: 9, Threads: 1})
	short := b.call(context.Background(), prompt(2, 200), 30)
	b.step()
	for i := range 8 {
		b.call(context.Background(), prompt(90, int32(20*i)), 1)
	}
	for range 4 {
		before := b.counters.computed.Load()
		had := len(short.completion)
		b.step()
		if len(short.completion) != had+1 {
			t.Fatal("a running completion missed a step")
		}
		if got := b.counters.computed.Load() - before; got > promptRows+9 {
			t.Fatalf("a step computed %d tokens", got)
		}
	}
}

func TestFirstComeFirstServed(t *testing.T) {
	b := newBench(t, Options{Slots: 2, Threads: 1, CacheBytes: -1})
	var calls []*call
	for i := range 6 {
		calls = append(calls, b.call(context.Background(), prompt(3, int32(10*i)), 4))
	}
	for done := 0; done < len(calls); done += 2 {
		for range 4 {
			b.step()
		}
		for i, c := range calls {
			if finished := len(c.done) == 1; finished != (i < done+2) {
				t.Fatalf("after %d steps, call %d finished: %v", 2*(done+2), i, finished)
			}
		}
	}
	if !b.idle() || b.prefixes.idle.Len() != 0 || b.prefixes.bytes != 0 {
		t.Error("something is left")
	}
}

func TestCancelledCallsGiveTheirSlotBack(t *testing.T) {
	b := newBench(t, Options{Slots: 1, Threads: 1})
	ctx, cancel := context.WithCancel(context.Background())
	running := b.call(ctx, prompt(10, 5), 50)
	waiting := b.call(ctx, prompt(10, 50), 50)
	last := b.call(context.Background(), prompt(10, 5), 1)
	b.step()
	b.step()
	cancel()
	b.step()
	if len(running.done)+len(waiting.done) != 0 {
		t.Error("a cancelled call was answered")
	}
	if len(last.done) != 1 || !b.idle() {
		t.Error("the call behind the cancelled ones did not run at once")
	}
	if got := b.counters.reused.Load(); got != 9 {
		t.Errorf("reused %d tokens of the cancelled call's prompt, want 9", got)
	}
}

// A call that waits for another's prompt starts by itself when that one is cancelled.
func TestWaitingForACancelledPrefix(t *testing.T) {
	b := newBench(t, Options{Slots: 2, Threads: 1, CacheBytes: -1})
	ctx, cancel := context.WithCancel(context.Background())
	b.call(ctx, prompt(40, 5), 5)
	follower := b.call(context.Background(), prompt(40, 5), 5)
	// Both are admitted in the first step, but the leader goes before it has computed anything.
	cancel()
	b.run()
	if len(follower.done) != 1 || len(follower.completion) != 5 {
		t.Error("the follower did not finish")
	}
}

func TestCacheKeepsWithinItsBudget(t *testing.T) {
	b := newBench(t, Options{Slots: 1, Threads: 1})
	b.call(context.Background(), prompt(10, 0), 2)
	b.run()
	each := b.prefixes.bytes
	b.prefixes.budget = 3 * each
	for i := range 6 {
		b.call(context.Background(), prompt(10, int32(30*i)), 2)
		b.run()
		b.call(context.Background(), prompt(10, 0), 2) // keeps the first one recent
		b.run()
		if b.prefixes.bytes > b.prefixes.budget {
			t.Fatalf("%d bytes are kept, the budget is %d", b.prefixes.bytes, b.prefixes.budget)
		}
	}
	before := b.counters.reused.Load()
	b.call(context.Background(), prompt(10, 0), 2)
	b.run()
	if got := b.counters.reused.Load() - before; got != 9 {
		t.Errorf("reused %d tokens of the most recent prompt, want 9", got)
	}
	b.forget([]*resident{b.resident})
	if b.prefixes.idle.Len() != 0 || b.prefixes.bytes != 0 {
		t.Errorf("%d sequences, %d bytes are left of a forgotten policy", b.prefixes.idle.Len(), b.prefixes.bytes)
	}
}
