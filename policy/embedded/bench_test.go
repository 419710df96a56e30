package embedded

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/policy/grammar"
	"github.com/lightswarm/lightswarm/policy/transformer"
)

// BenchmarkGenerate runs groups of 8 calls on one prompt of 60 tokens with 40 tokens each, through sessions, on one
// thread.
func BenchmarkGenerate(b *testing.B) {
	small := transformer.Config{
		Hidden: 128, Layers: 4, Heads: 4, KVHeads: 4, HeadDim: 32, Intermediate: 352, Vocab: 265, Context: 256,
		RopeTheta: 10000, NormEpsilon: 1e-6, TieEmbeddings: true,
	}
	// A string that takes all the room there is: each mask depends on what is left of it, which is the slowest case.
	long := demand(b, grammar.Demand{Schema: []byte(`{"type":"string","minLength":39}`)})
	for _, size := range []struct {
		name    string
		groups  int
		grammar *grammar.Grammar
	}{{"1call", 0, nil}, {"8groups", 8, nil}, {"8groups within a grammar", 8, long}} {
		b.Run(size.name, func(b *testing.B) {
			_, session := open(b, Options{Threads: 1}, snapshot(b, small, 1))
			members := 8
			if size.groups == 0 {
				members = 1
			}
			round := byte(0)
			generated := 0
			b.ReportAllocs()
			for b.Loop() {
				round++
				var all sync.WaitGroup
				for g := range max(size.groups, 1) {
					for m := range members {
						all.Go(func() {
							r := policy.Request{Prompt: prompt(60, int32(g)), MaxTokens: 40, Sampling: policy.Sampling{Temperature: 1}, Key: policy.SampleKey{byte(g), byte(m), round}}
							r.Prompt[1] = int32(round) // a new task each round
							if size.grammar != nil {
								r.Grammar, r.Stop = size.grammar, []int32{8}
							}
							if _, err := session.Generate(context.Background(), r); err != nil {
								b.Error(err)
							}
						})
						generated += 40
					}
				}
				all.Wait()
			}
			b.ReportMetric(float64(generated)/b.Elapsed().Seconds(), "tok/s")
		})
	}
}

// BenchmarkPrefixes looks up a prompt of 60 tokens among many sequences of a policy that never changes, all of which begin
// with the same 30 tokens, and keeps what was found.
func BenchmarkPrefixes(b *testing.B) {
	model, err := newModel(snapshot(b, tiny, 6))
	if err != nil {
		b.Fatal(err)
	}
	r := &resident{model: model}
	decoder := transformer.NewDecoder(1)
	number := func(i int) []int32 {
		tokens := prompt(60, 0)
		for at := 30; at < 40; at++ {
			tokens[at] = int32(i & 1)
			i >>= 1
		}
		for at := 40; at < 60; at++ {
			tokens[at] = int32(i & 15)
			i >>= 4
		}
		return tokens
	}
	for _, n := range []int{10, 1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			p := prefixes{budget: 1 << 40}
			for i := range n {
				cache := r.model.NewCache()
				decoder.Step(r.model, []transformer.Segment{{Cache: cache, Tokens: number(i)}}, nil)
				p.keep(sequence{resident: r, tokens: number(i), cache: cache})
			}
			i := 0
			for b.Loop() {
				wanted := number(i % n)
				i++
				cache := p.start(r, wanted, nil)
				if cache.Len() != len(wanted) {
					b.Fatalf("found %d tokens of %d", cache.Len(), len(wanted))
				}
				p.keep(sequence{resident: r, tokens: wanted, cache: cache})
			}
		})
	}
}
