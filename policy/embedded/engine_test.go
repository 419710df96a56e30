package embedded

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"weak"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/policy/kernel"
	"github.com/lightswarm/lightswarm/policy/safetensors"
	"github.com/lightswarm/lightswarm/policy/tokenizer"
	"github.com/lightswarm/lightswarm/policy/transformer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tiny is a shape with nothing special about it: grouped heads, widths that fill no vector register.
var tiny = transformer.Config{
	Hidden: 36, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 10, Intermediate: 50, Vocab: 265, Context: 96,
	RopeTheta: 10000, NormEpsilon: 1e-6, TieEmbeddings: true,
}

var bytesTokenizer = sync.OnceValue(func() *tokenizer.Tokenizer {
	tok, err := tokenizer.Train(func(func(string) bool) {}, tiny.Vocab, chat.Specials())
	if err != nil {
		panic(err)
	}
	return tok
})

// snapshot returns a policy of shape c whose distributions are neither flat nor sharp.
func snapshot(t testing.TB, c transformer.Config, seed uint64) *policy.Snapshot {
	t.Helper()
	p := transformer.Init(c, seed)
	for _, n := range p.Named {
		if n.Rows > 0 {
			for i := range n.Values {
				n.Values[i] *= 4
			}
		}
	}
	s, err := policy.New(c.JSON(), bytesTokenizer(), chat.Lightswarm1, policy.GenerationConfig{Stop: []int32{8}}, p.Tensors(safetensors.BF16))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// open starts an engine with s and a session on it; both are closed when the test ends.
func open(t testing.TB, o Options, s *policy.Snapshot) (*Engine, policy.Session) {
	t.Helper()
	e := New(o)
	t.Cleanup(func() { _ = e.Close() })
	if err := e.Load(context.Background(), s); err != nil {
		t.Fatal(err)
	}
	session, err := e.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	return e, session
}

// randomRequests returns requests of all kinds; many share a prefix, some a whole prompt.
func randomRequests(random *rand.Rand, n int) []policy.Request {
	requests := make([]policy.Request, n)
	for i := range requests {
		r := &requests[i]
		if i > 0 && random.IntN(2) == 0 {
			earlier := requests[random.IntN(i)].Prompt
			r.Prompt = append(r.Prompt, earlier[:1+random.IntN(len(earlier))]...)
		}
		if len(r.Prompt) == 0 || random.IntN(4) > 0 {
			for range 1 + random.IntN(30) {
				r.Prompt = append(r.Prompt, int32(random.IntN(tiny.Vocab)))
			}
		}
		r.Prompt = r.Prompt[:min(len(r.Prompt), tiny.Context-1)]
		r.MaxTokens = 1 + random.IntN(50)
		for range random.IntN(6) {
			r.Stop = append(r.Stop, int32(random.IntN(tiny.Vocab)))
		}
		r.Sampling.Temperature = []float32{0, 1, 1, 1, 0.7, 3}[random.IntN(6)]
		r.Sampling.TopK = []int{0, 0, 1, 20, 1000}[random.IntN(5)]
		r.Sampling.TopP = []float32{0, 0, 1, 0.9, 0.2}[random.IntN(5)]
		for j := range r.Key {
			r.Key[j] = byte(random.Uint32())
		}
	}
	return requests
}

// generateAll runs the requests at the same time.
func generateAll(t testing.TB, session policy.Session, requests []policy.Request) []policy.Completion {
	t.Helper()
	completions := make([]policy.Completion, len(requests))
	var all sync.WaitGroup
	for i, r := range requests {
		all.Go(func() {
			var err error
			if completions[i], err = session.Generate(context.Background(), r); err != nil {
				t.Errorf("request %d: %v", i, err)
			}
		})
	}
	all.Wait()
	return completions
}

// One request at a time on one thread without a cache gives the same as everything at once in any arrangement.
func TestGenerateIsPure(t *testing.T) {
	path := kernel.Active()
	t.Cleanup(func() {
		if err := kernel.Use(path); err != nil {
			t.Error(err)
		}
	})
	s := snapshot(t, tiny, 1)
	const calls = 33
	requests := randomRequests(rand.New(rand.NewPCG(1, 1)), calls)
	var want []policy.Completion
	_, alone := open(t, Options{Slots: 1, Threads: 1, CacheBytes: -1}, s)
	for _, r := range requests {
		c, err := alone.Generate(context.Background(), r)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, c)
	}
	for _, path := range kernel.Available() {
		if err := kernel.Use(path); err != nil {
			t.Fatal(err)
		}
		for _, o := range []Options{
			{},
			{Slots: calls, Threads: 8},
			{Slots: calls, Threads: 1, CacheBytes: -1},
			{Slots: 5, Threads: 3, CacheBytes: 1 << 20},
		} {
			e, session := open(t, o, s)
			rounds := 2 // the second finds all prompts in the cache
			if o.CacheBytes < 0 {
				rounds = 1
			}
			for round := range rounds {
				got := generateAll(t, session, requests)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("%s %+v round %d: completions differ (-alone +together):\n%s", path, o, round, diff)
				}
			}
			if reused := e.Stats().Reused; o.CacheBytes >= 0 && reused == 0 {
				t.Errorf("%+v: no prefix was reused", o)
			}
		}
	}
}

// At temperature 1 the recorded log-probs are Score's and the trainer's.
func TestLogProbsAgreeEverywhere(t *testing.T) {
	if policy.LogProbGrid != transformer.LogProbGrid {
		t.Fatal("the two LogProbGrid differ")
	}
	s := snapshot(t, tiny, 2)
	_, session := open(t, Options{Threads: 2}, s)
	requests := randomRequests(rand.New(rand.NewPCG(2, 1)), 20)
	var batch []transformer.Sequence
	var want [][]float32
	for i := range requests {
		requests[i].Sampling = policy.Sampling{Temperature: float32(i % 2)} // sampled and greedy
	}
	for i, c := range generateAll(t, session, requests) {
		sequence := transformer.Sequence{Tokens: append(slices.Clone(requests[i].Prompt), c.Tokens...)}
		from := len(requests[i].Prompt)
		for position := from; position < len(sequence.Tokens); position++ {
			sequence.Train = append(sequence.Train, int32(position))
		}
		batch, want = append(batch, sequence), append(want, c.LogProbs)
		for _, prefix := range []int{1, from} {
			scores, err := session.Score(context.Background(), sequence.Tokens, prefix)
			if err != nil {
				t.Fatal(err)
			}
			if len(scores) != len(sequence.Tokens)-prefix {
				t.Fatalf("Score returned %d log-probs from token %d of %d", len(scores), prefix, len(sequence.Tokens))
			}
			if diff := cmp.Diff(c.LogProbs, scores[from-prefix:]); diff != "" {
				t.Errorf("request %d: scores from %d differ (-generate +score):\n%s", i, prefix, diff)
			}
		}
	}
	p, err := transformer.FromTensors(tiny, s.Tensors)
	if err != nil {
		t.Fatal(err)
	}
	trained, err := transformer.NewTrainer(p, transformer.Options{}).Forward(batch)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, trained.LogProbs); diff != "" {
		t.Errorf("log-probs differ (-generate +train):\n%s", diff)
	}
}

func TestFinish(t *testing.T) {
	_, session := open(t, Options{}, snapshot(t, tiny, 3))
	ctx := context.Background()
	free, err := session.Generate(ctx, policy.Request{Prompt: make([]int32, 90), MaxTokens: 100, Sampling: policy.Sampling{Temperature: 1}})
	if err != nil {
		t.Fatal(err)
	}
	if len(free.Tokens) != tiny.Context-90 || free.Finish != policy.FinishLength {
		t.Errorf("%d tokens after 90 in a context of %d, finish %d", len(free.Tokens), tiny.Context, free.Finish)
	}
	stop := free.Tokens[3]
	stopped, err := session.Generate(ctx, policy.Request{Prompt: make([]int32, 90), MaxTokens: 100, Stop: []int32{stop}, Sampling: policy.Sampling{Temperature: 1}})
	if err != nil {
		t.Fatal(err)
	}
	end := slices.Index(free.Tokens, stop) + 1
	want := policy.Completion{Tokens: free.Tokens[:end], LogProbs: free.LogProbs[:end], Finish: policy.FinishStop}
	if diff := cmp.Diff(want, stopped); diff != "" {
		t.Errorf("stopped completion (-want +got):\n%s", diff)
	}
}

func TestRefusals(t *testing.T) {
	e := New(Options{})
	if _, err := e.Open(); !errors.Is(err, ErrNoPolicy) {
		t.Errorf("Open before Load: %v", err)
	}
	s := snapshot(t, tiny, 3)
	if err := e.Load(context.Background(), s); err != nil {
		t.Fatal(err)
	}
	session, err := e.Open()
	if err != nil {
		t.Fatal(err)
	}
	if session.Policy() != s.Digest() {
		t.Error("the session's policy is not the loaded one")
	}
	good := policy.Request{Prompt: []int32{1}, MaxTokens: 1}
	for name, test := range map[string]struct {
		change func(*policy.Request)
		want   error
	}{
		"long prompt":     {func(r *policy.Request) { r.Prompt = make([]int32, tiny.Context) }, policy.ErrPromptTooLong},
		"no prompt":       {func(r *policy.Request) { r.Prompt = nil }, ErrRequest},
		"unknown token":   {func(r *policy.Request) { r.Prompt = []int32{int32(tiny.Vocab)} }, ErrRequest},
		"negative token":  {func(r *policy.Request) { r.Prompt = []int32{-1} }, ErrRequest},
		"no tokens":       {func(r *policy.Request) { r.MaxTokens = 0 }, ErrRequest},
		"bad temperature": {func(r *policy.Request) { r.Sampling.Temperature = -1 }, ErrRequest},
		"bad top-k":       {func(r *policy.Request) { r.Sampling.TopK = -1 }, ErrRequest},
		"bad top-p":       {func(r *policy.Request) { r.Sampling.TopP = 1.5 }, ErrRequest},
	} {
		r := good
		test.change(&r)
		if _, err := session.Generate(context.Background(), r); !errors.Is(err, test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := session.Score(context.Background(), []int32{1, 2}, 0); !errors.Is(err, ErrRequest) {
		t.Errorf("Score from 0: %v", err)
	}
	if _, err := session.Score(context.Background(), make([]int32, tiny.Context+1), 1); !errors.Is(err, policy.ErrPromptTooLong) {
		t.Errorf("Score of a long text: %v", err)
	}
	if scores, err := session.Score(context.Background(), []int32{1, 2}, 2); err != nil || len(scores) != 0 {
		t.Errorf("Score of nothing: %v, %v", scores, err)
	}
	session.Close()
	session.Close()
	if _, err := session.Generate(context.Background(), good); !errors.Is(err, ErrClosed) {
		t.Errorf("Generate on a closed session: %v", err)
	}
	if err := errors.Join(e.Close(), e.Close()); err != nil {
		t.Error(err)
	}
	if _, err := e.Open(); !errors.Is(err, ErrClosed) {
		t.Errorf("Open on a closed engine: %v", err)
	}
	if err := e.Load(context.Background(), s); !errors.Is(err, ErrClosed) {
		t.Errorf("Load on a closed engine: %v", err)
	}
}

// Sessions keep their policy while others are loaded, and the engine keeps no policy that nothing can use.
func TestSessionsPinTheirPolicy(t *testing.T) {
	first := snapshot(t, tiny, 4)
	e, session := open(t, Options{Threads: 2}, first)
	requests := randomRequests(rand.New(rand.NewPCG(4, 1)), 10)
	want := generateAll(t, session, requests)
	model := weak.Make(e.newest().model)
	var loads sync.WaitGroup
	for seed := range uint64(4) {
		loads.Go(func() {
			s := snapshot(t, tiny, 10+seed)
			if err := e.Load(context.Background(), s); err != nil {
				t.Error(err)
			}
			newer, err := e.Open()
			if err != nil {
				t.Error(err)
				return
			}
			defer newer.Close()
			if diff := cmp.Diff(want, generateAll(t, newer, requests)); diff == "" || newer.Policy() == first.Digest() {
				t.Error("a new session has the old policy")
			}
		})
	}
	for range 5 {
		if diff := cmp.Diff(want, generateAll(t, session, requests)); diff != "" {
			t.Errorf("a pinned policy changed (-before +after):\n%s", diff)
		}
	}
	loads.Wait()
	if session.Policy() != first.Digest() {
		t.Error("the session's policy changed")
	}
	session.Close()
	newest, err := e.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer newest.Close()
	generateAll(t, newest, requests[:1]) // the scheduler has seen what was retired before this call
	runtime.GC()
	if model.Value() != nil {
		t.Error("the weights of a policy without sessions are still there")
	}
}

func TestCancellationLeaksNothing(t *testing.T) {
	e, session := open(t, Options{Slots: 3, Threads: 2}, snapshot(t, tiny, 5))
	random := rand.New(rand.NewPCG(5, 1))
	requests := randomRequests(random, 60)
	var all sync.WaitGroup
	for i, r := range requests {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		all.Go(func() {
			_, err := session.Generate(ctx, r)
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("request %d: %v", i, err)
			}
		})
		if random.IntN(2) == 0 {
			all.Go(cancel)
		}
	}
	all.Wait()
	// All slots are free again: this many calls need each of them.
	generateAll(t, session, requests[:9])
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
