package bundle

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/lightswarm/lightswarm/wire"
)

var update = flag.Bool("update", false, "write golden files anew")

// sameBits compares float32 by their bits and takes empty slices for nil.
var sameBits = cmp.Options{
	cmp.Comparer(func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }),
	cmpopts.EquateEmpty(),
}

// anyBundle draws valid bundles with much repetition, as real ones have, in every form.
func anyBundle() *rapid.Generator[*Bundle] {
	return rapid.Custom(func(t *rapid.T) *Bundle {
		b := newGenerator(rapid.Uint64().Draw(t, "header"), 0.5).group(2)
		b.Split = rapid.SampledFrom([]string{"train", "validation", "the third"}).Draw(t, "split")
		b.Purpose = rapid.SampledFrom([]wire.Purpose{wire.PurposeTrain, wire.PurposeEvaluateSampled, wire.PurposeEvaluateGreedy}).Draw(t, "purpose")
		if b.Purpose != wire.PurposeTrain {
			b.Peer = ""
		}
		b.PolicyVersion, b.Counter = rapid.Uint64().Draw(t, "version"), rapid.Uint64().Draw(t, "counter")
		b.Sampling = wire.Sampling{
			Temperature: rapid.Float32Range(0, wire.MaxTemperature).Draw(t, "temperature"),
			TopK:        rapid.Uint32Range(0, math.MaxInt32).Draw(t, "top_k"),
			TopP:        rapid.Float32Range(0, 1).Draw(t, "top_p"),
		}
		b.Engine = rapid.SampledFrom([]EngineClass{EngineExact, EngineApproximate}).Draw(t, "engine")
		logProb := rapid.SampledFrom([]*rapid.Generator[float32]{
			rapid.Map(rapid.Int32Range(-1<<24+1, 0), func(q int32) float32 { return float32(q) / gridScale }),
			rapid.SampledFrom([]float32{0, float32(math.Copysign(0, -1)), -1.0 / gridScale, -255.99998}),
			rapid.Float32Range(-30, 0),
			rapid.Float32(),
		}).Draw(t, "log-prob form")
		b.Rollouts = rapid.SliceOfN(anyRollout(logProb), 1, 6).Draw(t, "rollouts")
		return b
	})
}

func anyRollout(logProb *rapid.Generator[float32]) *rapid.Generator[Rollout] {
	return rapid.Custom(func(t *rapid.T) Rollout {
		r := Rollout{
			Member:  rapid.Uint32Range(0, wire.MaxRolloutsPerBundle-1).Draw(t, "member"),
			Task:    rapid.Uint64Range(0, wire.MaxSplitTasks-1).Draw(t, "task"),
			Outcome: OutcomeKind(rapid.IntRange(1, 5).Draw(t, "outcome")),
			Calls:   rapid.SliceOfN(anyCall(logProb), 0, 4).Draw(t, "calls"),
		}
		if r.Outcome.Trainable() {
			r.Reward = rapid.Float32().Draw(t, "reward")
		}
		for _, name := range []string{"a", "correct", "format", "é"} {
			if rapid.Bool().Draw(t, name) {
				r.Components = append(r.Components, Component{name, rapid.Float32().Draw(t, "component")})
			}
		}
		return r
	})
}

func anyCall(logProb *rapid.Generator[float32]) *rapid.Generator[Call] {
	token := rapid.OneOf(rapid.Int32Range(0, 1), rapid.Int32Range(0, math.MaxInt32))
	return rapid.Custom(func(t *rapid.T) Call {
		c := Call{
			Agent:      rapid.SampledFrom([]string{"solver", "critic"}).Draw(t, "agent"),
			Prompt:     rapid.SliceOfN(token, 1, 8).Draw(t, "prompt"),
			Completion: rapid.SliceOfN(token, 0, 8).Draw(t, "completion"),
			Finish:     rapid.Uint8().Draw(t, "finish"),
			Grammar:    rapid.SampledFrom([]string{"", "", "\x01", "\x01\x00\xff"}).Draw(t, "grammar"),
		}
		c.LogProbs = rapid.SliceOfN(logProb, len(c.Completion), len(c.Completion)).Draw(t, "log-probs")
		if rapid.Bool().Draw(t, "rewarded") {
			v := rapid.Float32().Draw(t, "call reward")
			c.Reward = &v
		}
		c.Asked = rapid.SampledFrom([]string{"", "", `{"temperature":0.2}`, `{"n":2,"seed":7}`}).Draw(t, "asked")
		return c
	})
}

func TestDecodeUndoesEncode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := anyBundle().Draw(t, "bundle")
		// Make calls continue and copy others, as agents' do.
		for i := range want.Rollouts {
			calls := want.Rollouts[i].Calls
			for j := range calls {
				switch rapid.IntRange(0, 3).Draw(t, "relation") {
				case 0:
					if j > 0 {
						calls[j].Prompt = slices.Concat(calls[j-1].Prompt, calls[j-1].Completion, calls[j].Prompt)
					}
				case 1:
					if i > 0 && j < len(want.Rollouts[i-1].Calls) {
						calls[j] = want.Rollouts[i-1].Calls[j]
					}
				}
			}
		}
		data, err := Encode(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode(data, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got, sameBits); d != "" {
			t.Fatal(d)
		}
		if again, err := Encode(got); err != nil || !bytes.Equal(data, again) {
			t.Fatalf("encoded again it has other bytes (%v)", err)
		}
	})
}

// TestEncodeConcurrently makes sure that nothing of one bundle leaks into another through the shared compressor.
func TestEncodeConcurrently(t *testing.T) {
	b := newGenerator(1, 0.5).group(8)
	want, err := Encode(b)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			g := newGenerator(uint64(i), 0.3)
			for range 20 {
				if _, err := Encode(g.group(4)); err != nil {
					t.Error(err)
				}
				if got, err := Encode(b); err != nil || !bytes.Equal(got, want) {
					t.Errorf("other bytes beside other bundles (%v)", err)
				}
			}
		})
	}
	wg.Wait()
}

func TestReaderStreams(t *testing.T) {
	want := newGenerator(2, 0.5).group(8)
	data, err := Encode(want)
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewReader(bytes.NewReader(data), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Len() != 8 {
		t.Fatalf("it has %d rollouts", r.Len())
	}
	h := r.Header()
	for i := range want.Rollouts {
		rollout, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(&want.Rollouts[i], rollout, sameBits); d != "" {
			t.Fatal(d)
		}
	}
	h.Rollouts = want.Rollouts
	if d := cmp.Diff(want, &h, sameBits); d != "" {
		t.Fatal(d)
	}
}

// TestGroupIsSmall holds the codec to its size on generated groups; scripts/checks/bundle-size does on recorded ones.
func TestGroupIsSmall(t *testing.T) {
	raw, size := 0, 0
	for seed := range uint64(20) {
		b := newGenerator(seed, 0.5).group(8)
		data, err := Encode(b)
		if err != nil {
			t.Fatal(err)
		}
		size += len(data)
		for _, r := range b.Rollouts {
			for _, c := range r.Calls {
				raw += 4*len(c.Prompt) + 8*len(c.Completion)
			}
		}
	}
	if size*8 > raw {
		t.Errorf("bundles take %d bytes of %d; they should take an eighth", size, raw)
	}
}

// TestGolden makes sure that what an earlier build wrote is still read.
func TestGolden(t *testing.T) {
	g := newGenerator(3, 0.5)
	exact, inexact, evaluation := g.group(8), g.group(3), g.group(4)
	inexact.Engine = EngineApproximate
	inexact.Rollouts[0].Calls[0].LogProbs[0] = -0.1
	reward := float32(0.25)
	inexact.Rollouts[1].Calls[1].Reward = &reward
	inexact.Rollouts[2] = Rollout{Member: 2, Task: inexact.Rollouts[0].Task, Outcome: OutcomeTimeout}
	grammars := constrain(newGenerator(4, 0.6).group(4))
	evaluation.Purpose, evaluation.Peer, evaluation.Split = wire.PurposeEvaluateGreedy, "", wire.SplitValidation
	asked, both := ask(newGenerator(5, 0.6).group(4)), ask(constrain(newGenerator(6, 0.6).group(4)))
	versions := map[string][2]byte{"grammars": {2, 0}, "asked": {1, 1}, "grammars-asked": {2, 1}}
	for name, b := range map[string]*Bundle{
		"exact": exact, "inexact": inexact, "evaluation": evaluation, "grammars": grammars, "asked": asked, "grammars-asked": both,
	} {
		t.Run(name, func(t *testing.T) {
			file := "testdata/golden/" + name + ".bundle"
			version, special := versions[name]
			if !special {
				version = [2]byte{1, 0}
			}
			if encoded, err := Encode(b); err != nil || [2]byte(encoded[len(magic):]) != version {
				t.Fatalf("it is written for other readers (%v)", err)
			}
			if *update {
				data, err := Encode(b)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, data, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Decode(data, Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(b, got, sameBits); d != "" {
				t.Fatal(d)
			}
		})
	}
}

func TestValidateNamesTheField(t *testing.T) {
	nan := float32(math.NaN())
	tests := []struct {
		field  string
		damage func(*Bundle)
	}{
		{"network", func(b *Bundle) { b.Network = wire.CID{} }},
		{"purpose", func(b *Bundle) { b.Purpose = 4 }},
		{"environment", func(b *Bundle) { b.Environment = wire.CID{} }},
		{"split", func(b *Bundle) { b.Split = "a\nb" }},
		{"policy_digest", func(b *Bundle) { b.PolicyDigest = [32]byte{} }},
		{"peer", func(b *Bundle) { b.Peer = "" }},
		{"peer", func(b *Bundle) { b.Peer = "not a peer" }},
		{"peer", func(b *Bundle) { b.Purpose = wire.PurposeEvaluateGreedy }},
		{"temperature", func(b *Bundle) { b.Sampling.Temperature = nan }},
		{"max_completion_tokens", func(b *Bundle) { b.MaxCompletionTokens = 0 }},
		{"engine", func(b *Bundle) { b.Engine = 0 }},
		{"rollouts", func(b *Bundle) { b.Rollouts = nil }},
		{"rollouts", func(b *Bundle) { b.Rollouts = make([]Rollout, wire.MaxRolloutsPerBundle+1) }},
		{"rollouts[1].member", func(b *Bundle) { b.Rollouts[1].Member = wire.MaxRolloutsPerBundle }},
		{"rollouts[1].task", func(b *Bundle) { b.Rollouts[1].Task = wire.MaxSplitTasks }},
		{"rollouts[1].outcome", func(b *Bundle) { b.Rollouts[1].Outcome = 0 }},
		{"rollouts[1].reward", func(b *Bundle) { b.Rollouts[1].Reward = nan }},
		{"rollouts[1].reward", func(b *Bundle) { b.Rollouts[1].Outcome, b.Rollouts[1].Reward = OutcomeTimeout, 1 }},
		{"rollouts[1].components", func(b *Bundle) { b.Rollouts[1].Components = []Component{{"b", 0}, {"a", 0}} }},
		{"rollouts[1].components", func(b *Bundle) { b.Rollouts[1].Components = []Component{{"a", nan}} }},
		{"rollouts[1].components", func(b *Bundle) { b.Rollouts[1].Components = make([]Component, wire.MaxComponents+1) }},
		{"rollouts[1].calls", func(b *Bundle) { b.Rollouts[1].Calls = make([]Call, wire.MaxCallsPerRollout+1) }},
		{"rollouts[0].calls[1]", func(b *Bundle) { b.Rollouts[0].Calls[1].Agent = "" }},
		{"rollouts[0].calls[1]", func(b *Bundle) { b.Rollouts[0].Calls[1].Prompt = nil }},
		{"rollouts[0].calls[1]", func(b *Bundle) { b.Rollouts[0].Calls[1].Prompt[0] = -1 }},
		{"rollouts[0].calls[1]", func(b *Bundle) { b.Rollouts[0].Calls[1].Completion[0] = -1 }},
		{"rollouts[0].calls[1]", func(b *Bundle) { b.Rollouts[0].Calls[1].LogProbs[0] = nan }},
		{"rollouts[0].calls[1]", func(b *Bundle) { b.Rollouts[0].Calls[1].LogProbs[0] = float32(math.Inf(-1)) }},
		{"rollouts[0].calls[1]", func(b *Bundle) { b.Rollouts[0].Calls[1].LogProbs = nil }},
		{"rollouts[0].calls[1]", func(b *Bundle) { b.Rollouts[0].Calls[1].Reward = &nan }},
		{"rollouts[0].calls[1]", func(b *Bundle) { b.Rollouts[0].Calls[1].Asked = "{\n}" }},
		{"rollouts[0].calls[1]", func(b *Bundle) { b.Rollouts[0].Calls[1].Asked = strings.Repeat("x", wire.MaxAskedBytes+1) }},
		{"rollouts", func(b *Bundle) {
			for i := range b.Rollouts[:2] {
				b.Rollouts[i].Calls = make([]Call, wire.MaxCallsPerRollout)
				for j := range b.Rollouts[i].Calls {
					b.Rollouts[i].Calls[j] = Call{Agent: fmt.Sprint(i, j), Prompt: []int32{1}}
				}
			}
		}},
		{"rollouts", func(b *Bundle) {
			long := make([]int32, wire.MaxTokensPerCall)
			b.Rollouts[0].Calls = make([]Call, wire.MaxCallsPerRollout)
			for j := range b.Rollouts[0].Calls {
				b.Rollouts[0].Calls[j] = Call{Agent: "a", Prompt: long}
			}
			for i := range b.Rollouts {
				b.Rollouts[i].Calls = b.Rollouts[0].Calls
			}
		}},
	}
	for i, test := range tests {
		t.Run(fmt.Sprint(i, " ", test.field), func(t *testing.T) {
			b := newGenerator(4, 0).group(4)
			test.damage(b)
			_, err := Encode(b)
			var invalid *wire.ValidationError
			if !errors.As(err, &invalid) || invalid.Field != test.field || !errors.Is(err, wire.ErrMalformed) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}
