package warmstart_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/policy/base"
	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/policy/pretrain"
	"github.com/lightswarm/lightswarm/rollout"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/calc"
	"github.com/lightswarm/lightswarm/rollout/warmstart"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

// The policy that policy/base carries is the one that the recipe made.
func TestBasePolicyIsTheRecipes(t *testing.T) {
	s, err := base.Load()
	if err != nil {
		t.Fatal(err)
	}
	const made = "717a5067b07895a949daa885a164c6e5377ff1d2debd01ea43c8d0cc9c43a1b1"
	if got := s.Digest().String(); got != made {
		t.Errorf("policy/base carries %s, not %s", got, made)
	}
}

func recipe(t *testing.T, o warmstart.Options) pretrain.Options {
	t.Helper()
	r, err := warmstart.Recipe(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// What the built-in policy is learnt from, and the first steps, are those that it was made with, to the bit.
func TestBaseRecipeIsUnchanged(t *testing.T) {
	o := recipe(t, warmstart.Options{Environment: calc.New(), Seed: 1, Workers: 2})
	for name, c := range map[string]struct {
		shown iter.Seq2[pretrain.Demonstration, error]
		want  string
	}{
		"shown": {o.Demonstrations, "573def4d7f2476c77335dfe9d9ac13ddee7b7493160fb353afa67217f7e473ad"},
		"right": {o.Right, "686c8d37dc1e5631f33e454f1b1d3e81c19e1c13ed14d521412e14958f40449f"},
	} {
		h := sha256.New()
		for _, d := range first(t, c.shown, 3000) {
			fmt.Fprintf(h, "%q %q\n", d[0].Messages, d[0].Tools)
		}
		if got := fmt.Sprintf("%x", h.Sum(nil)); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	settings := fmt.Sprint(o.Model, o.Gate, o.TokenizerTexts, o.BatchSize, o.RoundSteps, o.MaxRounds, o.LearningRate, o.Warmup, o.HeldOut)
	if want := "{64 3 2 2 32 192 512 256 10000 1e-06 true} {0.97 0.15 0.98 0.25 0.4 0.05} 4000 64 1400 4 0.0015 40 512"; settings != want {
		t.Errorf("settings %s, want %s", settings, want)
	}
	o.RoundSteps, o.MaxRounds, o.TokenizerTexts, o.HeldOut, o.BatchSize = 2, 1, 200, 16, 8
	o.Gate = pretrain.Gate{MaxSampled: 1, MaxGreedy: 1}
	o.Measure = func(context.Context, *policy.Snapshot) (pretrain.Ability, error) { return pretrain.Ability{}, nil }
	s, _, err := pretrain.Run(t.Context(), o, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := s.Digest().String(), "e2f4d1198a43489d68cd12456e93f3b2e8cfda77d0c3e6a0f7064ccc9168cc7b"; got != want {
		t.Errorf("two steps make %s, want %s", got, want)
	}
}

// first takes the first demonstrations of a sequence.
func first(t *testing.T, shown iter.Seq2[pretrain.Demonstration, error], n int) (list []pretrain.Demonstration) {
	t.Helper()
	for d, err := range shown {
		if err != nil {
			t.Fatal(err)
		}
		if list = append(list, d); len(list) == n {
			break
		}
	}
	return list
}

// door is an environment that is not built in: it opens by one knock for each of the task's number, and then the word.
type door struct {
	habits  []string
	unsound bool
}

func (door) Manifest() wire.EnvironmentManifest {
	return wire.EnvironmentManifest{
		Name: "door", Version: "1.0.0", Kind: "test", RewardMax: 2, Agents: []string{"guest"},
		Splits: []wire.Split{{Name: wire.SplitTrain, Tasks: 3}, {Name: wire.SplitValidation, Tasks: 3}},
	}
}

func (d door) Reset(_ context.Context, _ string, index uint64) (env.Episode, error) {
	return &visit{door: d, want: int(index)}, nil
}

type visit struct {
	door
	want, knocks int
}

func (v *visit) Messages() []chat.Message {
	return []chat.Message{{Role: chat.User, Content: fmt.Sprintf("Knock %d times.", v.want)}}
}
func (v *visit) Tools() []chat.Tool { return []chat.Tool{{Name: fmt.Sprintf("door%d", v.want)}} }
func (v *visit) Call(context.Context, string, string) (string, error) {
	v.knocks++
	return fmt.Sprintf("knock %d", v.knocks), nil
}
func (v *visit) Score(_ context.Context, answer string) (env.Score, error) {
	if answer == "open" && v.knocks == v.want && !v.unsound {
		return env.Score{Reward: 2}, nil
	}
	return env.Score{Reward: 1}, nil
}
func (v *visit) Close() error { return nil }
func (v *visit) Solve(context.Context) (env.Solution, error) {
	s := env.Solution{Answer: "open", Habits: v.habits}
	for range v.want {
		s.Calls = append(s.Calls, chat.ToolCall{Name: fmt.Sprintf("door%d", v.want), Arguments: "{}"})
	}
	return s, nil
}
func (v *visit) SolveBy(_ context.Context, habit string) (env.Solution, error) {
	return env.Solution{Answer: habit}, nil
}

func TestAnyEnvironmentIsDemonstrated(t *testing.T) {
	for _, habits := range [][]string{nil, {"kick", "wait"}} {
		o := recipe(t, warmstart.Options{Environment: door{habits: habits}, Seed: 5, Workers: 3})
		shown := first(t, o.Demonstrations, 6000)
		said := map[string]int{}
		for n, d := range shown {
			d := d[0]
			answer := d.Messages[len(d.Messages)-1].Content
			said[answer]++
			var task int
			if _, err := fmt.Sscanf(d.Messages[0].Content, "Knock %d times.", &task); err != nil {
				t.Fatal(err)
			}
			if want := 2 + 2*task; answer == "open" && len(d.Messages) != want || d.Tools[0].Name != fmt.Sprintf("door%d", task) {
				t.Fatalf("demonstration %d: %+v", n, d)
			}
		}
		switch {
		case habits == nil && (said["open"] != len(shown) || o.Gate.MaxGreedy != 1):
			t.Errorf("without habits %v, %+v", said, o.Gate)
		case habits != nil && (said["open"] < 1800 || said["open"] > 2160 || said["kick"] < 1800 || said["wait"] < 1800 || o.Gate.MaxGreedy > 0.2):
			t.Errorf("with habits %v, %+v", said, o.Gate)
		}
		for _, d := range first(t, o.Right, 300) {
			if d[0].Messages[len(d[0].Messages)-1].Content != "open" {
				t.Errorf("not right: %+v", d)
			}
		}
		again := recipe(t, warmstart.Options{Environment: door{habits: habits}, Seed: 5, Workers: 1})
		if fmt.Sprint(first(t, again.Demonstrations, 600)) != fmt.Sprint(shown[:600]) {
			t.Error("one worker makes other demonstrations")
		}
	}
}

func TestRecipeSaysWhatIsWrong(t *testing.T) {
	rules := warmstart.Rules()
	rules.MaxCalls = 2
	for want, o := range map[string]warmstart.Options{
		`no size "huge"`:                     {Environment: door{}, Size: "huge"},
		"solution gets 1":                    {Environment: door{unsound: true}},
		"more calls than a rollout may have": {Environment: door{}, Rules: &rules},
		"does not say how":                   {Environment: mute{}},
	} {
		r, err := warmstart.Recipe(t.Context(), o)
		if err == nil {
			for _, err = range r.Demonstrations {
				break
			}
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want …%s…", err, want)
		}
	}
}

func TestSizesAreModels(t *testing.T) {
	parameters := 0
	for _, size := range []warmstart.Size{warmstart.Small, warmstart.Mid} {
		o := recipe(t, warmstart.Options{Environment: door{}, Size: size})
		if err := o.Model.Validate(); err != nil || o.Model.Parameters() <= parameters {
			t.Errorf("%s: %d parameters, %v", size, o.Model.Parameters(), err)
		}
		parameters = o.Model.Parameters()
	}
}

// mute is a door whose episodes are no solvers.
type mute struct{ door }

func (m mute) Reset(ctx context.Context, split string, index uint64) (env.Episode, error) {
	e, err := m.door.Reset(ctx, split, index)
	return struct{ env.Episode }{e}, err
}

// The prompts that a demonstration teaches are, to the token, those that a rollout has whose policy does the same.
func TestPromptsAreThoseOfRollouts(t *testing.T) {
	s, err := base.Load()
	if err != nil {
		t.Fatal(err)
	}
	template, err := chat.NewTemplate(s.Template, s.Tokenizer)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []env.Environment{calc.New(), door{}} {
		learnt := &repeater{completions: make(map[string][]int32), digest: s.Digest()}
		for _, d := range first(t, recipe(t, warmstart.Options{Environment: e, Seed: 1}).Right, 200) {
			for i, m := range d[0].Messages {
				if m.Role == chat.Assistant {
					prompt, err := template.Render(d[0].Messages[:i], d[0].Tools)
					if err != nil {
						t.Fatal(err)
					}
					learnt.completions[fmt.Sprint(prompt)] = template.RenderCompletion(m)
				}
			}
		}
		p, err := rollout.NewPolicy(0, s, learnt, bundle.EngineExact)
		if err != nil {
			t.Fatal(err)
		}
		tasks, played := e.Manifest().Tasks(wire.SplitValidation), 0
		m, err := rollout.Measure(t.Context(), e, p, warmstart.Rules(), wire.SplitValidation, tasks, 1, 0)
		if err != nil {
			t.Fatal(err)
		}
		// Tasks that were not demonstrated are given up at their first call.
		for _, r := range m.Rollouts {
			if len(r.Calls) == 1 && len(r.Calls[0].Completion) == 1 && r.Calls[0].Completion[0] == unknown {
				continue
			}
			if played++; r.Reward != e.Manifest().RewardMax {
				t.Errorf("%s task %d: %+v", e.Manifest().Name, r.Task, r)
			}
		}
		if played < min(150, int(tasks)) {
			t.Errorf("%s: %d tasks were played", e.Manifest().Name, played)
		}
	}
}

// unknown is what repeater says to a prompt that nothing taught it.
const unknown = 0

// repeater is a session that knows completions by their prompts.
type repeater struct {
	completions map[string][]int32
	digest      policy.Digest
}

func (r *repeater) Policy() policy.Digest { return r.digest }
func (*repeater) Close()                  {}
func (*repeater) Score(context.Context, []int32, int) ([]float32, error) {
	return nil, errors.New("nobody should ask")
}
func (r *repeater) Generate(_ context.Context, q policy.Request) (policy.Completion, error) {
	tokens, ok := r.completions[fmt.Sprint(q.Prompt)]
	if !ok {
		tokens = []int32{unknown}
	}
	return policy.Completion{Tokens: tokens, LogProbs: make([]float32, len(tokens)), Finish: policy.FinishStop}, nil
}
