package main

import (
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/lightswarm/lightswarm/policy/pretrain"
	"github.com/lightswarm/lightswarm/rollout/env/calc"
	"github.com/lightswarm/lightswarm/rollout/warmstart"
)

// pretrainResult is what `policy pretrain --json` prints. Package pretrain defines the figures.
type pretrainResult struct {
	Digest     string  `json:"digest"`
	Folder     string  `json:"folder"`
	Seed       uint64  `json:"seed"`
	Steps      int     `json:"steps"`
	Parameters int     `json:"parameters"`
	Vocabulary int     `json:"vocabulary"`
	Loss       float64 `json:"loss"`
	Reachable  float64 `json:"reachable"`
	Sampled    float64 `json:"sampled"`
	Greedy     float64 `json:"greedy"`
	Best       float64 `json:"best"`
	Seconds    float64 `json:"seconds"`
}

// progressSteps is how many steps go by between two lines of progress.
const progressSteps = 50

func (p *program) pretrain() *cobra.Command {
	environment, seed, out, workers := "", uint64(0), "", 0
	c := &cobra.Command{
		Use:   "pretrain --out FOLDER",
		Short: "Make the built-in policy, or another one like it, from nothing",
		Long: `Train a tokenizer and a small transformer on demonstrations until the policy speaks the chat template and uses the
tool, but prefers a wrong habit: what reinforcement learning then changes.

The result follows from the seed, to the bit, on every machine; seed 1 gives the built-in policy. It takes about four
minutes of one processor.`,
		Example: "  lightswarm policy pretrain --seed 2 --out ./policy2",
		Args:    takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if environment != calc.Name {
				return usage(fmt.Errorf("there is no built-in environment %q; use %s", environment, calc.Name))
			}
			if err := checkOut(out); err != nil {
				return err
			}
			started := time.Now()
			s, report, err := pretrain.Run(cmd.Context(), warmstart.Calc(seed, workers), func(at pretrain.Progress) {
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
				Digest: s.Digest().String(), Folder: out, Seed: seed, Steps: report.Steps,
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
	f.StringVar(&environment, "env", calc.Name, "built-in environment whose demonstrations are learnt")
	f.Uint64Var(&seed, "seed", 1, "seed of the fresh weights and the demonstrations")
	f.StringVar(&out, "out", "", "folder for the policy; it must not exist, or be empty")
	f.IntVar(&workers, "workers", runtime.GOMAXPROCS(0), "goroutines that train; changes no result")
	return c
}
