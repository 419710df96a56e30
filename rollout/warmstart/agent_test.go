package warmstart_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lightswarm/lightswarm/policy/base"
	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/policy/pretrain"
	"github.com/lightswarm/lightswarm/policy/transformer"
	"github.com/lightswarm/lightswarm/rollout"
	"github.com/lightswarm/lightswarm/rollout/agent"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/gateway"
	"github.com/lightswarm/lightswarm/rollout/process"
	"github.com/lightswarm/lightswarm/rollout/warmstart"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

// shouts is an environment for agents of two roles: a word is to be written in capitals, and a critic is to agree.
type shouts struct {
	// reply, if it is set, says something else than what is right.
	reply func(q env.Question) (chat.Message, error)
	// habits are what there is to do wrong: any of them gives the word as it is.
	habits []string
	// unsound gives nothing for what is right.
	unsound bool
}

var words = []string{"ab", "ba", "abba", "baab"}

func (shouts) Manifest() wire.EnvironmentManifest {
	return wire.EnvironmentManifest{
		Name: "shouts", Version: "1.0.0", Kind: "test", RewardMax: 1, Agents: []string{"critic", "writer"}, TrainedAgents: []string{"writer"},
		Splits: []wire.Split{{Name: wire.SplitTrain, Tasks: 4}, {Name: wire.SplitValidation, Tasks: 2}},
	}
}

func (s shouts) Reset(_ context.Context, _ string, index uint64) (env.Episode, error) {
	return &shout{s, words[index]}, nil
}

type shout struct {
	shouts
	word string
}

func (s *shout) Messages() []chat.Message {
	return []chat.Message{{Role: chat.User, Content: s.word}}
}
func (*shout) Tools() []chat.Tool { return nil }
func (*shout) Call(context.Context, string, string) (string, error) {
	return "", errors.New("agents have tools of their own")
}
func (s *shout) Score(_ context.Context, answer string) (env.Score, error) {
	if answer == strings.ToUpper(s.word) && !s.unsound {
		return env.Score{Reward: 1}, nil
	}
	return env.Score{}, nil
}
func (*shout) Close() error { return nil }
func (s *shout) Solve(context.Context) (env.Solution, error) {
	return env.Solution{Unsolved: true, Habits: s.habits}, nil
}

// Reply implements env.Replier. Its JSON has white space, as Python writes it.
func (s *shout) Reply(_ context.Context, q env.Question) (chat.Message, error) {
	last := q.Messages[len(q.Messages)-1]
	switch {
	case s.reply != nil:
		return s.reply(q)
	case q.Role == "critic":
		return says(`{ "good": true }`), nil
	case last.Role != chat.ToolRole:
		return uses("look", fmt.Sprintf(`{"word": %q}`, s.word)), nil
	case q.Habit != "":
		return says(s.word), nil
	}
	return says(last.Content), nil
}

func says(text string) chat.Message { return chat.Message{Role: chat.Assistant, Content: text} }

func uses(tool, arguments string) chat.Message {
	return chat.Message{Role: chat.Assistant, ToolCalls: []chat.ToolCall{{ID: "call_0", Name: tool, Arguments: arguments}}}
}

// program is the agent in testdata, as a node plays it.
func program(t *testing.T) agent.Agent {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Fatal(err)
	}
	g, err := gateway.Serve(gateway.Options{})
	if err != nil {
		t.Fatal(err)
	}
	a, err := process.New(process.Options{
		Gateway: g, Roles: shouts{}.Manifest().Agents, Concurrent: 4,
		Command: process.Command{Args: []string{"python3", "two_roles.py"}, Dir: "testdata", Preload: []string{"json", "urllib.request"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := errors.Join(a.Close(), g.Close(ctx)); err != nil {
			t.Error(err)
		}
	})
	return a
}

// What is learnt of a program are the calls of all its roles, by the prompts that the gateway makes of them. Of a role that
// is left out they are known, and not taught.
func TestAgentProgramsAreDemonstrated(t *testing.T) {
	player := program(t)
	writer := []string{"writer"}
	o := recipe(t, warmstart.Options{Environment: shouts{habits: []string{"meek"}}, Agent: player, Roles: writer, Seed: 3, Workers: 3})
	shown, said := first(t, o.Demonstrations, 3000), map[string]int{}
	for _, d := range shown {
		wrote := d[1]
		answer := wrote.Messages[len(wrote.Messages)-1].Content
		word := wrote.Messages[1].Content
		if said[answer]++; said[answer] > 25 {
			continue // each way was played once, and is shown again and again
		}
		want := pretrain.Demonstration{
			{Role: "critic", Said: []int{1}, Untaught: true, Messages: []chat.Message{
				{Role: chat.User, Content: fmt.Sprintf("Is %s good for %s?", answer, word)}, says(`{"good":true}`),
			}},
			{Role: "writer", Said: []int{2, 4}, Tools: wrote.Tools, Messages: []chat.Message{
				{Role: chat.System, Content: "Translate."}, {Role: chat.User, Content: word},
				uses("look", fmt.Sprintf(`{"word": %q}`, word)),
				{Role: chat.ToolRole, Content: strings.ToUpper(word)}, says(answer),
			}},
		}
		if diff := cmp.Diff(want, d, cmp.FilterPath(isID, cmp.Ignore())); diff != "" {
			t.Fatalf("demonstration (-want +got):\n%s", diff)
		}
		if len(wrote.Tools) != 1 || wrote.Tools[0].Name != "look" || !strings.Contains(wrote.Tools[0].Parameters, `"word"`) {
			t.Fatalf("tools %+v", wrote.Tools)
		}
	}
	right, wrong := 0, 0
	for answer, n := range said {
		if answer == strings.ToUpper(answer) {
			right += n
		} else {
			wrong += n
		}
	}
	if len(said) != 8 || right < 900 || right > 1080 {
		t.Errorf("%d right, %d wrong: %v", right, wrong, said)
	}
	again := recipe(t, warmstart.Options{Environment: shouts{habits: []string{"meek"}}, Agent: player, Roles: writer, Seed: 3, Workers: 1})
	if diff := cmp.Diff(shown[:20], first(t, again.Demonstrations, 20), cmp.FilterPath(isID, cmp.Ignore())); diff != "" {
		t.Errorf("one worker makes other demonstrations:\n%s", diff)
	}
	all := recipe(t, warmstart.Options{Environment: shouts{}, Agent: player})
	for _, c := range first(t, all.Right, 1)[0] {
		if c.Untaught {
			t.Errorf("%s is not taught", c.Role)
		}
	}
}

// isID says that a path leads to ids of calls, which are in no prompt.
func isID(p cmp.Path) bool {
	field, ok := p.Last().(cmp.StructField)
	return ok && (field.Name() == "ID" || field.Name() == "ToolCallID")
}

// The prompts that demonstrations of a program teach are, to the token, those of its rollouts.
func TestPromptsAreThoseOfAProgramsRollouts(t *testing.T) {
	s, err := base.Load()
	if err != nil {
		t.Fatal(err)
	}
	template, err := chat.NewTemplate(s.Template, s.Tokenizer)
	if err != nil {
		t.Fatal(err)
	}
	player := program(t)
	learnt := &repeater{completions: make(map[string][]int32), digest: s.Digest()}
	for _, d := range first(t, recipe(t, warmstart.Options{Environment: shouts{}, Agent: player}).Right, 20) {
		for _, c := range d {
			for _, i := range c.Said {
				prompt, err := template.Render(c.Messages[:i], c.Tools)
				if err != nil {
					t.Fatal(err)
				}
				learnt.completions[fmt.Sprint(prompt)] = template.RenderCompletion(c.Messages[i])
			}
		}
	}
	p, err := rollout.NewPolicy(0, s, learnt, bundle.EngineExact)
	if err != nil {
		t.Fatal(err)
	}
	n := rollout.Network{Charter: &wire.Charter{Rollout: warmstart.Rules()}, Agent: player}
	m, err := n.Measure(t.Context(), shouts{}, p, wire.SplitValidation, 2, 2, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range m.Rollouts {
		var roles []string
		for _, c := range r.Calls {
			roles = append(roles, c.Agent)
		}
		if r.Reward != 1 || !slices.Equal(roles, []string{"writer", "writer", "critic"}) {
			t.Errorf("task %d: reward %v, calls %v", r.Task, r.Reward, roles)
		}
	}
}

// A small policy learns both roles of a program from demonstrations, and plays it.
func TestPolicyForAProgram(t *testing.T) {
	told := map[string]int{}
	o := recipe(t, warmstart.Options{
		Environment: shouts{habits: []string{"meek"}}, Agent: program(t), Workers: 2, Seed: 1,
		Played: func(split string, done, of int) {
			if told[split]++; done != told[split] || done > of {
				t.Errorf("told of %d of %d tasks of %s", done, of, split)
			}
		},
	})
	o.Model = transformer.Config{
		Hidden: 32, Layers: 2, Heads: 1, KVHeads: 1, HeadDim: 32, Intermediate: 64, Vocab: 300, Context: 256,
		RopeTheta: 10000, NormEpsilon: 1e-6, TieEmbeddings: true,
	}
	o.TokenizerTexts, o.HeldOut, o.BatchSize, o.RoundSteps, o.LearningRate, o.Warmup = 100, 16, 8, 120, 5e-3, 10
	o.Gate = pretrain.Gate{MinReachable: 1, ReachableProbability: 0.1, MinBest: 1, MinSampled: 0.1, MaxSampled: 0.6, MaxGreedy: 0}
	s, report, err := pretrain.Run(t.Context(), o, nil)
	if err != nil {
		t.Fatalf("%v: %+v", err, report)
	}
	if told[wire.SplitTrain] != 4 || told[wire.SplitValidation] != 2 || s.Digest() != report.Digest {
		t.Errorf("told of %v", told)
	}
	// The critic is asked for JSON, which the engine enforces; what the writer says is its own.
	if a := report.Ability; a.Failed > 10 || a.Best != 1 || a.Greedy != 0 {
		t.Errorf("ability %+v", a)
	}
}

// asks is an agent that makes some calls, one after the other, and answers with what it heard last.
type asks struct {
	calls []agent.Request
	after error
}

func (a asks) Run(ctx context.Context, llm agent.LLM, e env.Episode) (agent.Result, error) {
	var heard string
	for _, r := range a.calls {
		if r.Text == "" {
			r.Messages = append(r.Messages, e.Messages()...)
		}
		reply, err := llm.Complete(ctx, r)
		if err != nil {
			return agent.Result{}, fmt.Errorf("the program failed: %w", err)
		}
		heard = reply.Message.Content
	}
	return agent.Result{End: agent.Answered, Answer: heard}, a.after
}

// Whatever an environment or an agent does wrong is said, with the task, the call and the role.
func TestDemonstrationsOfProgramsSayWhatIsWrong(t *testing.T) {
	reply := func(m chat.Message, err error) shouts {
		return shouts{reply: func(env.Question) (chat.Message, error) { return m, err }}
	}
	look := chat.Tool{Name: "look", Parameters: `{"type":"object"}`}
	asked := agent.Request{Agent: "writer", Tools: []chat.Tool{look}}
	once, five := []agent.Request{asked}, []agent.Request{asked, asked, asked, asked, asked}
	for name, c := range map[string]struct {
		e    env.Environment
		a    asks
		want string
	}{
		"the environment fails":      {reply(chat.Message{}, errors.New("no such request: reply")), asks{calls: once}, "call 0, as writer: no such request: reply"},
		"it replies to none":         {door{}, asks{calls: []agent.Request{{Agent: "guest"}}}, "call 0, as guest: the environment does not say how agents' calls are answered"},
		"an unknown tool":            {reply(uses("listen", "{}"), nil), asks{calls: once}, `call 0, as writer: the environment's reply calls the tool "listen"; the call offers look`},
		"no tool at all":             {reply(uses("look", "{}"), nil), asks{calls: []agent.Request{{Agent: "critic"}}}, `call 0, as critic: the environment's reply calls the tool "look"; the call offers none`},
		"too many calls":             {reply(says("so"), nil), asks{calls: five}, "call 4, as writer: the solution has more calls than a rollout may have: 4 are allowed"},
		"a text is to be continued":  {reply(says("so"), nil), asks{calls: []agent.Request{{Agent: "writer", Text: "once"}}}, "call 0, as writer: the agent has a text continued"},
		"the agent makes no call":    {reply(says("so"), nil), asks{}, "the agent made no call"},
		"the agent fails":            {reply(says("so"), nil), asks{calls: once, after: errors.New("the program failed: exit status 1")}, "the program failed: exit status 1; before that it made these calls: writer"},
		"the wrong answer":           {reply(says("so"), nil), asks{calls: once}, `the agent answers "so" and gets 0, and the largest reward is 1; before that it made these calls: writer`},
		"another habit than is told": {shouts{habits: []string{"meek"}, reply: meekFails}, asks{calls: once}, `habit "meek": call 0, as writer: cannot be meek`},
	} {
		r := recipe(t, warmstart.Options{Environment: c.e, Agent: c.a, Workers: 1})
		var err error
		for _, err = range r.Demonstrations {
			break
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "demonstrate task ") {
			t.Errorf("%s: %v, want …%s…", name, err, c.want)
		}
	}
	for want, o := range map[string]warmstart.Options{
		`no agent "reader"; it has critic, writer`: {Environment: shouts{}, Roles: []string{"reader"}},
	} {
		if _, err := warmstart.Recipe(t.Context(), o); !errors.Is(err, warmstart.ErrRole) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want …%s…", err, want)
		}
	}
	for _, err := range recipe(t, warmstart.Options{Environment: shouts{}}).Demonstrations {
		if !errors.Is(err, warmstart.ErrUnsolved) {
			t.Errorf("the built-in agent: %v", err)
		}
		break
	}
}

// meekFails solves the task, and cannot do it wrong.
func meekFails(q env.Question) (chat.Message, error) {
	if q.Habit != "" {
		return chat.Message{}, errors.New("cannot be meek")
	}
	return says(strings.ToUpper(q.Messages[0].Content)), nil
}

// An agent that hangs is ended with the demonstration that failed.
func TestAFailedCallEndsTheAgent(t *testing.T) {
	broken := errors.New("broken")
	hangs := agentFunc(func(ctx context.Context, llm agent.LLM, e env.Episode) (agent.Result, error) {
		_, err := llm.Complete(ctx, agent.Request{Agent: "writer", Messages: e.Messages()})
		if ctx.Err() != nil && errors.Is(err, context.Canceled) {
			return agent.Result{}, context.Cause(ctx) // another demonstration, played beside this one, failed before
		}
		if !errors.Is(err, broken) {
			t.Errorf("the first call: %v", err)
		}
		<-ctx.Done()
		if _, err := llm.Complete(context.WithoutCancel(ctx), agent.Request{Agent: "writer", Messages: e.Messages()}); !errors.Is(err, broken) {
			t.Errorf("the second call: %v", err)
		}
		return agent.Result{}, context.Cause(ctx)
	})
	e := shouts{reply: func(env.Question) (chat.Message, error) { return chat.Message{}, broken }}
	for _, err := range recipe(t, warmstart.Options{Environment: e, Agent: hangs}).Right {
		if !errors.Is(err, broken) {
			t.Errorf("%v", err)
		}
		break
	}
}

type agentFunc func(context.Context, agent.LLM, env.Episode) (agent.Result, error)

func (f agentFunc) Run(ctx context.Context, llm agent.LLM, e env.Episode) (agent.Result, error) {
	return f(ctx, llm, e)
}

// silent is an environment that does not reply.
type silent struct{ shouts }

func (m silent) Reset(ctx context.Context, split string, index uint64) (env.Episode, error) {
	e, err := m.shouts.Reset(ctx, split, index)
	return silentEpisode{e.(*shout)}, err
}

type silentEpisode struct{ *shout }

func (silentEpisode) Reply(ctx context.Context, _ env.Question) (chat.Message, error) {
	<-ctx.Done()
	return chat.Message{}, ctx.Err()
}

// An agent that comes to no end is ended when its time is over.
func TestAnAgentThatIsSlowIsEnded(t *testing.T) {
	endless := agentFunc(func(ctx context.Context, _ agent.LLM, _ env.Episode) (agent.Result, error) {
		<-ctx.Done()
		return agent.Result{}, context.Cause(ctx)
	})
	asking := agentFunc(func(ctx context.Context, llm agent.LLM, e env.Episode) (agent.Result, error) {
		_, err := llm.Complete(ctx, agent.Request{Agent: "writer", Messages: e.Messages()})
		return agent.Result{}, err
	})
	o := recipe(t, warmstart.Options{Environment: shouts{}, Agent: endless, Timeout: time.Millisecond})
	for _, o := range []pretrain.Options{o, recipe(t, warmstart.Options{Environment: silent{}, Agent: asking, Timeout: time.Millisecond})} {
		for _, err := range o.Right {
			if want := "than a rollout may: 1ms; before that it made no call"; !errors.Is(err, warmstart.ErrSlow) || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want …%s…", err, want)
			}
			break
		}
	}
	s, err := base.Load()
	if err != nil {
		t.Fatal(err)
	}
	a, err := o.Measure(t.Context(), s)
	if err != nil || a.Failed != 2*16+2 || !strings.HasPrefix(a.Failure, "timeout: ") {
		t.Errorf("%+v, %v", a, err)
	}
}

// Of a call that comes when the run is over the environment is asked nothing.
func TestCallsAfterTheEndAreRefused(t *testing.T) {
	var left agent.LLM
	leaves := agentFunc(func(ctx context.Context, llm agent.LLM, e env.Episode) (agent.Result, error) {
		left = llm
		reply, err := llm.Complete(ctx, agent.Request{Agent: "writer", Messages: e.Messages()})
		return agent.Result{End: agent.Answered, Answer: reply.Message.Content}, err
	})
	asked := 0
	e := shouts{reply: func(q env.Question) (chat.Message, error) {
		asked++
		return says(strings.ToUpper(q.Messages[0].Content)), nil
	}}
	first(t, recipe(t, warmstart.Options{Environment: e, Agent: leaves, Workers: 1}).Right, 1)
	before := asked
	_, err := left.Complete(t.Context(), agent.Request{Agent: "writer", Messages: []chat.Message{{Role: chat.User, Content: "more"}}})
	if !errors.Is(err, agent.ErrEnded) || asked != before {
		t.Errorf("%v, asked %d times more", err, asked-before)
	}
}

// Calls that run at once make the same demonstration in whatever order they come.
func TestTheOrderOfCallsChangesNothing(t *testing.T) {
	e := shouts{reply: func(q env.Question) (chat.Message, error) { return says(strings.ToUpper(q.Messages[0].Content)), nil }}
	var shown []pretrain.Demonstration
	for _, names := range [][]string{{"look", "listen"}, {"listen", "look"}} {
		both := agentFunc(func(ctx context.Context, llm agent.LLM, e env.Episode) (agent.Result, error) {
			var reply agent.Reply
			for _, name := range names {
				var err error
				reply, err = llm.Complete(ctx, agent.Request{Agent: "writer", Messages: e.Messages(), Tools: []chat.Tool{{Name: name}}})
				if err != nil {
					return agent.Result{}, err
				}
			}
			return agent.Result{End: agent.Answered, Answer: reply.Message.Content}, nil
		})
		shown = append(shown, first(t, recipe(t, warmstart.Options{Environment: e, Agent: both}).Right, 1)...)
	}
	if diff := cmp.Diff(shown[0], shown[1]); diff != "" {
		t.Errorf("in the other order (-one +other):\n%s", diff)
	}
}

// Measuring says how many rollouts came to nothing, and why.
func TestFailuresAreMeasured(t *testing.T) {
	s, err := base.Load()
	if err != nil {
		t.Fatal(err)
	}
	crashes := agentFunc(func(context.Context, agent.LLM, env.Episode) (agent.Result, error) {
		return agent.Result{}, errors.New("no room")
	})
	o := recipe(t, warmstart.Options{Environment: shouts{}, Agent: crashes})
	var a pretrain.Ability
	if a, err = o.Measure(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if want := (pretrain.Ability{Failed: 2*16 + 2, Failure: "agent_error: agent: no room"}); a != want {
		t.Errorf("%+v, want %+v", a, want)
	}
}
