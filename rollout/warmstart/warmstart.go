package warmstart

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/policy/embedded"
	"github.com/lightswarm/lightswarm/policy/pretrain"
	"github.com/lightswarm/lightswarm/policy/transformer"
	"github.com/lightswarm/lightswarm/rollout"
	"github.com/lightswarm/lightswarm/rollout/agent"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/calc"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

// Size names the shape of a model.
type Size string

// The sizes. Small is that of the built-in policy, about 0.2 million weights; Mid has about 1 million, holds longer
// conversations, and takes about five times the time.
const (
	Small Size = "small"
	Mid   Size = "mid"
)

// Rules are the limits that a network gives its rollouts unless it says otherwise, with sampling at temperature 1.
func Rules() wire.RolloutRules {
	return wire.RolloutRules{MaxCalls: 4, MaxCompletionTokens: 48, Sampling: wire.Sampling{Temperature: 1}}
}

// Options say for what a policy is made. Environment is required.
type Options struct {
	// Environment is what is demonstrated. It has the splits train and validation, and its episodes are solvers, with an
	// Agent repliers too.
	Environment env.Environment
	// Agent is what will play the rollouts; nil is the built-in agent. Its calls are what the policy learns.
	Agent agent.Agent
	// Playing is how many of the agent's rollouts are played at once to measure a policy; 0 means 32.
	Playing int
	// Timeout ends a run of the agent that takes longer: a demonstration is then an error, a measured rollout a timeout. 0
	// means never.
	Timeout time.Duration
	// Roles are the agents whose calls the policy learns to answer; nil means all, also those that rollouts don't train: the
	// policy answers their calls too.
	Roles []string
	// Seed decides the fresh weights and the demonstrations.
	Seed uint64
	// Size is Small if it is empty.
	Size Size
	// Rounds is how many rounds of training are made at least, and at most those that the size allows: a policy that just
	// passes still gets things wrong that it knows. 0 means as few as it takes.
	Rounds int
	// Rules are what rollouts will be limited to and how they sample; nil means Rules. Only MaxCalls, MaxCompletionTokens
	// and Sampling matter.
	Rules *wire.RolloutRules
	// Workers is how many goroutines work; it changes no result. 0 means as many as there are processors.
	Workers int
	// Played, if it is not nil, is told how many tasks of a split have been played for demonstrations. It is called by one
	// goroutine at a time.
	Played func(split string, done, of int)
}

const (
	// playedTasks is how many tasks are played for demonstrations: where environments run elsewhere each costs
	// milliseconds, so that training shows them again and again.
	playedTasks = 3072
	// measuredTasks and measuredSamples are how many rollouts measure a policy, at most.
	measuredTasks   = 128
	measuredSamples = 16
	// habitProbes is how many tasks are asked whether there is a habit.
	habitProbes = 8
	// defaultPlaying is how many rollouts of an agent program run at once, unless Options say.
	defaultPlaying = 32
)

// Recipe returns how a policy for an environment is made. That of calc and size Small makes the built-in policy, from
// seed 1. The context is that of the demonstrations. It fails if the environment does not say how its tasks are solved.
func Recipe(ctx context.Context, o Options) (pretrain.Options, error) {
	if o.Rules == nil {
		rules := Rules()
		o.Rules = &rules
	}
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	m := o.Environment.Manifest()
	for _, split := range []string{wire.SplitTrain, wire.SplitValidation} {
		if m.Tasks(split) == 0 {
			return pretrain.Options{}, fmt.Errorf("environment %s has no tasks of split %s: policies are trained on %s and measured on %s", m.Name, split, wire.SplitTrain, wire.SplitValidation)
		}
	}
	teaches, err := o.teaches()
	if err != nil {
		return pretrain.Options{}, err
	}
	habit, err := o.habit(ctx)
	if err != nil {
		return pretrain.Options{}, err
	}
	forms, err := newForms()
	if err != nil {
		return pretrain.Options{}, err
	}
	shown := source{
		environment: o.Environment, split: wire.SplitTrain, purpose: "demonstration", seed: o.Seed, maxCalls: int(o.Rules.MaxCalls),
		agent: o.Agent, teaches: teaches, forms: forms, timeout: o.Timeout, played: o.Played,
	}
	right := shown
	right.split, right.purpose = wire.SplitValidation, "right demonstration"
	if habit {
		shown.wrong = WrongPermille
	}
	r := pretrain.Options{
		Seed: o.Seed, MaxCompletion: int(o.Rules.MaxCompletionTokens), Measure: o.measure, Workers: o.Workers,
	}
	if err := shape(&r, o.Size); err != nil {
		return pretrain.Options{}, err
	}
	_, ok := o.Environment.(calc.Environment)
	builtin := ok && o.Size != Mid && o.Agent == nil
	if builtin {
		base(&r)
	}
	if r.MinRounds = o.Rounds; o.Rounds < 0 || o.Rounds > r.MaxRounds {
		return pretrain.Options{}, fmt.Errorf("%w: %d, it must be 0 to %d", ErrRounds, o.Rounds, r.MaxRounds)
	}
	if builtin {
		r.Demonstrations, r.Right = shown.all(ctx), right.all(ctx)
		return r, nil
	}
	r.Demonstrations = shown.few(ctx, playedTasks, o.Workers)
	r.Right = right.few(ctx, r.HeldOut, o.Workers)
	r.Gate = pretrain.Gate{
		MinReachable: 0.8, ReachableProbability: 0.05, MinBest: 0.9, MinSampled: 0.2, MaxSampled: 1, MaxGreedy: 1,
	}
	if habit {
		r.Gate.MaxSampled, r.Gate.MaxGreedy = 0.6, 0.2
	}
	return r, nil
}

// shape sets what the size decides, and how that is trained.
func shape(r *pretrain.Options, size Size) error {
	r.TokenizerTexts, r.HeldOut, r.Warmup = 2000, 128, 40
	r.BatchSize, r.RoundSteps, r.MaxRounds = 32, 600, 10
	switch size {
	case "", Small:
		r.LearningRate = 2e-3
		r.Model = transformer.Config{Hidden: 64, Layers: 3, Heads: 2, KVHeads: 2, Intermediate: 192, Vocab: 512, Context: 1024}
	case Mid:
		r.LearningRate = 1e-3
		r.Model = transformer.Config{Hidden: 128, Layers: 4, Heads: 4, KVHeads: 4, Intermediate: 384, Vocab: 1024, Context: 4096}
	default:
		return fmt.Errorf("there is no size %q; use %s or %s", size, Small, Mid)
	}
	r.Model.HeadDim, r.Model.RopeTheta, r.Model.NormEpsilon, r.Model.TieEmbeddings = 32, 10000, 1e-6, true
	return nil
}

// base sets what the built-in policy was made with. Whatever changes here makes another policy.
func base(r *pretrain.Options) {
	r.Model.Context = 256
	r.Gate = pretrain.Gate{
		MinReachable: 0.97, ReachableProbability: 0.15,
		MinBest: 0.98, MinSampled: 0.25, MaxSampled: 0.4, MaxGreedy: 0.05,
	}
	r.TokenizerTexts, r.HeldOut, r.Warmup = 4000, 512, 40
	r.BatchSize, r.RoundSteps, r.MaxRounds = 64, 1400, 4
	r.LearningRate = 1.5e-3
}

// ErrRounds says that Options.Rounds is no number of rounds that can be made.
var ErrRounds = errors.New("rounds of training")

// ErrRole says that Options.Roles has one that is no agent of the environment.
var ErrRole = errors.New("the environment has no agent")

// teaches is which roles the policy learns.
func (o Options) teaches() (func(role string) bool, error) {
	m := o.Environment.Manifest()
	roles := o.Roles
	if len(roles) == 0 {
		roles = m.Agents
	}
	for _, role := range roles {
		if !slices.Contains(m.Agents, role) {
			return nil, fmt.Errorf("%w %q; it has %s", ErrRole, role, strings.Join(m.Agents, ", "))
		}
	}
	return func(role string) bool { return slices.Contains(roles, role) }, nil
}

// habit says whether the environment names wrong habits.
func (o Options) habit(ctx context.Context) (named bool, err error) {
	for task := range min(habitProbes, o.Environment.Manifest().Tasks(wire.SplitTrain)) {
		episode, err := o.Environment.Reset(ctx, wire.SplitTrain, task)
		if err != nil {
			return false, fmt.Errorf("task %d of %s: %w", task, wire.SplitTrain, err)
		}
		solution, err := env.Solve(ctx, episode, "")
		if err = errors.Join(err, episode.Close()); err != nil {
			return false, fmt.Errorf("task %d of %s: %w", task, wire.SplitTrain, err)
		}
		named = named || len(solution.Habits) > 0
	}
	return named, nil
}

// measure runs a policy on tasks of the validation split.
func (o Options) measure(ctx context.Context, s *policy.Snapshot) (pretrain.Ability, error) {
	engine := embedded.New(embedded.Options{Threads: o.Workers})
	defer engine.Close()
	if err := engine.Load(ctx, s); err != nil {
		return pretrain.Ability{}, err
	}
	session, err := engine.Open()
	if err != nil {
		return pretrain.Ability{}, err
	}
	defer session.Close()
	p, err := rollout.NewPolicy(0, s, session, bundle.EngineExact)
	if err != nil {
		return pretrain.Ability{}, err
	}
	var ability pretrain.Ability
	var failing sync.Mutex
	n := rollout.Network{Agent: o.Agent, Failed: func(outcome bundle.OutcomeKind, cause error) {
		failing.Lock()
		defer failing.Unlock()
		if ability.Failed++; ability.Failed == 1 {
			ability.Failure = fmt.Sprintf("%s: %v", outcome, cause)
		}
	}}
	if o.Agent != nil {
		n.MaxConcurrent, n.Timeout = cmp.Or(o.Playing, defaultPlaying), o.Timeout
	}
	play := func(rules wire.RolloutRules, samples int) (rollout.Measurement, error) {
		n.Charter = &wire.Charter{Rollout: rules}
		tasks := min(measuredTasks, o.Environment.Manifest().Tasks(wire.SplitValidation))
		return n.Measure(ctx, o.Environment, p, wire.SplitValidation, tasks, samples, 0)
	}
	sampled, err := play(*o.Rules, measuredSamples)
	if err != nil {
		return pretrain.Ability{}, fmt.Errorf("sampled: %w", err)
	}
	rules := *o.Rules
	rules.Sampling = wire.Sampling{}
	greedy, err := play(rules, 1)
	if err != nil {
		return pretrain.Ability{}, fmt.Errorf("greedy: %w", err)
	}
	ability.Sampled, ability.Best, ability.Greedy = sampled.Solved(), sampled.Best(), greedy.Solved()
	return ability, nil
}
