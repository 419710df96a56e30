package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/lightswarm/lightswarm/node/api"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/pack"
	"github.com/lightswarm/lightswarm/wire"
)

// sharedEnvironment is what `env publish --json` and `env pull --json` print.
type sharedEnvironment struct {
	CID string `json:"cid"`
	// Reference is the package as people write it: author/name@version.
	Reference string `json:"reference"`
	Author    string `json:"author"`
	// Bytes are those of the package's files.
	Bytes uint64 `json:"bytes"`
	// Members are connected: who may ask for it, or who keeps it too.
	Members int `json:"members"`
	// File is what pull wrote.
	File string `json:"file,omitempty"`
}

func (p *program) envPublish() *cobra.Command {
	c := &cobra.Command{
		Use:   "publish FOLDER|FILE",
		Short: "Let the members of a network have an environment",
		Long: `Give an environment to the node that runs on the data folder, which keeps it and serves it to the members of its network.
They get it with lightswarm env pull and its CID, and serve it to others.

A folder, and a file that nobody signed, is signed with the identity of the data folder; a file of another author stays
theirs. A version that was published stays what it is: change the version to publish something else.`,
		Example: `  lightswarm env publish ./letters --data ./mynet
  lightswarm env publish letters-0.1.0.lsenv`,
		Args: takes(1, 1),
	}
	data := p.dataFlag(c)
	c.RunE = func(cmd *cobra.Command, arguments []string) error {
		folder, err := data()
		if err != nil {
			return usage(err)
		}
		client, status, err := runningNode(cmd.Context(), folder)
		if err != nil {
			return err
		}
		defer client.Close()
		a, err := findEnvironment(cmd.Context(), arguments[0])
		switch {
		case err != nil:
			return err
		case a.from == env.KindBuiltin:
			return usage(fmt.Errorf("%s is built in: every node has it", arguments[0]))
		}
		if a.Statement == nil {
			key, err := authorKey(folder)
			if err != nil {
				return err
			}
			if a.File, err = pack.Sign(a.Package, key, time.Now()); err != nil {
				return err
			}
		}
		kept, err := client.KeepEnvironment(cmd.Context(), a.Encode())
		if err != nil {
			return refusedEnvironment(folder, err)
		}
		r := sharedEnvironment{CID: kept.CID, Reference: kept.Reference, Author: kept.Author, Bytes: a.Bytes(), Members: status.Connected}
		return p.print(r, func(w io.Writer) {
			fmt.Fprintf(w, "published  %s, %d bytes, to the members of %s, %d of them connected\n", r.Reference, r.Bytes, status.Network.Name, r.Members)
			fmt.Fprintf(w, "cid        %s\n", r.CID)
			fmt.Fprintf(w, "pull       lightswarm env pull %s\n", r.CID)
		})
	}
	return c
}

func (p *program) envRemove() *cobra.Command {
	c := &cobra.Command{
		Use:   "remove CID",
		Short: "Keep a published or pulled environment no longer",
		Long: `Make the node that runs on the data folder keep a package no longer that it published or pulled. Members who have it keep
it, and serve it to others.`,
		Example: "  lightswarm env remove bafkrei… --data ./mynet",
		Args:    takes(1, 1),
	}
	data := p.dataFlag(c)
	c.RunE = func(cmd *cobra.Command, arguments []string) error {
		if _, err := wire.ParseCIDString(arguments[0]); err != nil {
			return usage(fmt.Errorf("%q is no CID: copy it from lightswarm env list --network", arguments[0]))
		}
		folder, err := data()
		if err != nil {
			return usage(err)
		}
		client, err := client(folder)
		if err != nil {
			return err
		}
		defer client.Close()
		if err := client.DropEnvironment(cmd.Context(), arguments[0]); err != nil {
			return refusedEnvironment(folder, err)
		}
		type result struct {
			CID string `json:"cid"`
		}
		return p.print(result{arguments[0]}, func(w io.Writer) { fmt.Fprintf(w, "removed  %s\n", arguments[0]) })
	}
	return c
}

// networkEnvironments prints what the node on a data folder and the members that it reaches keep.
func (p *program) networkEnvironments(ctx context.Context, folder string) error {
	client, err := client(folder)
	if err != nil {
		return err
	}
	defer client.Close()
	list, err := client.Environments(ctx, "", false)
	if err != nil {
		return noNode(folder, err)
	}
	return p.print(list, func(w io.Writer) {
		for _, e := range list {
			where := "1 member"
			if n := len(e.Holders); n != 1 {
				where = fmt.Sprintf("%d members", n)
			}
			if e.Kept {
				where = "here, " + where
			}
			fmt.Fprintf(w, "%s@%s  %s  %s  by %s\n", e.Name, e.Version, e.CID, where, e.Author)
		}
	})
}

// runningNode is a client of the node on a data folder, and what the node says of itself. The caller closes the client.
func runningNode(ctx context.Context, folder string) (*api.Client, api.Status, error) {
	c, err := client(folder)
	if err != nil {
		return nil, api.Status{}, err
	}
	status, err := c.Status(ctx)
	if err != nil {
		c.Close()
		return nil, api.Status{}, noNode(folder, err)
	}
	return c, status, nil
}

// refusedEnvironment makes what the user can put right in an argument the user's mistake.
func refusedEnvironment(folder string, err error) error {
	var refused *api.Error
	if errors.As(err, &refused) && (refused.Code == "conflict" || refused.Code == "not_found") {
		return usage(err)
	}
	return noNode(folder, err)
}
