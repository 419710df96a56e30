package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lightswarm/lightswarm/node/config"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/calc"
	"github.com/lightswarm/lightswarm/rollout/env/openenv"
	"github.com/lightswarm/lightswarm/rollout/env/pack"
	programs "github.com/lightswarm/lightswarm/rollout/env/program"
	"github.com/lightswarm/lightswarm/rollout/env/wasm"
)

func (p *program) env() *cobra.Command {
	c := &cobra.Command{
		Use:   "env",
		Short: "Make environments, check them, and share them with a network",
		Long: `An environment is tasks, tools and scoring. Anybody can make one: a folder with environment.toml and a WebAssembly
module, the Go package that it is built from, a program such as one in Python, or how agents meet an OpenEnv server.
Commands take such a folder, a package file made by env build or env pull, or the name of an environment that is built in.`,
	}
	c.AddCommand(p.envInit(), p.envCheck(), p.envRun(), p.envShow(), p.envBuild(), p.envList(), p.envPublish(), p.envPull(), p.envRemove(), envWork(), envExec())
	return c
}

// envWork is the process in which modules run. Nobody but this program starts it.
func envWork() *cobra.Command {
	return &cobra.Command{
		Use:    "work",
		Hidden: true,
		Args:   takes(0, 0),
		RunE: func(*cobra.Command, []string) error {
			// A terminal sends Ctrl-C to all; the one that started this one ends it, by the end of its input.
			signal.Ignore(os.Interrupt)
			return wasm.Work(os.Stdin, os.Stdout)
		},
	}
}

// envExec is the beginning of the process of an environment that is a program. Nobody but this program starts it.
func envExec() *cobra.Command {
	return &cobra.Command{
		Use:    "exec SETUP",
		Hidden: true,
		Args:   takes(1, 1),
		RunE: func(_ *cobra.Command, arguments []string) error {
			return programs.Work(arguments[0])
		},
	}
}

// builtinEnvironments are those of the program.
var builtinEnvironments = []env.Environment{calc.New()}

// environmentArgument is an environment that a command's argument names.
type environmentArgument struct {
	pack.File
	// from says what the argument was.
	from string
	// oracle and null solve its tasks, and nothing.
	oracle, null env.Player
	environmentFlags
}

// environmentFlags are how environments are run.
type environmentFlags struct {
	// withoutLandlock runs programs where the system cannot keep files from them.
	withoutLandlock bool
	// servers are where environments of kind openenv have theirs.
	servers openenv.Options
}

// flagsOf is how a node's settings have environments run.
func flagsOf(c config.Config) environmentFlags {
	return environmentFlags{servers: openenv.Options{Servers: c.Rollout.Environments.Servers()}}
}

// flagsOfEnvironments adds the flags to a command that runs an environment, which the function then returns.
func flagsOfEnvironments(c *cobra.Command) func() (environmentFlags, error) {
	withoutLandlock := c.Flags().Bool("without-landlock", false,
		"run environments of kind exec where the system has no Landlock to keep your files from them: only if you trust their author")
	server := c.Flags().String("server", "", "where the server of an environment of kind openenv is, such as http://127.0.0.1:8000")
	return func() (environmentFlags, error) {
		f := environmentFlags{*withoutLandlock, openenv.Options{Server: *server}}
		if *server == "" {
			return f, nil
		}
		if _, err := openenv.Address(*server); err != nil {
			return f, usage(fmt.Errorf("--server %w", err))
		}
		return f, nil
	}
}

// findEnvironment reads a folder or a package file, or takes what is built in.
func findEnvironment(ctx context.Context, name string) (environmentArgument, error) {
	a := environmentArgument{oracle: env.Oracle(), null: env.Null()}
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		a.from = "folder"
		a.Package, err = pack.Read(ctx, name)
		return a, err
	case err == nil:
		a.from = "file"
		raw, err := readFile(name, pack.MaxFileBytes)
		if err != nil {
			return a, err
		}
		if a.File, err = pack.Decode(raw); err != nil {
			return a, fmt.Errorf("%s: %w", name, err)
		}
		return a, nil
	case !errors.Is(err, fs.ErrNotExist):
		return a, err
	}
	for _, e := range builtinEnvironments {
		if m := e.Manifest(); m.Name == name {
			a.from, a.oracle, a.null = env.KindBuiltin, calc.Oracle(), calc.Null()
			a.Package, err = env.NewPackage(m, nil)
			return a, err
		}
	}
	return a, usage(fmt.Errorf("there is no folder, package file or built-in environment called %s: see lightswarm env list; lightswarm env pull gets what members published", name))
}

// open makes an environment ready to run. The caller closes it.
func (a *environmentArgument) open(ctx context.Context) (env.Environment, error) {
	drivers, err := environmentDrivers(a.environmentFlags)
	if err != nil {
		return nil, err
	}
	return drivers.Open(ctx, a.Package)
}

// environmentDrivers run the environments that this program can run.
func environmentDrivers(f environmentFlags) (env.Drivers, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	o := wasm.Options{Command: []string{self, "env", "work"}}
	if cache, err := os.UserCacheDir(); err == nil {
		o.Cache = filepath.Join(cache, "lightswarm", "modules")
	}
	return env.Drivers{
		env.Builtin(builtinEnvironments...),
		wasm.New(o),
		programs.New(programs.Options{Command: []string{self, "env", "exec"}, WithoutLandlock: f.withoutLandlock}),
		openenv.New(f.servers),
	}, nil
}

// environmentResult is what `env show --json` prints.
type environmentResult struct {
	CID           string             `json:"cid"`
	Name          string             `json:"name"`
	Version       string             `json:"version"`
	Author        string             `json:"author,omitempty"`
	Description   string             `json:"description"`
	Licence       string             `json:"licence"`
	Kind          string             `json:"kind"`
	Determinism   string             `json:"determinism"`
	RewardMin     float32            `json:"reward_min"`
	RewardMax     float32            `json:"reward_max"`
	Agents        []string           `json:"agents"`
	TrainedAgents []string           `json:"trained_agents"`
	Splits        []environmentSplit `json:"splits"`
	Artefacts     []environmentFile  `json:"artefacts"`
	MemoryBytes   uint64             `json:"memory_bytes"`
	Steps         uint64             `json:"steps"`
}

type environmentSplit struct {
	Name  string `json:"name"`
	Tasks uint64 `json:"tasks"`
	// File lists the tasks; without one the environment makes them.
	File string `json:"file,omitempty"`
}

type environmentFile struct {
	Name   string `json:"name"`
	Bytes  uint64 `json:"bytes"`
	Blocks int    `json:"blocks"`
}

func (a *environmentArgument) result() environmentResult {
	m := a.Manifest()
	r := environmentResult{
		CID: a.CID().String(), Name: m.Name, Version: m.Version, Description: m.Description, Licence: m.Licence, Kind: m.Kind,
		Determinism: "exact", RewardMin: m.RewardMin, RewardMax: m.RewardMax, Agents: m.Agents, TrainedAgents: m.TrainedAgents,
		Splits: []environmentSplit{}, Artefacts: []environmentFile{}, MemoryBytes: m.Limits.MemoryBytes, Steps: m.Limits.Steps,
	}
	if m.Determinism != 1 {
		r.Determinism = "stochastic"
	}
	if a.Statement != nil {
		r.Author = a.Statement.Author.String()
	}
	if len(r.TrainedAgents) == 0 { // the manifest's way of saying all
		r.TrainedAgents = m.Agents
	}
	for _, s := range m.Splits {
		r.Splits = append(r.Splits, environmentSplit{s.Name, s.Tasks, s.Data})
	}
	for _, f := range m.Artefacts {
		r.Artefacts = append(r.Artefacts, environmentFile{f.Name, f.Bytes(), len(f.Blocks)})
	}
	return r
}

func (p *program) envShow() *cobra.Command {
	return &cobra.Command{
		Use:   "show FOLDER|FILE|NAME",
		Short: "Show what an environment is",
		Example: `  lightswarm env show ./letters
  lightswarm env show calc --json`,
		Args: takes(1, 1),
		RunE: func(cmd *cobra.Command, arguments []string) error {
			a, err := findEnvironment(cmd.Context(), arguments[0])
			if err != nil {
				return err
			}
			r := a.result()
			return p.print(r, func(w io.Writer) { environmentText(w, &r) })
		},
	}
}

// environmentText is an environment for people.
func environmentText(w io.Writer, r *environmentResult) {
	fmt.Fprintf(w, "environment  %s@%s\n", r.Name, r.Version)
	fmt.Fprintf(w, "cid          %s\n", r.CID)
	if r.Author != "" {
		fmt.Fprintf(w, "author       %s\n", r.Author)
	}
	fmt.Fprintf(w, "description  %s\n", r.Description)
	fmt.Fprintf(w, "licence      %s\n", r.Licence)
	fmt.Fprintf(w, "kind         %s, %s\n", r.Kind, r.Determinism)
	fmt.Fprintf(w, "reward       %g to %g\n", r.RewardMin, r.RewardMax)
	fmt.Fprintf(w, "agents       %s; trained: %s\n", strings.Join(r.Agents, ", "), strings.Join(r.TrainedAgents, ", "))
	for _, s := range r.Splits {
		fmt.Fprintf(w, "split        %s, %d tasks%s\n", s.Name, s.Tasks, map[bool]string{true: "", false: " in " + s.File}[s.File == ""])
	}
	for _, f := range r.Artefacts {
		fmt.Fprintf(w, "artefact     %s, %d bytes in %d blocks\n", f.Name, f.Bytes, f.Blocks)
	}
	switch {
	case r.Kind == openenv.Kind:
		fmt.Fprintf(w, "limits       %d ms a reply\n", r.Steps)
	case r.Kind == programs.Kind:
		fmt.Fprintf(w, "limits       %d MiB of memory, %d ms a request\n", r.MemoryBytes>>20, r.Steps)
	case r.Steps > 0:
		fmt.Fprintf(w, "limits       %d MiB of memory, %d steps a request\n", r.MemoryBytes>>20, r.Steps)
	}
}
