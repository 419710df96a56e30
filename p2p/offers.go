package p2p

import (
	"context"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/lightswarm/lightswarm/wire"
)

const (
	// offersAsked is how many members are asked for packages at once.
	offersAsked = 64
	// offersOfMember is how many statements one member may give, so that none of them drowns what others keep: all that
	// are asked together give no more than 8 MiB, of which the local API makes one answer.
	offersOfMember = 64
	// offersDoubt is how long others are waited for once a peer has offered something, so that silent ones hold up little.
	offersDoubt = 3 * time.Second
	// offersDialled is how many peers are dialled at once that the Kademlia table names, and offersDial how long each may
	// take. Anybody can make the table name peers that are not there: all that it gives can be dialled in the time there is.
	offersDialled = 32
	offersDial    = 4 * time.Second
	// offersSearch bounds searching the table, and dialling and asking whom it names.
	offersSearch = 25 * time.Second
	// providedPackages bounds the packages that are advertised in the Kademlia table.
	providedPackages = wire.MaxPackageRecords
)

// Offer is an author's statement about an environment package, and who keeps the package.
type Offer struct {
	wire.SignedEnvironmentPackage
	// Holders are connected peers that said that they keep it, in the order of their ids.
	Holders []wire.PeerID
}

// FindPackages asks connected members for the packages that they keep: those of one environment, or all if the manifest is
// the zero CID; up to 64 statements of each of up to 64 members. If none of them keeps the one environment, or everywhere
// is set because those who say that they do have not helped, the peers that the Kademlia table names are dialled and
// asked. Who takes more than 3 s longer than the first that offers something is left out. Offers are ordered by name,
// version, author and manifest, and empty if there are none or the Network is closed.
func (n *Network) FindPackages(ctx context.Context, manifest wire.CID, everywhere bool) []Offer {
	if !n.enter() {
		return nil
	}
	defer n.running.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(n.ctx, cancel)()
	s := &survey{network: n, manifest: manifest, asked: make(map[peer.ID]bool), offers: make(map[wire.CID]*Offer)}
	s.stage(ctx, s.askMembers)
	if manifest.Defined() && n.table != nil && (everywhere || len(s.offers) == 0) {
		s.stage(ctx, s.askProviders)
	}
	return s.list()
}

// enter counts a caller that Close waits for, who then calls running.Done; it is false once the Network is closed.
func (n *Network) enter() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return false
	}
	n.running.Add(1)
	return true
}

// PackagesChanged says that Config.Packages keeps others than before, so that the Kademlia table is told soon.
func (n *Network) PackagesChanged() {
	if n.table != nil {
		n.table.Changed()
	}
}

// provided are the names under which the Kademlia table finds the packages that this node keeps.
func (n *Network) provided() []string {
	if n.cfg.Packages == nil {
		return nil
	}
	list, err := n.cfg.Packages.Packages(wire.CID{}, providedPackages)
	if err != nil {
		n.log.Error("the packages that are kept could not be read", "error", err)
		return nil
	}
	var names []string
	for _, raw := range list {
		if p, err := wire.OpenEnvironmentPackage(raw); err == nil { // Checked before it was kept.
			names = append(names, providerName(p.Manifest))
		}
	}
	return names
}

// providerName is what an environment is called in the Kademlia table.
func providerName(manifest wire.CID) string { return "environment/" + manifest.String() }
