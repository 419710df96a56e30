package main

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/lightswarm/lightswarm/policy/pretrain"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/calc"
	"github.com/lightswarm/lightswarm/rollout/warmstart"
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

// progressSteps is how many steps go by between two lines of progress.
const progressSteps = 50

func (p *program) pretrain() *cobra.Command {
	environment, size, out := "", "", ""
	o, rules := warmstart.Options{}, warmstart.Rules()
	c := &cobra.Command{
		Use:   "pretrain --out FOLDER",
		Short: "Make a first policy for an environment, from nothing",
		Long: `Train a tokenizer and a small transformer on an environment's own solutions until the policy speaks the chat template,
uses the tools and can solve nearly all held-out tasks. If the environment names wrong habits, most of what is shown has
one: the policy then prefers that, and reinforcement learning has something to change. The prompts that it learns from are
those of rollouts by the built-in agent.

The result follows from the environment, the size, the limits and the seed, to the bit, on every machine. For calc, size
small and seed 1 it is the built-in policy, and takes about four minutes of one processor. If the policy has not learnt
enough after ten rounds of training (four for the built-in policy's recipe), the exit code is 1 and nothing is written.`,
		Example: `  lightswarm policy pretrain --seed 2 --out ./policy2
  lightswarm policy pretrain --env ./letters --out ./letters-policy
  lightswarm policy pretrain --env letters-0.1.0.lsenv --size mid --max-calls 8 --out ./letters-policy`,
		Args: takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			o.Size = warmstart.Size(size)
			switch {
			case o.Size != warmstart.Small && o.Size != warmstart.Mid:
				return usage(fmt.Errorf("--size %q: use %s or %s", size, warmstart.Small, warmstart.Mid))
			case rules.MaxCalls == 0 || rules.MaxCompletionTokens == 0:
				return usage(errors.New("--max-calls and --max-completion-tokens must be 1 or more"))
			}
			if err := checkOut(out); err != nil {
				return err
			}
			started := time.Now()
			a, err := findEnvironment(cmd.Context(), environment)
			if err != nil {
				return err
			}
			if o.Environment, err = a.open(cmd.Context()); err != nil {
				return err
			}
			defer func() { err = errors.Join(err, env.Close(o.Environment)) }()
			o.Rules = &rules
			recipe, err := warmstart.Recipe(cmd.Context(), o)
			if err != nil {
				return err
			}
			if a.from != env.KindBuiltin {
				fmt.Fprintln(p.err, "playing the environment's solutions, which takes a while")
			}
			s, report, err := pretrain.Run(cmd.Context(), recipe, func(at pretrain.Progress) {
				elapsed := time.Since(started).Seconds()
				switch {
				case at.Measured != nil:
					a := at.Measured.Ability
					fmt.Fprintf(p.err, "%6.1fs round %d: within reach %.3f  sampled %.3f  greedy %.3f  solved at least once %.3f\n",
						elapsed, at.Round, at.Measured.Reachable, a.Sampled, a.Greedy, a.Best)
				case at.Step%progressSteps == 0:
					fmt.Fprintf(p.err, "%6.1fs step %d  loss %.4f\n", elapsed, at.Step, at.Loss)
				}
			})
			if err != nil {
				return err
			}
			if err := s.WriteDir(out); err != nil {
				return err
			}
			r := pretrainResult{
				Digest: s.Digest().String(), Folder: out, Environment: a.CID().String(), Seed: o.Seed, Steps: report.Steps,
				Parameters: report.Parameters, Vocabulary: report.Vocabulary, Loss: report.Loss, Reachable: report.Reachable,
				Sampled: report.Ability.Sampled, Greedy: report.Ability.Greedy, Best: report.Ability.Best,
				Seconds: time.Since(started).Seconds(),
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
	f.Uint32Var(&rules.MaxCalls, "max-calls", rules.MaxCalls, "calls of one rollout, as in network create")
	f.Uint32Var(&rules.MaxCompletionTokens, "max-completion-tokens", rules.MaxCompletionTokens, "tokens of one completion, as in network create")
	f.Uint64Var(&o.Seed, "seed", 1, "seed of the fresh weights and the demonstrations")
	f.StringVar(&out, "out", "", "folder for the policy; it must not exist, or be empty")
	f.IntVar(&o.Workers, "workers", runtime.GOMAXPROCS(0), "goroutines that train; changes no result")
	return c
}
