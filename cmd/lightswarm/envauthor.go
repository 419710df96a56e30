package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/lightswarm/lightswarm/durable"
	"github.com/lightswarm/lightswarm/node/config"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/openenv"
	"github.com/lightswarm/lightswarm/rollout/env/pack"
	programs "github.com/lightswarm/lightswarm/rollout/env/program"
	"github.com/lightswarm/lightswarm/rollout/env/wasm"
	"github.com/lightswarm/lightswarm/wire"
)

// packageExtension is that of package files.
const packageExtension = ".lsenv"

func (p *program) envInit() *cobra.Command {
	name, kind := "", ""
	c := &cobra.Command{
		Use:   "init FOLDER",
		Short: "Make a folder with a small environment to start from",
		Long: `Make a folder with a small environment, which passes lightswarm env check as it is: in Go for the kind wasm, which runs
alike everywhere, or in Python for the kind exec, which runs on Linux. Checking the first builds it, for which Go has to be
installed. For the kind openenv the folder has a server in Python, which has to be started, and what agents make of it. No
file is overwritten.`,
		Example: `  lightswarm env init ./letters
  lightswarm env init --kind exec ./letters
  lightswarm env check ./letters`,
		Args: takes(1, 1),
	}
	c.Flags().StringVar(&name, "name", "", "the environment's name (default the folder's)")
	c.Flags().StringVar(&kind, "kind", pack.TemplateKinds[0], "the environment's kind: "+pack.Kinds())
	c.RunE = func(_ *cobra.Command, arguments []string) error {
		dir := arguments[0]
		if !slices.Contains(pack.TemplateKinds, kind) {
			return usage(fmt.Errorf("--kind %q: use %s", kind, pack.Kinds()))
		}
		if name == "" {
			full, err := filepath.Abs(dir)
			if err != nil {
				return err
			}
			if name = filepath.Base(full); !wire.PackageName(name) {
				return usage(fmt.Errorf("the folder's name, %q, is none for an environment: give one with --name; it %s", name, wire.PackageNameRule))
			}
		} else if !wire.PackageName(name) {
			return usage(fmt.Errorf("--name %q %s", name, wire.PackageNameRule))
		}
		files, err := pack.Template(dir, name, kind)
		if errors.Is(err, fs.ErrExist) {
			return usage(err)
		}
		if err != nil {
			return err
		}
		type result struct {
			Folder string   `json:"folder"`
			Name   string   `json:"name"`
			Files  []string `json:"files"`
		}
		return p.print(result{dir, name, files}, func(w io.Writer) {
			for _, f := range files {
				fmt.Fprintln(w, f)
			}
			fmt.Fprintf(w, "\n%s Check it with:\n\n  lightswarm env check %s%s\n", map[string]string{
				wasm.Kind:     "What it does is in environment.go.",
				programs.Kind: "What it does is in environment.py.",
				openenv.Kind:  "What agents make of a server is in environment.toml. The small server needs pip install openenv; start it with\npython3 " + filepath.Join(dir, "server.py") + ", or use another one.",
			}[kind], dir, map[bool]string{true: " --server http://127.0.0.1:8000"}[kind == openenv.Kind])
		})
	}
	return c
}

func (p *program) envBuild() *cobra.Command {
	out := ""
	c := &cobra.Command{
		Use:   "build FOLDER",
		Short: "Make a signed package file of an environment's folder",
		Long: `Make one file of an environment's folder, signed with the identity of the data folder, which is made if there is none.
Whoever has the file can check, run and show it. The same folder gives the same environment, by its CID.`,
		Example: `  lightswarm env build ./letters
  lightswarm env build ./letters --out letters.lsenv --data ./mynet`,
		Args: takes(1, 1),
	}
	data := p.dataFlag(c)
	c.Flags().StringVar(&out, "out", "", "file to write (default NAME-VERSION"+packageExtension+")")
	c.RunE = func(cmd *cobra.Command, arguments []string) error {
		made, err := pack.Read(cmd.Context(), arguments[0])
		if err != nil {
			return err
		}
		folder, err := data()
		if err != nil {
			return usage(err)
		}
		key, err := authorKey(folder)
		if err != nil {
			return err
		}
		file, err := pack.Sign(made, key, time.Now())
		if err != nil {
			return err
		}
		if out == "" {
			out = file.Statement.Name + "-" + file.Statement.Version + packageExtension
		}
		encoded := file.Encode()
		if err := durable.WriteFile(out, encoded, 0o666); err != nil {
			return fmt.Errorf("write the package: %w", err)
		}
		type result struct {
			File      string `json:"file"`
			Bytes     int    `json:"bytes"`
			CID       string `json:"cid"`
			Reference string `json:"reference"`
		}
		r := result{out, len(encoded), file.CID().String(), file.Statement.Reference()}
		return p.print(r, func(w io.Writer) {
			fmt.Fprintf(w, "package  %s, %d bytes\n", r.File, r.Bytes)
			fmt.Fprintf(w, "cid      %s\n", r.CID)
			fmt.Fprintf(w, "signed   %s\n", r.Reference)
		})
	}
	return c
}

// authorKey is the identity of a data folder, whether a node runs on it or not.
func authorKey(folder string) (wire.Key, error) {
	if err := checkFolder(folder); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("create data folder: %w", err)
	}
	key, err := config.View(folder).Identity()
	if err != nil {
		return nil, err
	}
	return wire.NewKey(key), nil
}

// listedEnvironment is an element of what `env list --json` prints.
type listedEnvironment struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
	// CID is empty for a folder, which has to be built first.
	CID    string `json:"cid,omitempty"`
	Author string `json:"author,omitempty"`
	// Path is the folder or file; empty for what is built in.
	Path string `json:"path,omitempty"`
	// Problem says why a folder or file cannot be used.
	Problem string `json:"problem,omitempty"`
}

func (p *program) envList() *cobra.Command {
	network := false
	c := &cobra.Command{
		Use:   "list [FOLDER]",
		Short: "List environments: built in, in a folder, or those of a network",
		Long: `List the environments that are built into the program, and the folders with environment.toml and the package files that
are directly in a folder, by default the current one.

With --network list the packages that the node on the data folder keeps and those that connected members say that they
keep, up to 64 statements of each.`,
		Example: `  lightswarm env list
  lightswarm env list --network --data ./mynet`,
		Args: takes(0, 1),
	}
	data := p.dataFlag(c)
	c.Flags().BoolVar(&network, "network", false, "list what members of the network published")
	c.RunE = func(cmd *cobra.Command, arguments []string) error {
		dir := "."
		switch {
		case network && len(arguments) > 0:
			return usage(errors.New("--network lists no folder: leave out one of them"))
		case network:
			folder, err := data()
			if err != nil {
				return usage(err)
			}
			return p.networkEnvironments(cmd.Context(), folder)
		case cmd.Flags().Changed("data"):
			return usage(errors.New("--data names the node that --network asks: give both"))
		case len(arguments) > 0:
			dir = arguments[0]
		}
		list, err := listEnvironments(dir)
		if err != nil {
			return err
		}
		return p.print(list, func(w io.Writer) {
			for _, e := range list {
				where := e.Path
				if where == "" {
					where = "built in"
				}
				if e.Problem != "" {
					fmt.Fprintf(w, "%-24s  cannot be used: %s\n", where, e.Problem)
					continue
				}
				fmt.Fprintf(w, "%-24s  %s@%s  %s  %s\n", where, e.Name, e.Version, e.Kind, e.CID)
			}
		})
	}
	return c
}

func listEnvironments(dir string) ([]listedEnvironment, error) {
	var list []listedEnvironment
	for _, e := range builtinEnvironments {
		cid, err := env.CID(e)
		if err != nil {
			return nil, err
		}
		m := e.Manifest()
		list = append(list, listedEnvironment{Name: m.Name, Version: m.Version, Kind: m.Kind, CID: cid.String()})
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		e := listedEnvironment{Path: path}
		var m wire.EnvironmentManifest
		switch {
		case entry.IsDir():
			if m, err = pack.Peek(path); errors.Is(err, fs.ErrNotExist) {
				continue
			}
		case filepath.Ext(path) == packageExtension:
			var raw []byte
			var f pack.File
			if raw, err = readFile(path, pack.MaxFileBytes); err == nil {
				f, err = pack.Decode(raw)
			}
			if err == nil {
				m, e.CID = f.Manifest(), f.CID().String()
				if f.Statement != nil {
					e.Author = f.Statement.Author.String()
				}
			}
		default:
			continue
		}
		if err != nil {
			e.Problem = err.Error()
		}
		e.Name, e.Version, e.Kind = m.Name, m.Version, m.Kind
		list = append(list, e)
	}
	return list, nil
}
