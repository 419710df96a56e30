package node

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/lightswarm/lightswarm/node/config"
	"github.com/lightswarm/lightswarm/node/store"
	"github.com/lightswarm/lightswarm/p2p/packages"
	"github.com/lightswarm/lightswarm/wire"
)

var (
	// ErrKind says that an environment is of a kind that the node's owner does not run.
	ErrKind = errors.New("this node does not run environments of its kind")
	// ErrAuthor says that an environment package is by nobody whose packages the node's owner runs.
	ErrAuthor = errors.New("this node does not run packages of its author")
)

const (
	// authorPatience is how long a node asks members for a statement by an author whose packages it runs.
	authorPatience = time.Minute
	// authorDoubt is how long it goes on once it knows of statements by other authors alone: no single member that names
	// a stranger keeps a node out.
	authorDoubt = 3 * time.Second
	// authorsShown is how many of those are named to the user.
	authorsShown = 4
)

// Owner is what a node's owner lets it run.
type Owner struct {
	Settings config.Environments
	// Self is the node: what it signed itself it runs, if it is of a kind that it runs.
	Self wire.PeerID
}

func (n *Node) owner() Owner { return Owner{n.options.Config.Rollout.Environments, n.key.Peer()} }

// AllowKind returns an error that wraps ErrKind if the owner does not run environments of the manifest's kind.
func (o Owner) AllowKind(m wire.EnvironmentManifest) error {
	kinds := o.Settings.Kinds
	if slices.Contains(kinds, m.Kind) {
		return nil
	}
	return fmt.Errorf("environment %s@%s is of kind %q: %w: the setting rollout.environments.kinds is %s: add %s to it, or run another environment",
		m.Name, m.Version, m.Kind, ErrKind, strings.Join(kinds, ","), m.Kind)
}

// Any says that the owner runs packages by anybody.
func (o Owner) Any() bool { return len(o.Settings.Signers) == 0 }

// Runs says whether the owner runs an author's packages.
func (o Owner) Runs(author wire.PeerID) bool {
	return o.Any() || author == o.Self || slices.Contains(o.Settings.Signers, author.String())
}

// AllowAuthor returns an error that wraps ErrAuthor if the owner runs packages of none of the authors who signed that the
// manifest is theirs.
func (o Owner) AllowAuthor(m wire.EnvironmentManifest, authors ...wire.PeerID) error {
	if o.Any() || slices.ContainsFunc(authors, o.Runs) {
		return nil
	}
	signed := "by nobody that members know"
	if len(authors) > 0 {
		var names []string
		for _, a := range authors {
			names = append(names, a.String())
		}
		signed = "by " + strings.Join(names, " and ")
	}
	return fmt.Errorf("environment %s@%s is signed %s: %w: the setting rollout.environments.signers is %s: add the author to it, or run another environment",
		m.Name, m.Version, signed, ErrAuthor, strings.Join(o.Settings.Signers, ","))
}

// findAuthor makes sure that an environment of the charter that comes as a package is by an author whose packages the
// node's owner runs. The statement comes from the store or from members, and is kept.
func (n *Node) findAuthor(ctx context.Context, private ed25519.PrivateKey, m wire.EnvironmentManifest, manifest wire.CID) error {
	owner := n.owner()
	if owner.Any() {
		return nil
	}
	kept, err := n.keptPackages(manifest)
	if err != nil {
		return err
	}
	asking, cancel := context.WithTimeout(ctx, authorPatience)
	defer cancel()
	var mu sync.Mutex
	var others []wire.PeerID // guarded by mu while members are asked
	// allowed says whether statements are by an author whose packages the owner runs, and remembers who else signed.
	allowed := func(list []wire.SignedEnvironmentPackage) bool {
		authors := authorsOf(m, list)
		if slices.ContainsFunc(authors, owner.Runs) {
			return true
		}
		mu.Lock()
		defer mu.Unlock()
		if len(others) == 0 && len(authors) > 0 {
			others = authors[:min(len(authors), authorsShown)]
			time.AfterFunc(authorDoubt, cancel)
		}
		return false
	}
	if allowed(kept) {
		return nil
	}
	what := fmt.Sprintf("a signature of the environment %s@%s", m.Name, m.Version)
	err = n.askMembers(asking, n.charter.ID, private, func(j *joiner) error {
		kept, err = ask(asking, j, what, func(ctx context.Context, member wire.PeerID) ([]wire.SignedEnvironmentPackage, error) {
			list, err := packages.Ask(ctx, j.host, peer.ID(member), n.charter.ID, manifest, wire.MaxPackageRecords)
			if err == nil && !allowed(list) {
				err = errors.New("it knows of no author whose packages this node runs")
			}
			return list, err
		})
		return err
	})
	if err != nil && asking.Err() != nil && ctx.Err() == nil {
		return owner.AllowAuthor(m, others...)
	}
	if err != nil {
		return err
	}
	for _, p := range kept {
		if p.Name == m.Name && p.Version == m.Version && owner.Runs(p.Author) {
			err := n.store.KeepPackage(p, nil)
			if errors.Is(err, store.ErrPackages) {
				return nil // Members are asked again at the next start.
			}
			return err
		}
	}
	return nil
}

// keptPackages are the statements about one environment that the store has, or all for the zero CID.
func (n *Node) keptPackages(manifest wire.CID) (list []wire.SignedEnvironmentPackage, err error) {
	records, err := n.store.Packages(manifest, wire.MaxPackageRecords)
	if err != nil {
		return nil, err
	}
	for _, raw := range records {
		p, err := wire.OpenEnvironmentPackage(raw)
		if err != nil {
			return nil, fmt.Errorf("read what is kept of environment packages: %w", err)
		}
		list = append(list, p)
	}
	return list, nil
}

// authorsOf are those who signed that a manifest is theirs, by the name and version that it has.
func authorsOf(m wire.EnvironmentManifest, list []wire.SignedEnvironmentPackage) (authors []wire.PeerID) {
	for _, p := range list {
		if p.Name == m.Name && p.Version == m.Version {
			authors = append(authors, p.Author)
		}
	}
	return authors
}
