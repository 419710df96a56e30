package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/policy/grammar"
	"github.com/lightswarm/lightswarm/policy/transformer"
)

func demand(t testing.TB, d grammar.Demand) *grammar.Grammar {
	t.Helper()
	g, err := grammar.Compile(d)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

var answer = grammar.Demand{Schema: []byte(`{"type":"object","properties":{"answer":{"type":"integer"},"sure":{"type":"boolean"}},"required":["answer","sure"]}`)}

// constrained returns requests of which some have a grammar, and the grammars.
func constrained(t testing.TB, random *rand.Rand, n int) []policy.Request {
	grammars := []*grammar.Grammar{
		nil, demand(t, answer), demand(t, grammar.Demand{Object: true}),
		demand(t, grammar.Demand{Calls: 2, Tools: []grammar.Tool{{Name: "now"}, {Name: "get", Parameters: answer.Schema, Strict: true}}}),
	}
	requests := randomRequests(random, n)
	for i := range requests {
		requests[i].Grammar = grammars[i%len(grammars)]
		requests[i].Stop = []int32{8}
	}
	return requests
}

// A completion within a grammar is the same alone and together with others, and valid if it had the room that it needs.
func TestGenerateWithinAGrammar(t *testing.T) {
	s := snapshot(t, tiny, 1)
	requests := constrained(t, rand.New(rand.NewPCG(4, 1)), 60)
	_, alone := open(t, Options{Slots: 1, Threads: 1, CacheBytes: -1}, s)
	var want []policy.Completion
	valid := 0
	for i, r := range requests {
		c, err := alone.Generate(context.Background(), r)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, c)
		if r.Grammar == nil {
			continue
		}
		room := min(r.MaxTokens, tiny.Context-len(r.Prompt))
		m := grammar.NewAutomaton(r.Grammar, s.Vocabulary()).NewMatcher(room)
		for _, token := range c.Tokens {
			if !m.Advance(token) {
				t.Fatalf("request %d: token %d of %v is not allowed", i, token, c.Tokens)
			}
		}
		if m.Ended() != (c.Finish == policy.FinishStop) || room > 36 && !m.Ended() {
			t.Fatalf("request %d: cut at %d tokens: %q", i, room, s.Tokenizer.Decode(c.Tokens))
		}
		if i%4 == 1 && m.Ended() {
			var said struct {
				Answer *float64
				Sure   *bool
			}
			text := s.Tokenizer.Decode(c.Tokens[:len(c.Tokens)-1])
			if err := json.Unmarshal([]byte(text), &said); err != nil || said.Answer == nil || said.Sure == nil {
				t.Fatalf("request %d: %q: %v", i, text, err)
			}
			valid++
		}
	}
	if valid == 0 {
		t.Error("no completion had the room that it needs")
	}
	_, session := open(t, Options{Slots: 60, Threads: 4}, s)
	for range 2 {
		if diff := cmp.Diff(want, generateAll(t, session, requests)); diff != "" {
			t.Fatalf("completions differ (-alone +together):\n%s", diff)
		}
	}
}

// What is recorded of a completion within a grammar is what scoring and training give, to the bit.
func TestLogProbsWithinAGrammarAgreeEverywhere(t *testing.T) {
	s := snapshot(t, tiny, 2)
	_, session := open(t, Options{Threads: 2}, s)
	requests := constrained(t, rand.New(rand.NewPCG(2, 1)), 40)
	for i := range requests {
		requests[i].Sampling = policy.Sampling{Temperature: float32(i / 4 % 2)}
	}
	var batch []transformer.Sequence
	var want [][]float32
	for i, c := range generateAll(t, session, requests) {
		r := requests[i]
		if r.Grammar == nil {
			continue
		}
		from, room := len(r.Prompt), min(r.MaxTokens, tiny.Context-len(r.Prompt))
		sequence := transformer.Sequence{Tokens: append(slices.Clone(r.Prompt), c.Tokens...)}
		m := grammar.NewAutomaton(r.Grammar, s.Vocabulary()).NewMatcher(room)
		for j, token := range c.Tokens {
			sequence.Train = append(sequence.Train, int32(from+j))
			sequence.Allowed = append(sequence.Allowed, m.Allowed())
			m.Advance(token)
		}
		batch, want = append(batch, sequence), append(want, c.LogProbs)
		scores, err := session.(policy.Constrainer).ScoreWithin(context.Background(), sequence.Tokens, from, r.Grammar, room)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.LogProbs, scores); diff != "" {
			t.Errorf("request %d: scores differ (-generate +score):\n%s", i, diff)
		}
		sequence.Tokens[from] = 0
		if _, err := session.(policy.Constrainer).ScoreWithin(context.Background(), sequence.Tokens, from, r.Grammar, room); !errors.Is(err, ErrRequest) {
			t.Errorf("request %d: a token that is not allowed is scored: %v", i, err)
		}
		sequence.Tokens[from] = c.Tokens[0]
	}
	p, err := transformer.FromTensors(tiny, s.Tensors)
	if err != nil {
		t.Fatal(err)
	}
	trained, err := transformer.NewTrainer(p, transformer.Options{Workers: 2}).Forward(batch)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, trained.LogProbs); diff != "" {
		t.Errorf("log-probs differ (-generate +train):\n%s", diff)
	}
}

func TestAGrammarNeedsItsEnd(t *testing.T) {
	_, session := open(t, Options{}, snapshot(t, tiny, 3))
	r := policy.Request{Prompt: []int32{1}, MaxTokens: 5, Stop: []int32{9}, Grammar: demand(t, answer)}
	if _, err := session.Generate(context.Background(), r); !errors.Is(err, ErrRequest) {
		t.Errorf("the end of the grammar stops nothing: %v", err)
	}
}
