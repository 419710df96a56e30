package pretrain

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/policy/safetensors"
	"github.com/lightswarm/lightswarm/policy/tokenizer"
	"github.com/lightswarm/lightswarm/policy/transformer"
)

// echoes are conversations in which the assistant asks a tool for the user's letter and repeats the result. Every
// third is wrong if wrong is set.
func echoes(wrong bool) iter.Seq2[Demonstration, error] {
	return func(yield func(Demonstration, error) bool) {
		for n := 0; ; n++ {
			letter := string(rune('a' + n*7%26))
			answer := letter
			if wrong && n%3 == 0 {
				answer = "z"
			}
			call := chat.ToolCall{ID: "call_0", Name: "echo", Arguments: letter}
			if !yield(Demonstration{{Tools: []chat.Tool{{Name: "echo"}}, Said: []int{1, 3}, Messages: []chat.Message{
				{Role: chat.User, Content: "Say " + letter},
				{Role: chat.Assistant, ToolCalls: []chat.ToolCall{call}},
				{Role: chat.ToolRole, Content: letter, ToolCallID: "call_0"},
				{Role: chat.Assistant, Content: answer},
			}}}, nil) {
				return
			}
		}
	}
}

// options train a tiny model on echoes.
func options() Options {
	return Options{
		Seed: 1,
		Model: transformer.Config{
			Hidden: 32, Layers: 2, Heads: 1, KVHeads: 1, HeadDim: 32, Intermediate: 64, Vocab: 300, Context: 64,
			RopeTheta: 10000, NormEpsilon: 1e-6, TieEmbeddings: true,
		},
		Demonstrations: echoes(true),
		Right:          echoes(false),
		Measure: func(context.Context, *policy.Snapshot) (Ability, error) {
			return Ability{Sampled: 0.5, Greedy: 0.1, Best: 1}, nil
		},
		Gate:           Gate{MinReachable: 0.9, ReachableProbability: 0.2, MinBest: 0.9, MaxSampled: 1, MaxGreedy: 1},
		TokenizerTexts: 50,
		BatchSize:      16,
		RoundSteps:     150,
		MaxRounds:      6,
		LearningRate:   5e-3,
		Warmup:         10,
		HeldOut:        26,
	}
}

func TestRunTrainsUntilTheGateOpens(t *testing.T) {
	steps, measured := 0, 0
	s, report, err := Run(t.Context(), options(), func(p Progress) {
		if p.Measured != nil {
			measured++
			return
		}
		if steps++; p.Step != steps {
			t.Errorf("progress of step %d after %d steps", p.Step, steps)
		}
	})
	if err != nil {
		t.Fatalf("%v: %+v", err, report)
	}
	if steps != report.Steps || steps != 150*report.Rounds || measured != report.Rounds || report.Conversations != 16*steps {
		t.Errorf("%d steps and %d measurements, report %+v", steps, measured, report)
	}
	if report.Digest != s.Digest() || report.Vocabulary != s.Tokenizer.VocabSize() || report.Reachable < 0.9 || report.Ability.Best != 1 {
		t.Errorf("report %+v", report)
	}
	config, err := transformer.ParseConfig(s.ConfigJSON)
	if err != nil || config.Vocab != s.Tokenizer.VocabSize() || config.Parameters() != report.Parameters {
		t.Errorf("config %+v, %v", config, err)
	}
	for _, tensor := range s.Tensors {
		if tensor.DType != safetensors.BF16 {
			t.Errorf("tensor %s is %v", tensor.Name, tensor.DType)
		}
	}
	// Two of three demonstrations are right, so that is about the mean log-prob of a held-out one.
	probability := rightProbability(t, s)
	if probability < 0.4 || probability > 0.9 {
		t.Errorf("a right demonstration has the mean probability %v", probability)
	}
}

// rightProbability is the mean probability that a policy writes a right echo.
func rightProbability(t *testing.T, s *policy.Snapshot) float64 {
	t.Helper()
	config, err := transformer.ParseConfig(s.ConfigJSON)
	if err != nil {
		t.Fatal(err)
	}
	weights, err := transformer.FromTensors(config, s.Tensors)
	if err != nil {
		t.Fatal(err)
	}
	template, err := chat.NewTemplate(s.Template, s.Tokenizer)
	if err != nil {
		t.Fatal(err)
	}
	var batch []transformer.Sequence
	for d := range echoes(false) {
		sequence, _, err := encode(template, d[0])
		if err != nil {
			t.Fatal(err)
		}
		if batch = append(batch, sequence); len(batch) == 26 {
			break
		}
	}
	out, err := transformer.NewTrainer(weights, transformer.Options{}).Forward(batch)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, logProbs := range out.LogProbs {
		total := 0.0
		for _, l := range logProbs {
			total += float64(l)
		}
		sum += math.Exp(total)
	}
	return sum / float64(len(batch))
}

func TestRunIsAFunctionOfItsOptions(t *testing.T) {
	digest := func(seed uint64, workers int) policy.Digest {
		o := options()
		o.Seed, o.Workers, o.RoundSteps, o.Gate = seed, workers, 12, Gate{MaxSampled: 1, MaxGreedy: 1}
		s, _, err := Run(t.Context(), o, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s.Digest()
	}
	want := digest(1, 1)
	if got := digest(1, 3); got != want {
		t.Errorf("three workers give %s, one gives %s", got, want)
	}
	if digest(2, 1) == want {
		t.Error("another seed gives the same policy")
	}
}

func TestRunReportsWhatIsMissing(t *testing.T) {
	for want, g := range map[string]Gate{
		"of the right demonstrations are within reach":  {MinReachable: 1, ReachableProbability: 0.999, MaxSampled: 1, MaxGreedy: 1},
		"of the tasks are solved at least once":         {MinBest: 1.1, MaxSampled: 1, MaxGreedy: 1},
		"sampled success is 0.500, want 0.000 to 0.400": {MaxSampled: 0.4, MaxGreedy: 1},
		"greedy success is 0.100, want at most 0.050":   {MaxSampled: 1, MaxGreedy: 0.05},
	} {
		o := options()
		o.Gate, o.RoundSteps, o.MaxRounds = g, 2, 2
		s, report, err := Run(t.Context(), o, nil)
		if !errors.Is(err, ErrGate) || s != nil || report.Rounds != 2 {
			t.Errorf("Run = %v, %+v, %v", s, report, err)
		}
		if text := fmt.Sprint(err); !strings.Contains(text, want) {
			t.Errorf("error %q lacks %q", text, want)
		}
	}
}

// Rounds that are wanted are made, though the policy could do enough before; more than may be made are not.
func TestRunMakesTheRoundsThatAreWanted(t *testing.T) {
	for wanted, want := range map[int]int{0: 1, 1: 1, 3: 3, 9: 4} {
		o := options()
		o.Gate, o.RoundSteps, o.MinRounds, o.MaxRounds = Gate{MaxSampled: 1, MaxGreedy: 1}, 2, wanted, 4
		if s, report, err := Run(t.Context(), o, nil); err != nil || s == nil || report.Rounds != want {
			t.Errorf("of %d wanted rounds: %+v, %v", wanted, report, err)
		}
	}
}

func TestRunEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := Run(ctx, options(), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Run after cancel = %v", err)
	}
	broken := errors.New("engine is gone")
	o := options()
	o.RoundSteps, o.Gate.MinReachable = 1, 0
	o.Measure = func(context.Context, *policy.Snapshot) (Ability, error) { return Ability{}, broken }
	if _, _, err := Run(t.Context(), o, nil); !errors.Is(err, broken) {
		t.Errorf("Run = %v", err)
	}
	o = options()
	o.Demonstrations = func(yield func(Demonstration, error) bool) {
		yield(Demonstration{{Messages: []chat.Message{{Role: chat.User, Content: "?"}}}}, nil)
	}
	if _, _, err := Run(t.Context(), o, nil); err == nil {
		t.Error("a demonstration without an assistant's message is accepted")
	}
	o.Demonstrations = func(yield func(Demonstration, error) bool) { yield(nil, nil) }
	if _, _, err := Run(t.Context(), o, nil); err == nil {
		t.Error("a demonstration without a conversation is accepted")
	}
	o.Demonstrations = func(yield func(Demonstration, error) bool) { yield(Demonstration{}, broken) }
	if _, _, err := Run(t.Context(), o, nil); !errors.Is(err, broken) {
		t.Errorf("Run of broken demonstrations = %v", err)
	}
}

func TestRunRefusesWhatNoRolloutCouldDo(t *testing.T) {
	numbers := ""
	for n := range 99 {
		numbers += fmt.Sprint(n * n)
	}
	long := 0
	some := func(yield func(Demonstration, error) bool) {
		for d := range echoes(false) {
			if long++; long%5 == 0 {
				d = Demonstration{d[0], {Role: "critic", Said: []int{1}, Messages: []chat.Message{
					{Role: chat.User, Content: numbers}, {Role: chat.Assistant, Content: "so so"},
				}}}
			}
			if !yield(d, nil) {
				return
			}
		}
	}
	for want, change := range map[string]func(*Options){
		"26 of 26 demonstrations are too long for rollouts: the longest completion has 5 tokens, and rollouts allow 2": func(o *Options) { o.MaxCompletion = 2 },
		"26 of 26 demonstrations are too long for rollouts: the longest conversation has":                              func(o *Options) { o.Model.Context = 8 },
		"10 of 50 demonstrations are too long for rollouts: the longest conversation has":                              func(o *Options) { o.Demonstrations = some },
		"tokens, as critic, and the model holds 64":                                                                    func(o *Options) { o.Demonstrations = some },
	} {
		o := options()
		change(&o)
		if _, _, err := Run(t.Context(), o, nil); !errors.Is(err, ErrTooLong) || !strings.Contains(err.Error(), want) {
			t.Errorf("Run = %v, want %q", err, want)
		}
	}
}

// Of an agent with several roles the policy learns what it says in those that are taught; the tokenizer reads all.
func TestOnlyTaughtRolesAreLearnt(t *testing.T) {
	with := func(critic string, untaught bool) iter.Seq2[Demonstration, error] {
		return func(yield func(Demonstration, error) bool) {
			for d := range echoes(false) {
				d = append(d, Conversation{Role: "critic", Untaught: untaught, Said: []int{1}, Messages: []chat.Message{
					{Role: chat.User, Content: "Is it good?"}, {Role: chat.Assistant, Content: critic},
				}})
				if !yield(d, nil) {
					return
				}
			}
		}
	}
	run := func(shown iter.Seq2[Demonstration, error]) (Report, error) {
		o := options()
		o.Demonstrations, o.Right, o.RoundSteps, o.MaxRounds, o.Gate = shown, shown, 5, 1, Gate{MaxSampled: 1, MaxGreedy: 1}
		_, report, err := Run(t.Context(), o, nil)
		return report, err
	}
	alone, err := run(echoes(false))
	if err != nil {
		t.Fatal(err)
	}
	untaught, err := run(with("yes yes yes", true))
	if err != nil || untaught.Trained != alone.Trained || untaught.Conversations != 2*alone.Conversations || untaught.Vocabulary == alone.Vocabulary {
		t.Errorf("%+v, %v, alone %+v", untaught, err, alone)
	}
	taught, err := run(with("yes yes yes", false))
	if err != nil || taught.Trained <= alone.Trained || taught.Vocabulary != untaught.Vocabulary {
		t.Errorf("%+v, %v, alone %+v", taught, err, alone)
	}
	nothing := func(yield func(Demonstration, error) bool) {
		for d := range with("yes", true) {
			if !yield(d[1:], nil) {
				return
			}
		}
	}
	if _, err := run(nothing); err == nil || !strings.Contains(err.Error(), "no call in them is of a role that is taught") {
		t.Errorf("%v", err)
	}
}

// A role that is seldom called is learnt all the same, though it is in few batches.
func TestRareRolesAreLearnt(t *testing.T) {
	rare := func(yield func(Demonstration, error) bool) {
		n := 0
		for d := range echoes(false) {
			d[0].Untaught = true
			if n++; n%40 == 0 {
				d = append(d, Conversation{Role: "critic", Said: []int{1}, Messages: []chat.Message{
					{Role: chat.User, Content: "Is it good?"}, {Role: chat.Assistant, Content: "yes"},
				}})
			}
			if !yield(d, nil) {
				return
			}
		}
	}
	o := options()
	o.Demonstrations, o.Right, o.RoundSteps, o.MaxRounds, o.Gate = rare, rare, 5, 1, Gate{MaxSampled: 1, MaxGreedy: 1}
	if _, report, err := Run(t.Context(), o, nil); err != nil || report.Steps != 5 || report.Trained == 0 {
		t.Errorf("%+v, %v", report, err)
	}
}

// While too little is within reach no rollout is played.
func TestRolloutsAreMeasuredOnceItIsOfUse(t *testing.T) {
	o := options()
	o.RoundSteps, o.MaxRounds, o.Gate = 2, 2, Gate{MinReachable: 1, ReachableProbability: 0.999, MaxSampled: 1, MaxGreedy: 1}
	o.Measure = func(context.Context, *policy.Snapshot) (Ability, error) {
		t.Error("it was measured")
		return Ability{}, nil
	}
	if _, report, err := Run(t.Context(), o, nil); !errors.Is(err, ErrGate) || report.Measured {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestEncodeTrainsTheAssistantsTokens(t *testing.T) {
	tok, err := tokenizer.Train(func(func(string) bool) {}, 265, chat.Specials())
	if err != nil {
		t.Fatal(err)
	}
	template, err := chat.NewTemplate(chat.Lightswarm1, tok)
	if err != nil {
		t.Fatal(err)
	}
	for d := range echoes(false) {
		s, _, err := encode(template, d[0])
		if err != nil {
			t.Fatal(err)
		}
		var trained []int32
		for _, position := range s.Train {
			trained = append(trained, s.Tokens[position])
		}
		if diff := cmp.Diff("<|call|>echo<|args|>a<|end|>a<|end|>", tok.Decode(trained)); diff != "" {
			t.Errorf("trained tokens (-want +got):\n%s", diff)
		}
		want := "<|tools|>echo()<|user|>Say a<|assistant|><|call|>echo<|args|>a<|end|><|tool|>a<|assistant|>a<|end|>"
		if diff := cmp.Diff(want, tok.Decode(s.Tokens)); diff != "" {
			t.Errorf("tokens (-want +got):\n%s", diff)
		}
		break
	}
}
