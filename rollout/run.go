package rollout

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/rollout/agent"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

// Network is a network's rules and how this process runs rollouts under them. It is not changed while in use.
type Network struct {
	// ID is the network id: the charter's CID.
	ID      wire.CID
	Charter *wire.Charter
	// Environments holds at least the charter's.
	Environments *env.Set
	// Agent plays the episodes; nil means the built-in agent.ToolLoop in the environment's first role. Of another agent's
	// rollouts each call is still a function of its prompt and number; whether the prompts are one of the draw is up to it.
	Agent agent.Agent

	// The fields below never change a scored or truncated rollout.

	// MaxConcurrent bounds how many rollouts of one group run at once; 0 means all.
	MaxConcurrent int
	// Timeout ends a rollout that takes longer; 0 means never.
	Timeout time.Duration
	// Log gets the causes of env_error, agent_error and timeout, which a bundle does not hold; nil discards them.
	Log *slog.Logger
	// Failed, if it is not nil, is told of the same failures. It is called by many goroutines and does not block.
	Failed func(outcome bundle.OutcomeKind, cause error)
}

// job is one rollout to be run.
type job struct {
	environment env.Environment
	split       string
	member      uint32
	task        uint64
	sampling    policy.Sampling
	key         func(call uint32) policy.SampleKey
}

// runAll runs jobs concurrently and returns their rollouts in the order of the jobs. The first error ends all.
func (n *Network) runAll(ctx context.Context, p *Policy, jobs []job) ([]bundle.Rollout, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	limit := n.MaxConcurrent
	if limit <= 0 || limit > len(jobs) {
		limit = len(jobs)
	}
	rollouts := make([]bundle.Rollout, len(jobs))
	queue := make(chan int, len(jobs))
	for i := range jobs {
		queue <- i
	}
	close(queue)
	var running sync.WaitGroup
	for range limit {
		running.Go(func() {
			for i := range queue {
				var err error
				if rollouts[i], err = n.run(ctx, p, jobs[i]); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	running.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return rollouts, nil
}

// run runs one rollout. Its error is a failure of the engine or the end of ctx; everything else is an outcome.
func (n *Network) run(parent context.Context, p *Policy, j job) (bundle.Rollout, error) {
	ctx := parent
	if n.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(parent, n.Timeout)
		defer cancel()
	}
	r := &recorder{
		policy:    p,
		sampling:  j.sampling,
		maxTokens: int(n.Charter.Rollout.MaxCompletionTokens),
		maxCalls:  int(n.Charter.Rollout.MaxCalls),
		key:       j.key,
	}
	result := bundle.Rollout{Member: j.member, Task: j.task}
	kind, score, feedback, err := n.play(ctx, r, j)
	var failure error
	if result.Calls, failure = r.finish(); failure != nil {
		err = failure
	}
	if cause := context.Cause(parent); cause != nil {
		return bundle.Rollout{}, cause
	}
	var engine *engineError
	switch {
	case err == nil:
		result.Outcome, result.Reward, result.Components = kind, score.Reward, components(score)
		heed(j.environment.Manifest(), &result, feedback)
	case ctx.Err() != nil:
		result.Outcome = bundle.OutcomeTimeout
	case errors.As(err, &engine):
		return bundle.Rollout{}, err
	default:
		result.Outcome = kind
	}
	if err != nil && n.Log != nil {
		n.Log.Warn("rollout failed", "split", j.split, "task", j.task, "member", j.member, "outcome", result.Outcome, "cause", err)
	}
	if err != nil && n.Failed != nil {
		n.Failed(result.Outcome, err)
	}
	return result, nil
}

// play runs the agent in the episode and has it judged; said is what else is said of the run. With an error, the kind says whose failure it is.
func (n *Network) play(ctx context.Context, llm agent.LLM, j job) (kind bundle.OutcomeKind, score env.Score, said *agent.Feedback, err error) {
	episode, err := j.environment.Reset(ctx, j.split, j.task)
	if err != nil {
		return bundle.OutcomeEnvError, env.Score{}, nil, fmt.Errorf("reset: %w", err)
	}
	defer func() {
		if closing := episode.Close(); closing != nil && err == nil {
			kind, err = bundle.OutcomeEnvError, fmt.Errorf("close: %w", closing)
		}
	}()
	manifest := j.environment.Manifest()
	player := n.Agent
	if player == nil {
		player = agent.ToolLoop{Role: manifest.Agents[0]}
	}
	result, err := player.Run(ctx, llm, episode)
	if err != nil {
		var environment *agent.EnvironmentError
		if errors.As(err, &environment) {
			return bundle.OutcomeEnvError, env.Score{}, nil, err
		}
		return bundle.OutcomeAgentError, env.Score{}, nil, fmt.Errorf("agent: %w", err)
	}
	if score, err = episode.Score(ctx, result.Answer); err != nil {
		return bundle.OutcomeEnvError, env.Score{}, nil, fmt.Errorf("score: %w", err)
	}
	if err := validScore(score, manifest); err != nil {
		return bundle.OutcomeEnvError, env.Score{}, nil, fmt.Errorf("score: %w", err)
	}
	switch result.End {
	case agent.Answered, agent.Malformed:
		return bundle.OutcomeScored, score, result.Feedback, nil
	case agent.Cut, agent.Exhausted:
		return bundle.OutcomeTruncated, score, result.Feedback, nil
	}
	return bundle.OutcomeAgentError, env.Score{}, nil, fmt.Errorf("agent: unknown end %d", result.End)
}

// validScore checks what an environment promises of its scores.
func validScore(s env.Score, m wire.EnvironmentManifest) error {
	if !(s.Reward >= m.RewardMin && s.Reward <= m.RewardMax) {
		return fmt.Errorf("reward %v is outside [%v, %v]", s.Reward, m.RewardMin, m.RewardMax)
	}
	if len(s.Components) > wire.MaxComponents {
		return fmt.Errorf("%d components, at most %d are allowed", len(s.Components), wire.MaxComponents)
	}
	for name, value := range s.Components {
		if !(bundle.Component{Name: name, Value: value}).Valid() {
			return fmt.Errorf("component %.80q is %v; a name is printable and has 1 to %d bytes, and a value is finite", name, value, wire.MaxComponentName)
		}
	}
	return nil
}

// components are a score's parts in the order of their names.
func components(s env.Score) []bundle.Component {
	var list []bundle.Component
	for name, value := range s.Components {
		list = append(list, bundle.Component{Name: name, Value: value})
	}
	slices.SortFunc(list, func(a, b bundle.Component) int { return strings.Compare(a.Name, b.Name) })
	return list
}
