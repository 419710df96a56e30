package node

import (
	"crypto/rand"
	"fmt"
	"maps"
	"time"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/policy/base"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/wire"
)

// Founding says what network to make. Start from DefaultFounding.
type Founding struct {
	Name string
	// Learners may sign releases besides the founder.
	Learners []wire.PeerID
	// Environments are trained on. They must be in the node's set, or among Packages: see Train.
	Environments []wire.EnvironmentRef
	// Packages are kept by the founder, who serves them to others.
	Packages []*env.Package
	// Statements are what the packages' authors signed about them, which the founder keeps too; the founder signs those
	// about which there is none.
	Statements []wire.SignedEnvironmentPackage
	// Base is version 0; nil means the policy that is built into the program.
	Base       *policy.Snapshot
	Rollout    wire.RolloutRules
	Evaluation wire.EvaluationRules
	// Created and Nonce make networks of the same rules distinct; zero values mean now and a random one.
	Created time.Time
	Nonce   []byte
}

// DefaultFounding returns a network of these environments with rules that suit the built-in policy.
func DefaultFounding(name string, environments ...env.Environment) (Founding, error) {
	f := Founding{
		Name: name,
		Rollout: wire.RolloutRules{
			GroupSize:           8,
			MaxCalls:            4,
			MaxCompletionTokens: 48,
			Sampling:            wire.Sampling{Temperature: 1},
			MaxLag:              3,
			GroupsPerVersion:    8,
		},
		Evaluation: wire.EvaluationRules{Tasks: 256, BlockTasks: 32},
	}
	for _, e := range environments {
		reference, err := env.Reference(e)
		if err != nil {
			return Founding{}, fmt.Errorf("found network %q: %w", name, err)
		}
		f.Environments = append(f.Environments, reference)
	}
	return f, nil
}

// Train adds an environment that comes as a package, with a share in task draws. A version is measured on no more tasks
// than the environment holds out.
func (f *Founding) Train(p *env.Package, weight uint32) error {
	m := p.Manifest()
	reference := p.Reference()
	reference.Weight = weight
	held := p.Bytes()
	for _, other := range f.Packages {
		held += other.Bytes()
	}
	switch {
	case reference.TrainTasks == 0:
		return fmt.Errorf("environment %s@%s has no split %q, which networks train on: add one", m.Name, m.Version, wire.SplitTrain)
	case held > maxEnvironmentBytes:
		return fmt.Errorf("environment %s@%s: the environments of a network together may have %d MiB", m.Name, m.Version, maxEnvironmentBytes>>20)
	}
	f.Environments = append(f.Environments, reference)
	f.Packages = append(f.Packages, p)
	f.Evaluation.Tasks = uint32(min(uint64(f.Evaluation.Tasks), reference.ValidationTasks))
	return nil
}

// sign gives the statement about each package to keep, and one by the founder where nobody made one.
func (f *Founding) sign(founder wire.Key, at time.Time, keep func(wire.SignedEnvironmentPackage, map[wire.CID][]byte) error) error {
	signed := make(map[wire.CID]bool)
	for _, s := range f.Statements {
		signed[s.Manifest] = true
		if err := keep(s, nil); err != nil { // The blocks are kept as the network's.
			return err
		}
	}
	for _, p := range f.Packages {
		m := p.Manifest()
		if signed[p.CID()] || env.CheckManifest(m) != nil {
			continue
		}
		s, err := wire.SignEnvironmentPackage(founder, wire.EnvironmentPackage{Name: m.Name, Version: m.Version, Manifest: p.CID(), Created: at})
		if err == nil {
			err = keep(s, nil)
		}
		if err != nil {
			return fmt.Errorf("sign environment %s@%s: %w", m.Name, m.Version, err)
		}
	}
	return nil
}

// charter signs the network's charter and returns it with every block that belongs to the network: the charter itself,
// the base policy, the environments' manifests and the packages' files.
func (f Founding) charter(key wire.Key, environments *env.Set) (wire.SignedCharter, map[wire.CID][]byte, error) {
	fail := func(err error) (wire.SignedCharter, map[wire.CID][]byte, error) {
		return wire.SignedCharter{}, nil, fmt.Errorf("found network %q: %w", f.Name, err)
	}
	if f.Base == nil {
		var err error
		if f.Base, err = base.Load(); err != nil {
			return fail(err)
		}
	}
	if f.Created.IsZero() {
		f.Created = time.Now()
	}
	if f.Nonce == nil {
		f.Nonce = make([]byte, 16)
		rand.Read(f.Nonce)
	}
	anchor, list, err := f.Base.Encode()
	if err != nil {
		return fail(err)
	}
	blocks := make(map[wire.CID][]byte, len(list)+2)
	for _, b := range list {
		blocks[b.CID] = b.Data
	}
	packaged := make(map[wire.CID]bool, len(f.Packages))
	for _, p := range f.Packages {
		packaged[p.CID()] = true
		maps.Copy(blocks, p.Blocks())
	}
	for _, reference := range f.Environments {
		if packaged[reference.Manifest] {
			continue
		}
		e, err := environments.Get(reference.Manifest)
		if err != nil {
			return fail(fmt.Errorf("environment %q: %w", reference.Name, err))
		}
		manifest, err := wire.EncodeManifest(e.Manifest())
		if err != nil {
			return fail(err)
		}
		blocks[reference.Manifest] = manifest
	}
	charter, err := wire.SignCharter(key, wire.Charter{
		Name:         f.Name,
		Created:      f.Created,
		Nonce:        f.Nonce,
		Learners:     append([]wire.PeerID{key.Peer()}, f.Learners...),
		Environments: f.Environments,
		Base:         wire.PolicyRef{Digest: f.Base.Digest(), StateDigest: f.Base.State, Anchor: anchor},
		Rollout:      f.Rollout,
		Evaluation:   f.Evaluation,
	})
	if err != nil {
		return fail(err)
	}
	blocks[charter.ID] = charter.Raw
	return charter, blocks, nil
}
