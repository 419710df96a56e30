package node

import (
	"context"
	"crypto/ed25519"
	"fmt"

	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/wire"
)

// maxEnvironmentBytes bounds the packages of a network together, which its rollout nodes hold in memory.
const maxEnvironmentBytes = 256 << 20

// openEnvironments makes every environment of the charter ready to run on a rollout node. What the node does not have it
// gets from members, by CID, until ctx ends; nothing of it runs before all of it is there and verified.
func (n *Node) openEnvironments(ctx context.Context, private ed25519.PrivateKey) error {
	if !n.roles.Has(wire.RoleRollout) {
		return nil // It runs none.
	}
	room := uint64(maxEnvironmentBytes)
	var packages []*env.Package
	for _, reference := range n.charter.Environments {
		if e, err := n.environments.Get(reference.Manifest); err == nil {
			if err := n.owner().AllowKind(e.Manifest()); err != nil {
				return err
			}
			continue
		}
		p, err := n.findPackage(ctx, private, reference, room)
		if err != nil {
			return err
		}
		room -= p.Bytes()
		packages = append(packages, p)
	}
	for _, p := range packages {
		e, err := n.options.Drivers.Open(ctx, p)
		if err != nil {
			return n.cannotRun(err)
		}
		n.opened = append(n.opened, e)
	}
	var err error
	n.environments, err = n.environments.With(n.opened...)
	return err
}

// findPackage gets a package from the store, and into it from members what is missing there. The blocks are pinned before
// they come, so that one that fails goes on where it stopped.
func (n *Node) findPackage(ctx context.Context, private ed25519.PrivateKey, reference wire.EnvironmentRef, room uint64) (*env.Package, error) {
	set := "environment/" + reference.Manifest.String()
	manifest := wire.BlockRef{CID: reference.Manifest, Bytes: wire.MaxManifestBytes}
	if err := n.store.Pin(set, manifest.CID); err != nil {
		return nil, err
	}
	what := fmt.Sprintf("the environment %q", reference.Name)
	if err := n.findBlocks(ctx, private, what, manifest); err != nil {
		return nil, err
	}
	m, err := n.manifest(manifest.CID)
	if err != nil {
		return nil, err
	}
	if err := n.owner().AllowKind(m); err != nil {
		return nil, err
	}
	if err := n.findAuthor(ctx, private, m, manifest.CID); err != nil {
		return nil, err
	}
	// A task beyond the last one would end in an error again and again.
	if reference.TrainTasks > m.Tasks(wire.SplitTrain) || reference.ValidationTasks > m.Tasks(wire.SplitValidation) {
		return nil, fmt.Errorf("environment %s@%s has fewer tasks than the charter of network %q says: its founder has to found another one", m.Name, m.Version, n.charter.Name)
	}
	if bytes := env.FileBytes(m); bytes > room {
		return nil, fmt.Errorf("environment %s@%s has files of %d MiB: the environments of a network together may have %d MiB; run rollouts for another network",
			m.Name, m.Version, bytes>>20, maxEnvironmentBytes>>20)
	}
	var refs []wire.BlockRef
	cids := []wire.CID{manifest.CID}
	for _, a := range m.Artefacts {
		refs = append(refs, a.Blocks...)
		for _, ref := range a.Blocks {
			cids = append(cids, ref.CID)
		}
	}
	if err := n.store.SetPins(set, cids...); err != nil {
		return nil, err
	}
	if err := n.findBlocks(ctx, private, what, refs...); err != nil {
		return nil, err
	}
	return env.AssemblePackage(ctx, manifest.CID, func(_ context.Context, cid wire.CID) ([]byte, error) { return n.store.Get(cid) })
}

// findBlocks gets into the store what is missing there.
func (n *Node) findBlocks(ctx context.Context, private ed25519.PrivateKey, what string, refs ...wire.BlockRef) error {
	var missing []wire.BlockRef
	for _, ref := range refs {
		there, err := n.store.Has(ref.CID)
		if err != nil {
			return err
		}
		if !there {
			missing = append(missing, ref)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	n.log.Info("asking members for "+what, "blocks", len(missing))
	return n.askMembers(ctx, n.charter.ID, private, func(j *joiner) error { return j.blocks(ctx, n.store, what, missing...) })
}

// manifest is that of an environment that the node can run or keeps, else an error that wraps block.ErrNotFound.
func (n *Node) manifest(cid wire.CID) (wire.EnvironmentManifest, error) {
	if e, err := n.environments.Get(cid); err == nil {
		return e.Manifest(), nil
	}
	raw, err := n.store.Get(cid)
	if err != nil {
		return wire.EnvironmentManifest{}, fmt.Errorf("read the manifest of environment %s: %w", cid, err)
	}
	return wire.DecodeManifest(raw)
}
