package node

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lightswarm/lightswarm/node/api"
	"github.com/lightswarm/lightswarm/node/store"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/pack"
	"github.com/lightswarm/lightswarm/wire"
)

// refusal is an answer of the local API that says what is wrong.
func refusal(code, format string, values ...any) error {
	return &api.Error{Code: code, Message: fmt.Sprintf(format, values...)}
}

// Environments implements api.Node: what this node keeps, and what members say that they keep. Of one author there is one
// entry for a manifest. Entries are ordered as p2p.Network.FindPackages orders them, the node's own first.
func (n *Node) Environments(ctx context.Context, cid string, everywhere bool) ([]api.Environment, error) {
	var manifest wire.CID
	if cid != "" {
		var err error
		if manifest, err = wire.ParseCIDString(cid); err != nil {
			return nil, refusal("bad_request", "%q is no CID: copy the whole one, which starts with bafkrei", cid)
		}
	}
	kept, err := n.keptPackages(manifest)
	if err != nil {
		return nil, err
	}
	var list []api.Environment
	at := make(map[string]int)
	for _, p := range kept {
		at[p.Author.String()+p.Manifest.String()] = len(list)
		list = append(list, environmentJSON(p, true))
	}
	for _, o := range n.network.FindPackages(ctx, manifest, everywhere) {
		k := o.Author.String() + o.Manifest.String()
		i, there := at[k]
		if !there {
			i = len(list)
			at[k] = i
			list = append(list, environmentJSON(o.SignedEnvironmentPackage, false))
		}
		for _, holder := range o.Holders {
			if text := holder.String(); !slices.Contains(list[i].Holders, text) {
				list[i].Holders = append(list[i].Holders, text)
			}
		}
	}
	return list, nil
}

func environmentJSON(p wire.SignedEnvironmentPackage, kept bool) api.Environment {
	return api.Environment{
		CID: p.Manifest.String(), Name: p.Name, Version: p.Version, Author: p.Author.String(), Reference: p.Reference(),
		Signed: p.Created, Statement: p.Raw, Kept: kept, Holders: []string{},
	}
}

// KeepEnvironment implements api.Node. A version of an author's environment stays what it is: the same again is kept as it
// was, another package under its name and version is refused.
func (n *Node) KeepEnvironment(_ context.Context, file []byte) (api.Environment, error) {
	f, err := pack.Decode(file)
	switch {
	case err != nil:
		return api.Environment{}, refusal("bad_request", "%s", err)
	case f.Statement == nil:
		return api.Environment{}, refusal("bad_request", "nobody signed the package: build it with lightswarm env build")
	}
	if err := env.CheckManifest(f.Manifest()); err != nil {
		return api.Environment{}, refusal("bad_request", "%s", err)
	}
	statement := *f.Statement
	kept, err := n.keptPackages(wire.CID{})
	if err != nil {
		return api.Environment{}, err
	}
	for _, p := range kept {
		switch {
		case p.Author != statement.Author || p.Name != statement.Name || p.Version != statement.Version:
		case p.Manifest != statement.Manifest:
			return api.Environment{}, refusal("conflict", "%s is another package already, %s: give this one a new version", p.Reference(), p.Manifest)
		default:
			statement = p
		}
	}
	err = n.store.KeepPackage(statement, f.Blocks())
	if errors.Is(err, store.ErrFull) || errors.Is(err, store.ErrPackages) {
		return api.Environment{}, refusal("full", "%s; lightswarm env remove makes room", err)
	}
	if err != nil {
		return api.Environment{}, err
	}
	n.network.PackagesChanged()
	n.log.Info("keeping an environment package", "package", statement.Reference(), "cid", statement.Manifest)
	return environmentJSON(statement, true), nil
}

// DropEnvironment implements api.Node.
func (n *Node) DropEnvironment(cid string) error {
	manifest, err := wire.ParseCIDString(cid)
	if err != nil {
		return refusal("bad_request", "%q is no CID: copy the whole one, which starts with bafkrei", cid)
	}
	for _, reference := range n.charter.Environments {
		if reference.Manifest == manifest {
			return refusal("conflict", "this network trains on %s: it stays as long as the data folder belongs to the network", reference.Name)
		}
	}
	found, err := n.store.DropPackage(manifest)
	switch {
	case err != nil:
		return err
	case !found:
		return refusal("not_found", "this node does not keep the package %s: see lightswarm env list --network", cid)
	}
	n.network.PackagesChanged()
	return nil
}
