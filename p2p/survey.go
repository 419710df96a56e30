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

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/lightswarm/lightswarm/p2p/discovery"
	"github.com/lightswarm/lightswarm/p2p/packages"
	"github.com/lightswarm/lightswarm/wire"
)

// survey asks many peers at once for packages, and joins their answers. Its stages are one after the other, and own the
// goroutines that ask.
type survey struct {
	network  *Network
	manifest wire.CID // The zero CID stands for all.
	asking   sync.WaitGroup

	mu     sync.Mutex
	asked  map[peer.ID]bool    // Peers that have answered; guarded by mu.
	heard  func()              // Called with each offer; guarded by mu.
	offers map[wire.CID]*Offer // By the statement's id; guarded by mu while a stage runs.
}

// stage lets ask ask peers, until they have answered or, once one has offered something, offersDoubt later.
func (s *survey) stage(ctx context.Context, ask func(context.Context)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	doubt := sync.OnceValue(func() *time.Timer { return time.AfterFunc(offersDoubt, cancel) })
	s.mu.Lock()
	s.heard = func() { doubt() }
	s.mu.Unlock()
	ask(ctx)
	s.asking.Wait()
	doubt().Stop()
}

// askMembers asks some connected members.
func (s *survey) askMembers(ctx context.Context) {
	members := s.network.members.trusted()
	rand.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	for _, p := range members[:min(len(members), offersAsked)] {
		s.asking.Go(func() { s.ask(ctx, p) })
	}
}

// askProviders dials and asks the peers that the Kademlia table names, as it finds them.
func (s *survey) askProviders(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, offersSearch)
	defer cancel()
	dialling := make(chan struct{}, offersDialled)
	for info := range s.network.table.Providers(ctx, providerName(s.manifest)) {
		if s.answered(info.ID) {
			continue
		}
		s.asking.Go(func() {
			select {
			case dialling <- struct{}{}:
			case <-ctx.Done():
				return
			}
			dial, cancel := context.WithTimeout(ctx, offersDial)
			err := discovery.Connect(dial, s.network.host, info)
			cancel()
			<-dialling
			if err == nil { // Else others may keep it too.
				s.ask(ctx, info.ID)
			}
		})
	}
	s.asking.Wait()
}

// answered says whether a peer was asked and has answered. One that has not may have been about to leave.
func (s *survey) answered(p peer.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[p]
}

// ask asks one connected peer.
func (s *survey) ask(ctx context.Context, p peer.ID) {
	n := s.network
	list, err := packages.Ask(ctx, n.host, p, n.cfg.Network, s.manifest, offersOfMember)
	if errors.Is(err, packages.ErrMisbehaved) {
		n.misbehaved(p, err)
	} else if err != nil { // Such as an older program, which does not know the question.
		n.log.Debug("a member was not asked for packages", "peer", p, "error", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[p] = err == nil || errors.Is(err, packages.ErrMisbehaved)
	for _, statement := range list {
		o := s.offers[statement.ID]
		if o == nil {
			o = &Offer{SignedEnvironmentPackage: statement}
			s.offers[statement.ID] = o
		}
		if holder := wire.PeerID(p); !slices.Contains(o.Holders, holder) {
			o.Holders = append(o.Holders, holder)
		}
		s.heard()
	}
}

// list are the offers in order.
func (s *survey) list() []Offer {
	offers := make([]Offer, 0, len(s.offers))
	for _, o := range s.offers {
		slices.Sort(o.Holders)
		offers = append(offers, *o)
	}
	slices.SortFunc(offers, func(a, b Offer) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Version, b.Version),
			cmp.Compare(a.Author, b.Author), strings.Compare(a.ID.String(), b.ID.String()))
	})
	return offers
}
