package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lightswarm/lightswarm/node"
	"github.com/lightswarm/lightswarm/node/config"
	"github.com/lightswarm/lightswarm/policy/pretrain"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/calc"
	"github.com/lightswarm/lightswarm/rollout/env/openenv"
	"github.com/lightswarm/lightswarm/rollout/env/protocol"
	"github.com/lightswarm/lightswarm/rollout/warmstart"
	"github.com/lightswarm/lightswarm/wire"
)

// pretrainResult is what `policy pretrain --json` prints. Package pretrain defines the figures.
type pretrainResult struct {
	Digest string `json:"digest"`
	Folder string `json:"folder"`
	// Environment is the CID of what was demonstrated.
	Environment string  `json:"environment"`
	Seed        uint64  `json:"seed"`
	Steps       int     `json:"steps"`
	Parameters  int     `json:"parameters"`
	Vocabulary  int     `json:"vocabulary"`
	Loss        float64 `json:"loss"`
	Reachable   float64 `json:"reachable"`
	Sampled     float64 `json:"sampled"`
	Greedy      float64 `json:"greedy"`
	Best        float64 `json:"best"`
	Seconds     float64 `json:"seconds"`
}

const (
	// progressSteps is how many steps go by between two lines of progress, progressTime how long while tasks are played.
	progressSteps = 50
	progressTime  = 5 * time.Second
)

func (p *program) pretrain() *cobra.Command {
	environment, size, out, settings := "", "", "", config.Default()
	o, rules := warmstart.Options{}, warmstart.Rules()
	c := &cobra.Command{
		Use:   "pretrain --out FOLDER",
		Short: "Make a first policy for an environment, from nothing",
		Long: `Train a tokenizer and a small transformer on an environment's own solutions until the policy speaks the chat template,
uses the tools and can solve nearly all held-out tasks. If the environment names wrong habits, most of what is shown has
one: the policy then prefers that, and reinforcement learning has something to change. The prompts that it learns from are
those of rollouts by the built-in agent.

With --agent the policy is for that program, which has prompts, tools and roles of its own: the program plays the tasks, the
environment says what an ideal model answers to each of its calls, and the policy learns to answer so, from the very
prompts that rollouts have. The program then plays the held-out tasks too. See docs/environments.md.

The result follows from the environment, the agent, the size, the limits, the rounds and the seed, to the bit, on every
machine, if the agent always does the same. For calc, the built-in agent, size small and seed 1 it is the built-in policy,
and takes about four minutes of one processor. If the policy has not learnt enough after ten rounds of training (four for
the built-in policy's recipe), the exit code is 1 and nothing is written. A policy that has just learnt enough may still get
much wrong on tasks that it has not seen: --rounds goes on for longer.`,
		Example: `  lightswarm policy pretrain --seed 2 --out ./policy2
  lightswarm policy pretrain --env ./letters --out ./letters-policy
  lightswarm policy pretrain --env letters-0.1.0.lsenv --size mid --max-calls 8 --out ./letters-policy
  lightswarm policy pretrain --env ./letters --agent "python3 agent.py" --agent-preload openai --out ./letters-policy`,
		Args: takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			loaded, err := config.Merge(settings, config.Sources{Environ: os.Environ(), Flags: cmd.Flags()})
			if err == nil {
				err = loaded.Validate()
			}
			if err != nil {
				return usage(err)
			}
			o.Size = warmstart.Size(size)
			switch {
			case o.Size != warmstart.Small && o.Size != warmstart.Mid:
				return usage(fmt.Errorf("--size %q: use %s or %s", size, warmstart.Small, warmstart.Mid))
			case len(o.Roles) > 0 && len(loaded.Rollout.Agent.Command) == 0:
				return usage(errors.New("--roles: the built-in agent has one role; name an agent program with --agent"))
			case rules.MaxCalls == 0 || rules.MaxCalls > wire.MaxCallsPerRollout:
				return usage(fmt.Errorf("--max-calls %d: use 1 to %d", rules.MaxCalls, wire.MaxCallsPerRollout))
			case rules.MaxCompletionTokens == 0 || rules.MaxCompletionTokens > wire.MaxTokensPerCall:
				return usage(fmt.Errorf("--max-completion-tokens %d: use 1 to %d", rules.MaxCompletionTokens, wire.MaxTokensPerCall))
			}
			if err := checkOut(out); err != nil {
				return err
			}
			progress := playing{to: p.err, started: time.Now()}
			a, err := findEnvironment(cmd.Context(), environment)
			if err != nil {
				return err
			}
			if a.Manifest().Kind == openenv.Kind {
				return fmt.Errorf("--env %s: %w: a policy for an OpenEnv server has to come from elsewhere", environment, env.ErrNoSolution)
			}
			if o.Environment, err = a.open(cmd.Context()); err != nil {
				return err
			}
			defer func() { err = errors.Join(err, env.Close(o.Environment)) }()
			m := a.Manifest()
			if c := loaded.Rollout.Agent; len(c.Command) > 0 {
				program, failed := p.openAgent(cmd.Context(), c, m.Agents)
				if failed != nil {
					return failed
				}
				defer func() { err = errors.Join(err, program.Close()) }()
				o.Agent, o.Playing, o.Timeout = program, c.Processes, loaded.Rollout.Timeout
				p.warnUntaught(m, o.Roles)
			}
			o.Rules, o.Played = &rules, progress.played
			recipe, err := warmstart.Recipe(cmd.Context(), o)
			if err != nil {
				return explainPretrain(err, o.Size)
			}
			s, report, err := pretrain.Run(cmd.Context(), recipe, progress.trained)
			if err != nil {
				return explainPretrain(err, o.Size)
			}
			if err := s.WriteDir(out); err != nil {
				return err
			}
			r := pretrainResult{
				Digest: s.Digest().String(), Folder: out, Environment: a.CID().String(), Seed: o.Seed, Steps: report.Steps,
				Parameters: report.Parameters, Vocabulary: report.Vocabulary, Loss: report.Loss, Reachable: report.Reachable,
				Sampled: report.Ability.Sampled, Greedy: report.Ability.Greedy, Best: report.Ability.Best,
				Seconds: time.Since(progress.started).Seconds(),
			}
			return p.print(r, func(w io.Writer) {
				fmt.Fprintf(w, "policy    %s in %s\n", r.Digest, r.Folder)
				fmt.Fprintf(w, "size      %d parameters, %d tokens\n", r.Parameters, r.Vocabulary)
				fmt.Fprintf(w, "held-out  sampled %.3f, greedy %.3f, solved at least once in 16 tries %.3f\n", r.Sampled, r.Greedy, r.Best)
				fmt.Fprintf(w, "training  %d steps in %.1f s\n", r.Steps, r.Seconds)
			})
		},
	}
	f := c.Flags()
	f.StringVar(&environment, "env", calc.Name, "environment whose solutions are learnt: a folder, a package file or a built-in one's name")
	f.StringVar(&size, "size", string(warmstart.Small), "size of the model, small or mid: about 0.2 or 1 million weights")
	f.Uint32Var(&rules.MaxCalls, "max-calls", rules.MaxCalls, "calls of one rollout, as in network create and testnet")
	f.Uint32Var(&rules.MaxCompletionTokens, "max-completion-tokens", rules.MaxCompletionTokens, "tokens of one completion, as in network create and testnet")
	f.Uint64Var(&o.Seed, "seed", 1, "seed of the fresh weights and the demonstrations")
	f.IntVar(&o.Rounds, "rounds", 0, "rounds of training that are made at least; 0 is as few as it takes until the policy has learnt enough")
	f.StringVar(&out, "out", "", "folder for the policy; it must not exist, or be empty")
	f.IntVar(&o.Workers, "workers", runtime.GOMAXPROCS(0), "goroutines that train; changes no result")
	f.StringSliceVar(&o.Roles, "roles", nil, "agents whose calls are learnt (default all)")
	config.AddFlags(f, append([]string{"rollout.timeout"}, agentSettings...)...)
	return c
}

// openAgent makes the program ready that plays the tasks.
func (p *program) openAgent(ctx context.Context, c config.Agent, roles []string) (*node.Program, error) {
	modules, err := moduleCommand()
	if err != nil {
		return nil, err
	}
	log := slog.New(slog.NewTextHandler(p.err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	program, err := node.OpenProgram(c, roles, modules, log)
	if err != nil {
		return nil, err
	}
	if err := program.Ready(ctx); err != nil {
		return nil, errors.Join(err, program.Close())
	}
	return program, nil
}

// warnUntaught says which roles the policy does not learn to answer.
func (p *program) warnUntaught(m wire.EnvironmentManifest, taught []string) {
	var untaught []string
	for _, role := range m.Agents {
		if len(taught) > 0 && !slices.Contains(taught, role) {
			untaught = append(untaught, role)
		}
	}
	if len(untaught) > 0 {
		fmt.Fprintf(p.err, "lightswarm: the policy will answer calls as %s too, and does not learn how: name it in --roles, or leave --roles out\n",
			strings.Join(untaught, ", "))
	}
}

// explainPretrain says what to do about a policy that could not be made.
func explainPretrain(err error, size warmstart.Size) error {
	var long *pretrain.TooLongError
	switch {
	case errors.Is(err, warmstart.ErrRole):
		return usage(fmt.Errorf("--roles: %w", err))
	case errors.Is(err, warmstart.ErrRounds):
		return usage(fmt.Errorf("--rounds: %w", err))
	case errors.Is(err, warmstart.ErrTooManyCalls):
		return fmt.Errorf("%w. Allow more with --max-calls, here and where the network is founded", err)
	case errors.Is(err, warmstart.ErrSlow):
		return fmt.Errorf("%w. Allow more with --rollout-timeout", err)
	case reports(err, "reply"), errors.Is(err, env.ErrNoReplies):
		return fmt.Errorf("%w. With --agent an environment has to answer solve and reply: see docs/environments.md", err)
	case reports(err, "solve"), errors.Is(err, env.ErrNoSolution):
		return fmt.Errorf("%w. A first policy is for an environment that answers solve: see docs/environments.md", err)
	case !errors.As(err, &long):
		return err
	}
	if long.Tokens > long.Context {
		advice := "Shorten the agent's prompts and the tools' results"
		if size == warmstart.Small {
			advice += ", or use --size mid, which holds more"
		}
		err = fmt.Errorf("%w. %s", err, advice)
	}
	if long.MaxCompletion > 0 && long.Completion > long.MaxCompletion {
		err = fmt.Errorf("%w. Allow more with --max-completion-tokens, here and where the network is founded", err)
	}
	return err
}

// reports says whether an error is what an environment itself says of a request.
func reports(err error, op string) bool {
	var failed *protocol.Failure
	return errors.As(err, &failed) && failed.Reason == protocol.ReasonReported && strings.HasPrefix(failed.Detail, op+": ")
}

// playing writes how far the making of a policy is.
type playing struct {
	to      io.Writer
	started time.Time
	last    time.Time // of the last line about tasks
}

// played is told how many tasks have been played.
func (p *playing) played(split string, done, of int) {
	if now := time.Now(); done == of || now.Sub(p.last) >= progressTime {
		p.last = now
		fmt.Fprintf(p.to, "%6.1fs played %d of %d tasks of %s\n", now.Sub(p.started).Seconds(), done, of, split)
	}
}

// trained is told of each step.
func (p *playing) trained(at pretrain.Progress) {
	elapsed := time.Since(p.started).Seconds()
	switch {
	case at.Measured != nil && !at.Measured.Measured:
		fmt.Fprintf(p.to, "%6.1fs round %d: within reach %.3f\n", elapsed, at.Round, at.Measured.Reachable)
	case at.Measured != nil:
		a := at.Measured.Ability
		fmt.Fprintf(p.to, "%6.1fs round %d: within reach %.3f  sampled %.3f  greedy %.3f  solved at least once %.3f\n",
			elapsed, at.Round, at.Measured.Reachable, a.Sampled, a.Greedy, a.Best)
		if a.Failed > 0 {
			fmt.Fprintf(p.to, "        %d rollouts failed, the first with %s\n", a.Failed, a.Failure)
		}
	case at.Step%progressSteps == 0:
		fmt.Fprintf(p.to, "%6.1fs step %d  loss %.4f\n", elapsed, at.Step, at.Loss)
	}
}
