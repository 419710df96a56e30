package node

import (
	"context"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/lightswarm/lightswarm/learner"
	"github.com/lightswarm/lightswarm/node/config"
	"github.com/lightswarm/lightswarm/p2p"
	"github.com/lightswarm/lightswarm/p2p/simnet"
	"github.com/lightswarm/lightswarm/virtualtime"
	"github.com/lightswarm/lightswarm/wire"
)

// simulated are the options of node number i of a simulated network, whose nodes live in virtual time.
func simulated(t *testing.T, net *simnet.Net, i int, roles ...config.Role) Options {
	t.Helper()
	key := simnet.Key(1, i)
	host, err := net.Host(key, netip.AddrPortFrom(simnet.Addr(i), 8000), 20, nil)
	if err != nil {
		t.Fatal(err)
	}
	o := options(t, settings(roles...))
	o.Config.P2P = config.P2P{}
	o.Key, o.Host, o.Seed, o.Tuning = key, host, uint64(i)+1, p2p.Tuning{}
	return o
}

// warm is done when warmUp was called.
var warm sync.Once

// warmUp makes what is made once in a process and shared, such as the bundle codec's state: made in one bubble of virtual
// time, it could not be used in another. Whoever comes later waits for the first.
func warmUp(t *testing.T) {
	t.Helper()
	warm.Do(func() {
		o := options(t, settings(config.RoleLearner, config.RoleRollout))
		o.Found = parityNetwork(t)
		n := start(t, o)
		n.until("a version was trained", func() bool { h := n.head(); return h != nil && h.Version >= 1 })
		n.end()
	})
}

// verdicts is a learner.Observer that remembers what became of every announcement.
type verdicts struct {
	learner.Nobody

	mu     sync.Mutex
	judged map[wire.PeerID]map[uint64]learner.Reason // by peer and sequence; guarded by mu
}

func (v *verdicts) Judged(a *wire.SignedAnnouncement, verdict learner.Verdict) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.judged == nil {
		v.judged = map[wire.PeerID]map[uint64]learner.Reason{}
	}
	if v.judged[a.Signer] == nil {
		v.judged[a.Signer] = map[uint64]learner.Reason{}
	}
	v.judged[a.Signer][a.Sequence] = verdict.Reason
}

// missing counts a peer's announcements below a sequence that have no verdict.
func (v *verdicts) missing(p wire.PeerID, below uint64) (missing int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for sequence := range below {
		if v.judged[p][sequence] == "" {
			missing++
		}
	}
	return missing
}

// While half of the volunteers are cut off from everybody else, the learner goes on with the others. Once the network is
// whole again everybody gets to the newest version, and every announcement that anybody made meanwhile gets a verdict:
// nothing is silently lost.
func TestPartitionHeals(t *testing.T) {
	t.Parallel()
	warmUp(t)
	virtualtime.Test(t, func(t *testing.T) {
		const volunteers = 4
		net := simnet.New(20 * time.Millisecond)
		net.Start()
		t.Cleanup(net.Close)

		var seen verdicts
		o := simulated(t, net, 0, config.RoleLearner)
		o.Found, o.Observer = parityNetwork(t), &seen
		o.Found.Rollout.MaxLag = 100 // Nothing that was made during the partition is too old.
		o.Config.Learner.Groups = 6
		founder := start(t, o)
		var nodes []*running
		for i := range volunteers {
			o := simulated(t, net, i+1, config.RoleRollout)
			o.Config.Network, o.Config.P2P.Bootstrap = founder.Charter().ID.String(), founder.Addresses()
			nodes = append(nodes, start(t, o))
		}
		reached := func(n *running, version uint64) func() bool {
			return func() bool { current, _ := n.policies.newest(); return current != nil && current.Version >= version }
		}
		for _, n := range append(nodes, founder) {
			n.limit = 20 * time.Minute
			n.until("the first version arrives", reached(n, 1))
		}

		var side []netip.Addr
		for i := range volunteers / 2 {
			side = append(side, simnet.Addr(i+1))
		}
		net.Partition(side)
		before := founder.Status().Head.Version
		founder.until("training goes on without the others", reached(founder, before+2))
		net.Heal()

		for _, n := range nodes {
			n.until("the newest version arrives", reached(n, founder.Status().Head.Version))
		}
		for _, n := range nodes {
			made := n.store.NextSequence()
			if made == 0 {
				t.Errorf("%s made nothing", n.Peer())
			}
			n.until("every announcement has a verdict", func() bool { return seen.missing(n.Peer(), made) == 0 })
		}
		if net.Dropped() == 0 {
			t.Error("the partition dropped nothing")
		}
	})
}

// A newcomer whose bootstrap peers are all away asks on, and joins within a minute of their return, however long that took.
func TestNewcomerWaitsForItsBootstrap(t *testing.T) {
	t.Parallel()
	warmUp(t)
	virtualtime.Test(t, func(t *testing.T) {
		const away = 3*time.Hour + 70*time.Second
		net := simnet.New(20 * time.Millisecond)
		net.Start()
		t.Cleanup(net.Close)
		o := simulated(t, net, 0, config.RoleLearner)
		o.Found = parityNetwork(t)
		founder := start(t, o)
		net.Partition([]netip.Addr{simnet.Addr(0)})
		back := time.Now().Add(away)
		time.AfterFunc(away, net.Heal)

		o = simulated(t, net, 1, config.RoleRelay)
		o.Config.Network, o.Config.P2P.Bootstrap = founder.Charter().ID.String(), founder.Addresses()
		joining, stop := context.WithTimeout(t.Context(), away+time.Hour)
		defer stop()
		n, err := New(joining, o)
		if err != nil {
			t.Fatal(err)
		}
		if late := time.Since(back); late > time.Minute {
			t.Errorf("the newcomer joined %s after its bootstrap peer came back", late)
		}
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
}
