package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/lightswarm/lightswarm/node"
	"github.com/lightswarm/lightswarm/node/api"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/pack"
	"github.com/lightswarm/lightswarm/wire"
)

// puller gets packages through a running node.
type puller struct {
	client    *api.Client
	folder    string
	connected int
	owner     node.Owner
}

// fetch finds a package, checks that the owner lets the node run it, tells of it before it asks for its files, which tell
// may refuse, and gets all of it. It also returns how many members say that they keep the package. If none of those sends
// all of it, it looks for others and begins again.
func (p *puller) fetch(ctx context.Context, id environmentID, tell func(wire.EnvironmentManifest, wire.PeerID) error) (pack.File, int, error) {
	found, err := p.find(ctx, id, false)
	if err != nil {
		return pack.File{}, 0, err
	}
	file, err := p.get(ctx, found, tell)
	var refused *api.Error
	if errors.As(err, &refused) && refused.Code == "not_found" {
		manifest := found[0].statement.Manifest
		wider, findErr := p.find(ctx, environmentID{manifest.String(), manifest}, true)
		if findErr != nil {
			return pack.File{}, 0, err
		}
		found = append(found, wider...)
		file, err = p.get(ctx, found, tell)
	}
	return file, len(holders(found)), err
}

// get gets a package that was found.
func (p *puller) get(ctx context.Context, found []candidate, tell func(wire.EnvironmentManifest, wire.PeerID) error) (pack.File, error) {
	blocks := newBlockSource(p.client, holders(found))
	cid := found[0].statement.Manifest
	raw, err := blocks.get(ctx, cid)
	if err != nil {
		return pack.File{}, fmt.Errorf("get the manifest of %s: %w", found[0].statement.Reference(), noNode(p.folder, err))
	}
	if err := cid.Verify(raw); err != nil {
		return pack.File{}, err
	}
	m, err := wire.DecodeManifest(raw)
	if err == nil {
		err = env.CheckManifest(m)
	}
	if err != nil {
		return pack.File{}, err
	}
	statement, err := statementOf(m, found)
	if err != nil {
		return pack.File{}, err
	}
	if err := p.owner.AllowKind(m); err != nil {
		return pack.File{}, usage(err)
	}
	if err := p.owner.AllowAuthor(m, statement.Author); err != nil {
		return pack.File{}, usage(err)
	}
	if err := tell(m, statement.Author); err != nil {
		return pack.File{}, err
	}
	made, err := env.AssemblePackage(ctx, cid, func(ctx context.Context, block wire.CID) ([]byte, error) {
		if block == cid {
			return raw, nil
		}
		return blocks.get(ctx, block)
	})
	if err != nil {
		return pack.File{}, fmt.Errorf("get %s: %w", statement.Reference(), noNode(p.folder, err))
	}
	return pack.File{Package: made, Statement: &statement}, nil
}

// candidate is a statement that may be the one that the user means, and who says to keep its package.
type candidate struct {
	statement wire.SignedEnvironmentPackage
	holders   []string
}

// find returns what the user may mean, of what the node and others keep: statements about one manifest. Those by authors
// whose packages the owner runs come first, and of these the first to sign.
func (p *puller) find(ctx context.Context, id environmentID, everywhere bool) ([]candidate, error) {
	wanted := ""
	if id.manifest.Defined() {
		wanted = id.text
	}
	list, err := p.client.Environments(ctx, wanted, everywhere)
	if err != nil {
		return nil, noNode(p.folder, err)
	}
	return p.candidates(list, id)
}

func (p *puller) candidates(list []api.Environment, id environmentID) ([]candidate, error) {
	var found []candidate
	for _, e := range list {
		s, err := wire.OpenEnvironmentPackage(e.Statement)
		if err != nil {
			continue // Another one may be sound.
		}
		if id.manifest.Defined() && s.Manifest == id.manifest || s.Reference() == id.text {
			found = append(found, candidate{s, e.Holders})
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("nobody has %s who can be reached, of %d connected members: a node that keeps it has to run; see lightswarm env list --network and lightswarm status", id.text, p.connected)
	}
	for _, c := range found[1:] {
		if c.statement.Manifest != found[0].statement.Manifest {
			return nil, fmt.Errorf("its author signed two packages as %s, %s and %s: name the one that you want by its CID", id.text, found[0].statement.Manifest, c.statement.Manifest)
		}
	}
	slices.SortStableFunc(found, func(a, b candidate) int {
		x, y := p.owner.Runs(a.statement.Author), p.owner.Runs(b.statement.Author)
		if x != y {
			return map[bool]int{true: -1, false: 1}[x]
		}
		return cmp.Or(a.statement.Created.Compare(b.statement.Created), cmp.Compare(a.statement.Author, b.statement.Author))
	})
	return found, nil
}

// statementOf is the first of the statements that is about the environment that the manifest is. Anybody can sign that the
// manifest is something else, which is no reason to do without it.
func statementOf(m wire.EnvironmentManifest, found []candidate) (wire.SignedEnvironmentPackage, error) {
	for _, c := range found {
		if c.statement.Name == m.Name && c.statement.Version == m.Version {
			return c.statement, nil
		}
	}
	s := found[0].statement
	return s, fmt.Errorf("%s signed %s@%s, and the manifest is of %s@%s: the signature is not about this environment", s.Author, s.Name, s.Version, m.Name, m.Version)
}

// holders are all who say that they keep a package, whatever statement they have about it.
func holders(found []candidate) (list []string) {
	for _, c := range found {
		list = append(list, c.holders...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// blockSource gets blocks of a package through a node, from members that say that they keep it.
type blockSource struct {
	client *api.Client
	// groups of members, each as many as the node asks for one block; first the one that sent the last block.
	groups [][]string
}

// newBlockSource asks members in an order by chance, so that nobody can be the one that is always asked first.
func newBlockSource(client *api.Client, members []string) *blockSource {
	members = slices.Clone(members)
	rand.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	groups := slices.Collect(slices.Chunk(members, api.MaxHints))
	if len(groups) == 0 {
		groups = [][]string{nil} // The node itself may have it.
	}
	return &blockSource{client, groups}
}

// get asks one group after the other, again as long as some of them are only late: the node goes on with what is on its way.
func (s *blockSource) get(ctx context.Context, cid wire.CID) ([]byte, error) {
	for {
		late := false
		var last error
		for i, group := range s.groups {
			raw, err := s.client.Block(ctx, cid.String(), group...)
			if err == nil {
				s.groups[0], s.groups[i] = s.groups[i], s.groups[0]
				return raw, nil
			}
			var refused *api.Error
			if !errors.As(err, &refused) || ctx.Err() != nil {
				return nil, err
			}
			late = late || refused.Code == "timeout"
			last = err
		}
		if !late {
			return nil, last
		}
	}
}
