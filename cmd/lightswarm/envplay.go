package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/openenv"
	programs "github.com/lightswarm/lightswarm/rollout/env/program"
	"github.com/lightswarm/lightswarm/rollout/env/wasm"
	"github.com/lightswarm/lightswarm/wire"
)

// checkResult is what `env check --json` prints.
type checkResult struct {
	OK bool `json:"ok"`
	// Exact says whether executions were compared, Solved whether solutions were played: servers say none.
	Exact  bool `json:"exact"`
	Solved bool `json:"solved"`
	// Problem is the first broken promise.
	Problem string `json:"problem,omitempty"`
	CID     string `json:"cid"`
	Name    string `json:"name"`
	Version string `json:"version"`
	// Tasks is how many tasks were played, each of them three times.
	Tasks uint64 `json:"tasks"`
	// Replies is how many calls of agents the environment answered; 0 if it answers none.
	Replies int `json:"replies"`
	// PeakSteps and PeakMemoryBytes are the most that any request took, Steps and MemoryBytes what it may take. They are 0
	// for what has no limits. A program's steps are milliseconds, and its memory is not measured.
	PeakSteps       uint64 `json:"peak_steps"`
	Steps           uint64 `json:"steps"`
	PeakMemoryBytes uint64 `json:"peak_memory_bytes"`
	MemoryBytes     uint64 `json:"memory_bytes"`
}

func (p *program) envCheck() *cobra.Command {
	tasks := uint64(0)
	c := &cobra.Command{
		Use:   "check FOLDER|FILE|NAME",
		Short: "Check that an environment keeps its promises",
		Long: `Check an environment on the first tasks of each split:

  - a task starts alike every time;
  - its own solution reaches the largest reward;
  - two executions give the same bytes, where the manifest says that determinism is exact;
  - answering nothing gets less than the largest reward, and no wrong habit that it names always gets that;
  - no reward is outside the range that the manifest declares;
  - tasks beyond a split's last are refused;
  - where it answers agents' calls (reply), it does so in every role and with every habit, alike where determinism is exact.

Modules have no files and no network, so that there is nothing to check; programs run in the same sandbox as in a network.
The server of an environment of kind openenv has to run, and --server says where. It says no solutions, which are not checked.
The exit code is 1 if a promise is broken.`,
		Example: `  lightswarm env check ./letters
  lightswarm env check letters-0.1.0.lsenv --tasks 1000 --json`,
		Args: takes(1, 1),
	}
	flags := flagsOfEnvironments(c)
	c.Flags().Uint64Var(&tasks, "tasks", 20, "tasks of each split to play")
	c.RunE = func(cmd *cobra.Command, arguments []string) error {
		if tasks == 0 {
			return usage(errors.New("--tasks 0: use 1 or more"))
		}
		a, err := findEnvironment(cmd.Context(), arguments[0])
		if err != nil {
			return err
		}
		if a.environmentFlags, err = flags(); err != nil {
			return err
		}
		e, err := a.open(cmd.Context())
		if err != nil {
			return err
		}
		r, err := checkEnvironment(cmd.Context(), &a, e, tasks)
		if err = errors.Join(err, env.Close(e)); err != nil {
			return err
		}
		if err := p.print(r, func(w io.Writer) { checkText(w, &r) }); err != nil || r.OK {
			return err
		}
		return fmt.Errorf("%s@%s breaks a promise: %s", r.Name, r.Version, r.Problem)
	}
	return c
}

// checkEnvironment is an error only if the check was interrupted.
func checkEnvironment(ctx context.Context, a *environmentArgument, e env.Environment, tasks uint64) (checkResult, error) {
	m := e.Manifest()
	r := checkResult{
		CID: a.CID().String(), Name: m.Name, Version: m.Version, Steps: m.Limits.Steps, MemoryBytes: m.Limits.MemoryBytes,
		Exact: m.Determinism == wire.DeterminismExact,
	}
	for _, s := range m.Splits {
		r.Tasks += min(tasks, s.Tasks)
	}
	oracle := a.oracle
	if m.Kind == openenv.Kind {
		oracle = nil
	}
	r.Solved = oracle != nil
	err := env.Check(ctx, e, oracle, a.null, tasks)
	if err == nil {
		player := oracle
		if player == nil {
			player = a.null
		}
		r.Replies, err = env.CheckReplies(ctx, e, player, tasks)
	}
	if ctx.Err() != nil {
		return r, context.Cause(ctx)
	}
	if r.OK = err == nil; !r.OK {
		r.Problem = err.Error()
	}
	switch e := e.(type) {
	case *wasm.Environment:
		used := e.Peak()
		r.PeakSteps, r.PeakMemoryBytes = used.Steps, used.MemoryBytes
	case *programs.Environment:
		r.PeakSteps = uint64(e.Peak().Milliseconds())
	case *openenv.Environment:
		r.PeakSteps = uint64(e.Peak().Milliseconds())
	}
	return r, nil
}

func checkText(w io.Writer, r *checkResult) {
	if !r.OK {
		return // standard error says it
	}
	twice := "twice"
	if r.Exact {
		twice = "twice with the same bytes"
	}
	if r.Solved {
		fmt.Fprintf(w, "%s@%s is sound: %d tasks, each solved %s, and not by answering nothing\n", r.Name, r.Version, r.Tasks, twice)
	} else {
		fmt.Fprintf(w, "%s@%s works: %d tasks, each started alike twice, and not solved by answering nothing. Whether they can be solved was not checked\n", r.Name, r.Version, r.Tasks)
	}
	fmt.Fprintf(w, "cid     %s\n", r.CID)
	if r.Replies > 0 {
		fmt.Fprintf(w, "reply   %d calls of agents were answered\n", r.Replies)
	}
	switch {
	case r.MemoryBytes == 0 && r.Steps > 0:
		fmt.Fprintf(w, "time    %d of %d ms in the longest reply\n", r.PeakSteps, r.Steps)
	case r.Steps > 0 && r.PeakMemoryBytes == 0:
		fmt.Fprintf(w, "time    %d of %d ms in the longest request\n", r.PeakSteps, r.Steps)
		fmt.Fprintf(w, "memory  at most %d MiB\n", r.MemoryBytes>>20)
	case r.Steps > 0:
		fmt.Fprintf(w, "steps   %d of %d in the longest request\n", r.PeakSteps, r.Steps)
		fmt.Fprintf(w, "memory  %.1f of %d MiB\n", float64(r.PeakMemoryBytes)/(1<<20), r.MemoryBytes>>20)
	}
}

// runResult is what `env run --json` prints.
type runResult struct {
	Split      string             `json:"split"`
	Task       uint64             `json:"task"`
	Messages   []runMessage       `json:"messages"`
	Tools      []runTool          `json:"tools"`
	Calls      []runCall          `json:"calls"`
	Answer     string             `json:"answer"`
	Reward     float32            `json:"reward"`
	Components map[string]float32 `json:"components,omitempty"`
}

type runMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type runTool struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Parameters  string `json:"parameters"`
}

type runCall struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
	Result    string `json:"result"`
}

func (p *program) envRun() *cobra.Command {
	var (
		split, answer string
		task          uint64
		calls         []string
		solve         bool
		habit         string
	)
	c := &cobra.Command{
		Use:   "run FOLDER|FILE|NAME",
		Short: "Play one task by hand",
		Long: `Play one task: show what an agent starts from, run the tool calls that --call names, in order, and score --answer. With
--solve, do what the environment says reaches the largest reward, with --habit what it says of one of its wrong habits.`,
		Example: `  lightswarm env run ./letters --split validation --task 2
  lightswarm env run ./letters --call 'tally {"word":"banana"}' --answer 3
  lightswarm env run calc --solve`,
		Args: takes(1, 1),
	}
	flags := c.Flags()
	how := flagsOfEnvironments(c)
	flags.StringVar(&split, "split", "", "split of the task (default the first one)")
	flags.Uint64Var(&task, "task", 0, "the task's number within its split")
	flags.StringArrayVar(&calls, "call", nil, "tool to call and its arguments, as 'NAME ARGUMENTS'; can be given several times")
	flags.StringVar(&answer, "answer", "", "final answer")
	flags.BoolVar(&solve, "solve", false, "play the environment's own solution")
	flags.StringVar(&habit, "habit", "", "play what the environment says of this wrong habit")
	c.RunE = func(cmd *cobra.Command, arguments []string) (err error) {
		switch by := flags.Changed("answer") || flags.Changed("call"); {
		case solve && by:
			return usage(errors.New("--solve plays the environment's own solution: leave out --answer and --call"))
		case habit != "" && (solve || by):
			return usage(errors.New("--habit plays what the environment says of it: leave out --solve, --answer and --call"))
		}
		a, err := findEnvironment(cmd.Context(), arguments[0])
		if err != nil {
			return err
		}
		if a.environmentFlags, err = how(); err != nil {
			return err
		}
		m := a.Manifest()
		if split == "" {
			split = m.Splits[0].Name
		}
		if n := m.Tasks(split); n == 0 {
			return usage(fmt.Errorf("--split %q: the environment has no such split", split))
		} else if task >= n {
			return usage(fmt.Errorf("--task %d: the split %s has tasks 0 to %d", task, split, n-1))
		}
		var play env.Player = env.PlayerFunc(func(ctx context.Context, _ string, _ uint64, e env.Episode) (string, error) {
			for _, call := range calls {
				name, arguments, _ := strings.Cut(call, " ")
				if _, err := e.Call(ctx, name, arguments); err != nil {
					return "", err
				}
			}
			return answer, nil
		})
		switch {
		case solve:
			play = a.oracle
		case habit != "":
			play = env.WithHabit(habit)
		}
		e, err := a.open(cmd.Context())
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, env.Close(e)) }()
		r, err := runTask(cmd.Context(), e, play, split, task)
		if err != nil {
			return err
		}
		return p.print(r, func(w io.Writer) { runText(w, &r) })
	}
	return c
}

// runTask plays a task and writes down how.
func runTask(ctx context.Context, e env.Environment, play env.Player, split string, task uint64) (r runResult, err error) {
	episode, err := e.Reset(ctx, split, task)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, episode.Close()) }()
	r = runResult{Split: split, Task: task, Messages: []runMessage{}, Tools: []runTool{}, Calls: []runCall{}}
	for _, m := range episode.Messages() {
		r.Messages = append(r.Messages, runMessage{string(m.Role), m.Content})
	}
	for _, t := range episode.Tools() {
		r.Tools = append(r.Tools, runTool{t.Name, t.Description, t.Parameters})
	}
	if r.Answer, err = play.Play(ctx, split, task, &writtenEpisode{episode, &r}); err != nil {
		return r, err
	}
	score, err := episode.Score(ctx, r.Answer)
	r.Reward, r.Components = score.Reward, score.Components
	return r, err
}

// writtenEpisode writes an episode's tool calls down.
type writtenEpisode struct {
	env.Episode
	r *runResult
}

func (e *writtenEpisode) Call(ctx context.Context, name, arguments string) (string, error) {
	result, err := e.Episode.Call(ctx, name, arguments)
	e.r.Calls = append(e.r.Calls, runCall{name, arguments, result})
	return result, err
}

// Solve implements env.Solver for an episode that does.
func (e *writtenEpisode) Solve(ctx context.Context) (env.Solution, error) {
	return env.Solve(ctx, e.Episode, "")
}

// SolveBy implements env.Habitual for an episode that does.
func (e *writtenEpisode) SolveBy(ctx context.Context, habit string) (env.Solution, error) {
	return env.Solve(ctx, e.Episode, habit)
}

// runText writes a task that was played.
func runText(w io.Writer, r *runResult) {
	fmt.Fprintf(w, "task %d of %s\n", r.Task, r.Split)
	for _, m := range r.Messages {
		fmt.Fprintf(w, "  %s: %s\n", m.Role, indent(m.Content, "    "))
	}
	for _, t := range r.Tools {
		fmt.Fprintf(w, "  tool %s %s  %s\n", t.Name, t.Parameters, t.Description)
	}
	for _, c := range r.Calls {
		fmt.Fprintf(w, "  > %s %s\n    %s\n", c.Name, c.Arguments, indent(c.Result, "    "))
	}
	fmt.Fprintf(w, "answer  %s\nreward  %g\n", indent(r.Answer, "  "), r.Reward)
	for _, name := range slices.Sorted(maps.Keys(r.Components)) {
		fmt.Fprintf(w, "  %s %g\n", name, r.Components[name])
	}
}
