package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lightswarm/lightswarm/durable"
	"github.com/lightswarm/lightswarm/node"
	"github.com/lightswarm/lightswarm/node/api"
	"github.com/lightswarm/lightswarm/node/config"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/wire"
)

// memberPatience is how long pull waits for the node's first member.
const memberPatience = 15 * time.Second

func (p *program) envPull() *cobra.Command {
	out, patience, force := "", time.Duration(0), false
	c := &cobra.Command{
		Use:   "pull ID",
		Short: "Get an environment from the members of a network",
		Long: `Get a package that a member published, by its CID or as author/name@version, through the node that runs on the data
folder, and write it into a file: what lightswarm env check, env run, network create --env and testnet --env take. The
node keeps it and serves it to others, until lightswarm env remove.

Every block is checked against the CID, and the author's signature against the manifest. What the data folder's settings do
not let the node run is refused before its files are asked for: see rollout.environments.kinds and
rollout.environments.signers. No file is overwritten without --force.`,
		Example: `  lightswarm env pull bafkrei… --data ./volunteer
  lightswarm env pull 12D3Koo…/letters@0.1.0 --out letters.lsenv`,
		Args: takes(1, 1),
	}
	data := p.dataFlag(c)
	c.Flags().StringVar(&out, "out", "", "file to write (default NAME-VERSION"+packageExtension+")")
	c.Flags().BoolVar(&force, "force", false, "overwrite the file if it exists")
	c.Flags().DurationVar(&patience, "timeout", 10*time.Minute, "give up after this long")
	config.AddFlags(c.Flags(), "rollout.environments.kinds", "rollout.environments.signers")
	c.RunE = func(cmd *cobra.Command, arguments []string) error {
		folder, err := data()
		if err != nil {
			return usage(err)
		}
		loaded, err := settings(cmd, folder)
		if err != nil {
			return err
		}
		if patience <= 0 {
			return usage(fmt.Errorf("--timeout %s: use a positive duration such as 10m", patience))
		}
		wanted, err := parseEnvironmentID(arguments[0])
		if err != nil {
			return usage(err)
		}
		if out != "" {
			if err := refuseOverwriting(out, force); err != nil {
				return err
			}
		}
		client, status, err := runningNode(cmd.Context(), folder)
		if err != nil {
			return err
		}
		defer client.Close()
		self, err := wire.ParsePeerIDString(status.Peer)
		if err != nil {
			return fmt.Errorf("the node's answer: %w", err)
		}
		late := fmt.Errorf("the environment did not come within --timeout %s: what came is kept for a while; try again", patience)
		ctx, cancel := context.WithTimeoutCause(cmd.Context(), patience, late)
		defer cancel()
		status = awaitMember(ctx, client, status)
		pull := puller{client: client, folder: folder, connected: status.Connected, owner: node.Owner{Settings: loaded.Rollout.Environments, Self: self}}
		file, holders, err := pull.fetch(ctx, wanted, func(m wire.EnvironmentManifest, author wire.PeerID) error {
			if out == "" {
				out = m.Name + "-" + m.Version + packageExtension
			}
			if err := refuseOverwriting(out, force); err != nil {
				return err
			}
			if !p.json {
				fmt.Fprintf(p.err, "lightswarm: fetching %s@%s by %s, %d bytes\n", m.Name, m.Version, author, env.FileBytes(m))
			}
			return nil
		})
		if err != nil {
			if cause := context.Cause(ctx); errors.Is(cause, late) {
				return cause
			}
			return err
		}
		encoded := file.Encode()
		if err := durable.WriteFile(out, encoded, 0o666); err != nil {
			return fmt.Errorf("write the package: %w", err)
		}
		if _, err := client.KeepEnvironment(ctx, encoded); err != nil {
			return fmt.Errorf("%s is written, but the node does not keep the package for others: %w", out, refusedEnvironment(folder, err))
		}
		r := sharedEnvironment{
			CID: file.CID().String(), Reference: file.Statement.Reference(), Author: file.Statement.Author.String(),
			Bytes: file.Bytes(), Members: holders, File: out,
		}
		return p.print(r, func(w io.Writer) {
			fmt.Fprintf(w, "package  %s, %d bytes\n", r.File, len(encoded))
			fmt.Fprintf(w, "cid      %s\n", r.CID)
			fmt.Fprintf(w, "signed   %s\n", r.Reference)
		})
	}
	return c
}

// refuseOverwriting is an error if there is something of a file's name already, unless it is a file and force is set.
func refuseOverwriting(name string, force bool) error {
	info, err := os.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return usage(fmt.Errorf("%s is a folder: name a file with --out", name))
	case !force:
		return usage(fmt.Errorf("%s exists already: name another file with --out, or overwrite it with --force", name))
	}
	return nil
}

// awaitMember gives a node that has just started a moment to connect to its first member.
func awaitMember(ctx context.Context, c *api.Client, status api.Status) api.Status {
	ctx, cancel := context.WithTimeout(ctx, memberPatience)
	defer cancel()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for status.Connected == 0 {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return status
		}
		if newer, err := c.Status(ctx); err == nil {
			status = newer
		}
	}
	return status
}

// environmentID is what a user calls a package: the manifest's CID, or author/name@version.
type environmentID struct {
	text     string
	manifest wire.CID // undefined if it is a reference
}

func parseEnvironmentID(text string) (environmentID, error) {
	if cid, err := wire.ParseCIDString(text); err == nil {
		return environmentID{text, cid}, nil
	}
	author, rest, _ := strings.Cut(text, "/")
	name, version, _ := strings.Cut(rest, "@")
	if _, err := wire.ParsePeerIDString(author); err != nil || !wire.PackageName(name) || !wire.PackageVersion(version) {
		return environmentID{}, fmt.Errorf("%q is neither a CID, which starts with bafkrei, nor author/name@version: copy it from lightswarm env publish or lightswarm env list --network", text)
	}
	return environmentID{text: text}, nil
}
