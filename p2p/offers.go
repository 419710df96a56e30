package p2p

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/lightswarm/lightswarm/p2p/discovery"
	"github.com/lightswarm/lightswarm/p2p/packages"
	"github.com/lightswarm/lightswarm/wire"
)

const (
	// offersAsked is how many members are asked for packages at once.
	offersAsked = 64
	// offersOfMember is how many statements one member may give, so that none of them drowns what others keep: all that
	// are asked together give no more than 8 MiB, of which the local API makes one answer.
	offersOfMember = 64
	// offersDialled is how many peers are dialled that the Kademlia table names.
	offersDialled = 8
	// offersDial bounds finding and dialling them.
	offersDial = 20 * time.Second
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
// the zero CID; up to 64 statements of each of up to 64 members. If none of them keeps the one environment, the peers that the Kademlia table
// names are dialled and asked. Offers are ordered by name, version, author and manifest, and empty if there are none.
func (n *Network) FindPackages(ctx context.Context, manifest wire.CID) []Offer {
	members := n.members.trusted()
	rand.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	offers := n.offers(ctx, members[:min(len(members), offersAsked)], manifest)
	if len(offers) == 0 && manifest.Defined() && n.table != nil {
		offers = n.offers(ctx, n.dialProviders(ctx, manifest), manifest)
	}
	return offers
}

// offers asks peers at once and joins their answers.
func (n *Network) offers(ctx context.Context, peers []peer.ID, manifest wire.CID) []Offer {
	answers := make([][]wire.SignedEnvironmentPackage, len(peers))
	var asking sync.WaitGroup
	for i, p := range peers {
		asking.Go(func() {
			list, err := packages.Ask(ctx, n.host, p, n.cfg.Network, manifest, offersOfMember)
			if errors.Is(err, packages.ErrMisbehaved) {
				n.misbehaved(p, err)
			} else if err != nil { // Such as an older program, which does not know the question.
				n.log.Debug("a member was not asked for packages", "peer", p, "error", err)
			}
			answers[i] = list
		})
	}
	asking.Wait()
	byID := make(map[wire.CID]*Offer)
	for i, list := range answers {
		for _, p := range list {
			o := byID[p.ID]
			if o == nil {
				o = &Offer{SignedEnvironmentPackage: p}
				byID[p.ID] = o
			}
			if holder := wire.PeerID(peers[i]); !slices.Contains(o.Holders, holder) {
				o.Holders = append(o.Holders, holder)
			}
		}
	}
	offers := make([]Offer, 0, len(byID))
	for _, o := range byID {
		slices.Sort(o.Holders)
		offers = append(offers, *o)
	}
	slices.SortFunc(offers, func(a, b Offer) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Version, b.Version),
			cmp.Compare(a.Author, b.Author), strings.Compare(a.ID.String(), b.ID.String()))
	})
	return offers
}

// dialProviders connects to some of the peers that the Kademlia table names for an environment.
func (n *Network) dialProviders(ctx context.Context, manifest wire.CID) []peer.ID {
	ctx, cancel := context.WithTimeout(ctx, offersDial)
	defer cancel()
	infos := n.table.Providers(ctx, providerName(manifest))
	rand.Shuffle(len(infos), func(i, j int) { infos[i], infos[j] = infos[j], infos[i] })
	infos = infos[:min(len(infos), offersDialled)]
	return connectAll(ctx, n.host, infos)
}

// connectAll dials peers at once and returns those that answered.
func connectAll(ctx context.Context, h host.Host, infos []peer.AddrInfo) []peer.ID {
	var mu sync.Mutex
	var connected []peer.ID
	var dialling sync.WaitGroup
	for _, info := range infos {
		dialling.Go(func() {
			if discovery.Connect(ctx, h, info) != nil {
				return // Others may keep it too.
			}
			mu.Lock()
			defer mu.Unlock()
			connected = append(connected, info.ID)
		})
	}
	dialling.Wait()
	return connected
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
