package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lightswarm/lightswarm/durable"
	"github.com/lightswarm/lightswarm/node"
	"github.com/lightswarm/lightswarm/node/api"
	"github.com/lightswarm/lightswarm/node/config"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/pack"
	"github.com/lightswarm/lightswarm/wire"
)

// memberPatience is how long pull waits for the node's first member.
const memberPatience = 15 * time.Second

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

func (p *program) envPull() *cobra.Command {
	out, patience := "", time.Duration(0)
	c := &cobra.Command{
		Use:   "pull ID",
		Short: "Get an environment from the members of a network",
		Long: `Get a package that a member published, by its CID or as author/name@version, through the node that runs on the data
folder, and write it into a file: what lightswarm env check, env run, network create --env and testnet --env take. The
node keeps it and serves it to others, until lightswarm env remove.

Every block is checked against the CID, and the author's signature against the manifest. What the data folder's settings do
not let the node run is refused before its files are asked for: see rollout.environments.kinds and
rollout.environments.signers.`,
		Example: `  lightswarm env pull bafkrei… --data ./volunteer
  lightswarm env pull 12D3Koo…/letters@0.1.0 --out letters.lsenv`,
		Args: takes(1, 1),
	}
	data := p.dataFlag(c)
	c.Flags().StringVar(&out, "out", "", "file to write (default NAME-VERSION"+packageExtension+")")
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
		file, holders, err := pull.fetch(ctx, wanted, func(m wire.EnvironmentManifest, author wire.PeerID) {
			if !p.json {
				fmt.Fprintf(p.err, "lightswarm: fetching %s@%s by %s, %d bytes\n", m.Name, m.Version, author, env.FileBytes(m))
			}
		})
		if err != nil {
			if cause := context.Cause(ctx); errors.Is(cause, late) {
				return cause
			}
			return err
		}
		if out == "" {
			out = file.Statement.Name + "-" + file.Statement.Version + packageExtension
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
	list, err := client.Environments(ctx, "")
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

// refusedEnvironment makes what the user can put right in an argument the user's mistake.
func refusedEnvironment(folder string, err error) error {
	var refused *api.Error
	if errors.As(err, &refused) && (refused.Code == "conflict" || refused.Code == "not_found") {
		return usage(err)
	}
	return noNode(folder, err)
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

// puller gets packages through a running node.
type puller struct {
	client    *api.Client
	folder    string
	connected int
	owner     node.Owner
}

// fetch finds a package, checks that the owner lets the node run it, which it tells before it asks for its files, and gets
// all of it. It also returns how many connected members keep the package.
func (p *puller) fetch(ctx context.Context, id environmentID, tell func(wire.EnvironmentManifest, wire.PeerID)) (pack.File, int, error) {
	fail := func(err error) (pack.File, int, error) { return pack.File{}, 0, err }
	wanted := ""
	if id.manifest.Defined() {
		wanted = id.text
	}
	list, err := p.client.Environments(ctx, wanted)
	if err != nil {
		return fail(noNode(p.folder, err))
	}
	e, statement, err := p.choose(list, id)
	if err != nil {
		return fail(err)
	}
	get := func(ctx context.Context, cid wire.CID) ([]byte, error) {
		for {
			raw, err := p.client.Block(ctx, cid.String(), e.Holders...)
			var refused *api.Error
			if errors.As(err, &refused) && refused.Code == "timeout" && ctx.Err() == nil {
				continue // The link is slow; the node goes on with what is on its way.
			}
			return raw, noNode(p.folder, err)
		}
	}
	raw, err := get(ctx, statement.Manifest)
	if err != nil {
		return fail(fmt.Errorf("get the manifest of %s: %w", statement.Reference(), err))
	}
	if err := statement.Manifest.Verify(raw); err != nil {
		return fail(err)
	}
	m, err := wire.DecodeManifest(raw)
	if err == nil {
		err = env.CheckManifest(m)
	}
	switch {
	case err != nil:
		return fail(err)
	case m.Name != statement.Name || m.Version != statement.Version:
		return fail(fmt.Errorf("%s signed %s@%s, and the manifest is of %s@%s: the signature is not about this environment", statement.Author, statement.Name, statement.Version, m.Name, m.Version))
	}
	if err := p.owner.AllowKind(m); err != nil {
		return fail(usage(err))
	}
	if err := p.owner.AllowAuthor(m, statement.Author); err != nil {
		return fail(usage(err))
	}
	tell(m, statement.Author)
	made, err := env.AssemblePackage(ctx, statement.Manifest, func(ctx context.Context, cid wire.CID) ([]byte, error) {
		if cid == statement.Manifest {
			return raw, nil
		}
		return get(ctx, cid)
	})
	if err != nil {
		return fail(fmt.Errorf("get %s: %w", statement.Reference(), err))
	}
	return pack.File{Package: made, Statement: &statement}, len(e.Holders), nil
}

// choose returns what the user means, of what the node and members keep. If several signed the same manifest, it is by one
// whose packages the owner runs, and of these the first to sign.
func (p *puller) choose(list []api.Environment, id environmentID) (api.Environment, wire.SignedEnvironmentPackage, error) {
	type candidate struct {
		api.Environment
		statement wire.SignedEnvironmentPackage
	}
	var found []candidate
	for _, e := range list {
		s, err := wire.OpenEnvironmentPackage(e.Statement)
		if err != nil {
			return api.Environment{}, s, fmt.Errorf("the node's answer: %w", err)
		}
		if id.manifest.Defined() && s.Manifest == id.manifest || s.Reference() == id.text {
			found = append(found, candidate{e, s})
		}
	}
	if len(found) == 0 {
		return api.Environment{}, wire.SignedEnvironmentPackage{}, fmt.Errorf("nobody has %s who can be reached, of %d connected members: a node that keeps it has to run; see lightswarm env list --network and lightswarm status", id.text, p.connected)
	}
	if !id.manifest.Defined() {
		for _, c := range found[1:] {
			if c.statement.Manifest != found[0].statement.Manifest {
				return api.Environment{}, c.statement, fmt.Errorf("its author signed two packages as %s, %s and %s: name the one that you want by its CID", id.text, found[0].CID, c.CID)
			}
		}
	}
	first := slices.MinFunc(found, func(a, b candidate) int {
		if x, y := p.owner.Runs(a.statement.Author), p.owner.Runs(b.statement.Author); x != y {
			return map[bool]int{true: -1, false: 1}[x]
		}
		return a.statement.Created.Compare(b.statement.Created)
	})
	return first.Environment, first.statement, nil
}
