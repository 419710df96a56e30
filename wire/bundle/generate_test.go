package bundle

import (
	"crypto/ed25519"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/lightswarm/lightswarm/wire"
)

// generator makes groups that look like those of a small policy solving word problems with one tool: a call for the
// tool, then an answer. Like an exact engine, it gives equal prefixes equal log-probs.
type generator struct {
	rng *rand.Rand
	// confidence is how often a token is nearly certain, 0 to 1.
	confidence float64
}

func newGenerator(seed uint64, confidence float64) *generator {
	return &generator{rng: rand.New(rand.NewPCG(seed, 1)), confidence: confidence}
}

// constrain gives the first calls of a bundle's rollouts one of two grammars, which are opaque here.
func constrain(b *Bundle) *Bundle {
	for i := range b.Rollouts {
		if calls := b.Rollouts[i].Calls; len(calls) > 0 {
			calls[0].Grammar = []string{"\x01 a grammar", "\x01 another \xff"}[i%2]
		}
	}
	return b
}

// ask has the calls of a bundle but for the first rollout's say what was asked of sampling.
func ask(b *Bundle) *Bundle {
	for i := range b.Rollouts {
		for j := range b.Rollouts[i].Calls {
			b.Rollouts[i].Calls[j].Asked = []string{"", `{"temperature":0.2}`, `{"seed":7,"temperature":1}`}[min(i, 1+j)]
		}
	}
	return b
}

// ids maps text to tokens: digits, punctuation and words, numbered by a hash.
func ids(text string) []int32 {
	var out []int32
	for _, word := range strings.Fields(text) {
		h := fnv.New32a()
		h.Write([]byte(word))
		out = append(out, int32(9+h.Sum32()%500))
	}
	return out
}

func digits(n int) string {
	return strings.Join(strings.Split(fmt.Sprint(n), ""), " ")
}

// sample chooses among options of a context, each option's tokens with log-probs that depend on the context alone.
func (g *generator) sample(context string, options ...string) (tokens []int32, logProbs []float32) {
	choice := options[0]
	if g.rng.Float64() > g.confidence {
		choice = options[g.rng.IntN(len(options))]
	}
	tokens = ids(choice)
	h := fnv.New64a()
	h.Write([]byte(context))
	for _, t := range tokens {
		fmt.Fprint(h, t, " ")
		r := rand.New(rand.NewPCG(h.Sum64(), 2))
		p := -math.Log(1 - r.Float64()*0.9)
		if r.Float64() < 0.7 {
			p *= math.Exp(-6 * r.Float64())
		}
		logProbs = append(logProbs, float32(-math.Round(p*gridScale/4)/gridScale))
	}
	return tokens, logProbs
}

func (g *generator) group(members int) *Bundle {
	public := func(seed byte) ed25519.PublicKey {
		return ed25519.NewKeyFromSeed([]byte(strings.Repeat(string(rune(seed)), 32))).Public().(ed25519.PublicKey)
	}
	b := &Bundle{
		Network:             wire.SumCID([]byte("network")),
		Purpose:             wire.PurposeTrain,
		Environment:         wire.SumCID([]byte("calc")),
		Split:               wire.SplitTrain,
		PolicyVersion:       uint64(g.rng.IntN(300)),
		PolicyDigest:        [32]byte(wire.SumCID(fmt.Append(nil, g.rng.Uint64())).Bytes()[4:]),
		Peer:                wire.NewPeerID(public('a' + byte(g.rng.IntN(8)))),
		Counter:             uint64(g.rng.IntN(1000)),
		Sampling:            wire.Sampling{Temperature: 1},
		MaxCompletionTokens: 48,
		Engine:              EngineExact,
	}
	pick := func(words ...string) string { return words[g.rng.IntN(len(words))] }
	x, y, z := 10+g.rng.IntN(90), 2+g.rng.IntN(48), 2+g.rng.IntN(8)
	question := fmt.Sprintf("%s has %s %s , %s %s and buys %s . How many %s ?",
		pick("Ann", "Bob", "Eve", "Max", "Sue", "Tom"), digits(x), pick("pens", "cups", "hats", "eggs", "toys", "nuts"),
		pick("sells", "buys"), digits(y), digits(z), pick("now", "left", "in all"))
	system := "<system> <tools> calculator : eval uate an expression . expression : text </tools> Use it . <user> "
	prompt := ids(system + question + " <assistant>")
	task := g.rng.Uint64N(1 << 20)
	expressions := []string{
		fmt.Sprintf("%s - %s + %s", digits(x), digits(y), digits(z)),
		fmt.Sprintf("%s + %s + %s", digits(x), digits(y), digits(z)),
		fmt.Sprintf("%s - %s - %s", digits(x), digits(y), digits(z)),
		fmt.Sprintf("%s - %s * %s", digits(x), digits(z), digits(y)),
		fmt.Sprintf("%s + %s", digits(y), digits(z)),
	}
	var calls []string
	for _, e := range expressions {
		calls = append(calls, `<call> calculator <args> {"expression": " `+e+` "} <end>`)
	}
	for m := range members {
		first := Call{Agent: "solver", Prompt: prompt, Finish: 1}
		first.Completion, first.LogProbs = g.sample(fmt.Sprint(b.PolicyDigest, prompt), calls...)
		result := x - y + z + int(uint32(first.Completion[7])%5)*g.rng.IntN(2)
		second := Call{Agent: "solver", Finish: 1}
		second.Prompt = append(append([]int32{}, first.Prompt...), first.Completion...)
		second.Prompt = append(second.Prompt, ids("<tool> "+digits(result)+" <assistant>")...)
		second.Completion, second.LogProbs = g.sample(fmt.Sprint(b.PolicyDigest, second.Prompt),
			digits(result)+" <end>", digits(result+1)+" <end>", digits(x)+" <end>")
		correct := float32(g.rng.IntN(2))
		b.Rollouts = append(b.Rollouts, Rollout{
			Member: uint32(m), Task: task, Outcome: OutcomeScored, Reward: correct,
			Components: []Component{{"correct", correct}, {"format", 1}},
			Calls:      []Call{first, second},
		})
	}
	return b
}
