package node

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lightswarm/lightswarm/node/api"
	"github.com/lightswarm/lightswarm/node/config"
	"github.com/lightswarm/lightswarm/node/store"
	"github.com/lightswarm/lightswarm/p2p"
	"github.com/lightswarm/lightswarm/p2p/discovery"
	"github.com/lightswarm/lightswarm/policy/embedded"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/calc"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
	"github.com/lightswarm/lightswarm/wire/draw"
)

// Node is one peer. Make one with New, run it once with Run, and Close it. Its methods are safe for concurrent use.
type Node struct {
	options Options
	log     *slog.Logger
	started time.Time
	key     wire.Key
	charter wire.SignedCharter
	roles   wire.Roles
	events  api.Broadcaster
	// evaluationBlocks is how many the charter has.
	evaluationBlocks int
	// environments are those that are built in and those that were opened, which Close closes.
	environments *env.Set
	opened       []env.Environment

	folder      *config.Folder // nil in memory
	store       *store.Store
	engine      *embedded.Engine // nil without the rollout role
	network     *p2p.Network
	policies    *policies
	evaluations evaluations
	announcer   *announcer
	presence    *presence
	worker      *worker  // nil without the rollout role
	player      *player  // nil without the rollout role, and where the built-in agent plays
	trainer     *trainer // nil without the learner role
	api         *api.Server

	stop     chan struct{} // closed by Shutdown
	stopOnce sync.Once
	failed   chan *partError // capacity 1; ends Run

	mu       sync.Mutex
	chain    chain  // guarded by mu
	forked   uint64 // guarded by mu; forks below this version were told
	outdated bool   // guarded by mu; a newer format was told
}

// New makes a node as the package comment says. A node that has to ask others for the charter does so until ctx ends.
func New(ctx context.Context, o Options) (*Node, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	n := &Node{options: o, log: o.Log, started: time.Now(), stop: make(chan struct{}), failed: make(chan *partError, 1), environments: o.Environments}
	if err := n.open(ctx); err != nil {
		return nil, fmt.Errorf("start node: %w", errors.Join(err, n.Close()))
	}
	return n, nil
}

// open makes the parts in the order in which they depend on one another.
func (n *Node) open(ctx context.Context) error {
	if err := n.options.Config.Validate(); err != nil {
		return err
	}
	for _, role := range n.options.Config.Roles {
		n.roles |= map[config.Role]wire.Roles{
			config.RoleLearner: wire.RoleLearner, config.RoleRollout: wire.RoleRollout, config.RoleRelay: wire.RoleRelay,
		}[role]
	}
	if n.environments == nil {
		var err error
		if n.environments, err = env.NewSet(calc.New()); err != nil {
			return err
		}
	}
	private, err := n.openState()
	if err != nil {
		return err
	}
	if n.charter, err = n.findCharter(ctx, private); err != nil {
		return err
	}
	n.evaluationBlocks = draw.EvaluationBlocks(&n.charter.Charter)
	if err := n.openChain(); err != nil {
		return err
	}
	if err := n.openEnvironments(ctx, private); err != nil {
		return err
	}
	n.openParts()
	if n.roles.Has(wire.RoleLearner) {
		if n.trainer, err = n.openTrainer(ctx); err != nil {
			return err
		}
	}
	if n.roles.Has(wire.RoleRollout) {
		if n.options.Config.Rollout.Agent.Outside() {
			if n.player, err = n.openPlayer(); err != nil {
				return err
			}
		}
		if n.worker, err = n.openWorker(); err != nil {
			return err
		}
	}
	if n.network, err = n.openNetwork(ctx, private); err != nil {
		return err
	}
	return n.openAPI()
}

// openState opens the data folder, or a state in memory, and returns the identity.
func (n *Node) openState() (ed25519.PrivateKey, error) {
	private := n.options.Key
	options := store.Options{MaxBlockBytes: int64(n.options.Config.Store.MaxBlockBytes), Log: n.log}
	var err error
	switch {
	case n.options.Folder != "":
		if n.folder, err = config.OpenFolder(n.options.Folder); err != nil {
			return nil, err
		}
		if private, err = n.folder.Identity(); err != nil {
			return nil, err
		}
		options.Folder = n.folder.Database()
	default:
		if private == nil {
			if _, private, err = ed25519.GenerateKey(rand.Reader); err != nil {
				return nil, fmt.Errorf("make identity: %w", err)
			}
		}
		options.Folder, options.InMemory = "db", true
	}
	n.key = wire.NewKey(private)
	options.Self = n.key.Peer()
	n.store, err = store.Open(options)
	return private, err
}

// ErrNoNetwork says that a data folder belongs to no network, and nothing tells a new node which it is to join or found.
var ErrNoNetwork = errors.New("there is no network yet: found one with lightswarm network create, or name one to lightswarm join")

// findCharter returns the charter of the network that the store belongs to, founds a network, or joins one.
func (n *Node) findCharter(ctx context.Context, private ed25519.PrivateKey) (wire.SignedCharter, error) {
	var wanted wire.CID
	if text := n.options.Config.Network; text != "" {
		var err error
		if wanted, err = wire.ParseCIDString(text); err != nil {
			return wire.SignedCharter{}, fmt.Errorf("network %q: %w", text, err)
		}
	}
	bound, ok, err := n.store.Network()
	switch {
	case err != nil:
		return wire.SignedCharter{}, err
	case ok && wanted.Defined() && bound != wanted:
		return wire.SignedCharter{}, fmt.Errorf("%w, %s: use another one with --data", store.ErrOtherNetwork, bound)
	case ok:
		raw, err := n.store.Get(bound)
		if err != nil {
			return wire.SignedCharter{}, fmt.Errorf("read the charter: %w", err)
		}
		return openCharter(bound, raw)
	case n.options.Found != nil:
		charter, blocks, err := n.options.Found.charter(n.key, n.environments)
		if err != nil {
			return wire.SignedCharter{}, err
		}
		if err := n.store.Bind(charter.ID, blocks); err != nil {
			return wire.SignedCharter{}, err
		}
		return charter, n.options.Found.sign(n.key, charter.Created, n.store.KeepPackage)
	case wanted.Defined():
		return n.join(ctx, wanted, private)
	}
	return wire.SignedCharter{}, ErrNoNetwork
}

// join asks members for the charter and keeps it.
func (n *Node) join(ctx context.Context, network wire.CID, private ed25519.PrivateKey) (wire.SignedCharter, error) {
	n.log.Info("asking members for the network's charter", "network", network)
	var charter wire.SignedCharter
	err := n.askMembers(ctx, network, private, func(j *joiner) (err error) {
		charter, err = j.charter(ctx)
		return err
	})
	if err != nil {
		return wire.SignedCharter{}, err
	}
	return charter, n.store.Bind(charter.ID, map[wire.CID][]byte{charter.ID: charter.Raw})
}

// askMembers lets ask ask the members of a network before the node takes part in it.
func (n *Node) askMembers(ctx context.Context, network wire.CID, private ed25519.PrivateKey, ask func(*joiner) error) error {
	h := n.options.Host
	if h == nil {
		var err error
		if h, err = newJoinHost(private); err != nil {
			return err
		}
		defer h.Close()
	}
	bootstraps, err := discovery.ParseAddrs(n.options.Config.P2P.Bootstrap)
	if err != nil {
		return fmt.Errorf("bootstrap %w", err)
	}
	known, err := n.store.Peers().Load()
	if err != nil {
		return fmt.Errorf("read the members met before: %w", err)
	}
	j := &joiner{host: h, network: network, log: n.log, sources: []discovery.Source{discovery.Bootstrap(append(bootstraps, known...))}}
	if n.options.Config.P2P.MDNS {
		j.sources = append(j.sources, &discovery.MDNS{Host: h, Network: network})
	}
	return ask(j)
}

// openChain continues with the newest release that the store has.
func (n *Node) openChain() error {
	n.chain = chain{charter: n.charter}
	raw, ok, err := n.store.Release(n.store.Head())
	if err != nil || !ok {
		return err
	}
	head, err := wire.OpenRelease(raw)
	if err != nil {
		return fmt.Errorf("read the newest release: %w", err)
	}
	n.chain.head = &head
	return nil
}

// openParts makes what does no work before Run.
func (n *Node) openParts() {
	n.policies = newPolicies(&policies{
		store: n.store, events: &n.events, log: n.log, class: bundle.EngineExact,
		fetch: func(ctx context.Context, cid wire.CID, hints []wire.PeerID, limit int) ([]byte, error) {
			return n.network.Fetch(ctx, cid, hints, limit)
		},
	})
	if n.roles.Has(wire.RoleRollout) {
		c := n.options.Config.Rollout
		n.engine = embedded.New(embedded.Options{Slots: c.Slots, Threads: c.Threads})
		n.policies.engine = n.engine
	}
	// A learner publishes its own newest release when it starts, and may not have stored the policy's blocks before.
	if head := n.chain.head; head != nil && (!n.roles.Has(wire.RoleLearner) || head.Signer != n.key.Peer()) {
		n.policies.want(*head)
	}
	n.announcer = &announcer{
		key: n.key, store: n.store, events: &n.events, log: n.log, outbox: make(chan []byte, outboxSize),
		publish: func(ctx context.Context, signed []byte) error { return n.network.PublishAnnouncement(ctx, signed) },
		made: func(a wire.SignedAnnouncement) {
			n.evaluations.made(&a)
			if n.trainer != nil {
				n.trainer.learner.Offer(a)
			}
		},
	}
	n.presence = &presence{
		key: n.key, log: n.log, soon: make(chan struct{}, 1),
		publish: func(ctx context.Context, signed []byte) error { return n.network.PublishPresence(ctx, signed) },
		now: func() wire.Presence {
			p := wire.Presence{
				Network: n.charter.ID, Roles: n.roles, NextSequence: n.store.NextSequence(), AgentVersion: n.agentVersion(),
			}
			if current, _ := n.policies.newest(); current != nil {
				p.HeadVersion = current.Version
			}
			if n.trainer != nil {
				p.Results = n.trainer.learner.Measured()
				n.evaluations.confirm(p.Results, n.evaluationBlocks)
			}
			return p
		},
	}
}

func (n *Node) agentVersion() string { return "lightswarm/" + n.options.Version }

// openNetwork listens; from here on handlers run.
func (n *Node) openNetwork(ctx context.Context, private ed25519.PrivateKey) (*p2p.Network, error) {
	c := n.options.Config.P2P
	o := p2p.Config{
		Key:            private,
		Network:        n.charter.ID,
		Learners:       n.charter.Learners,
		MaxLag:         n.charter.Rollout.MaxLag,
		Listen:         c.Listen,
		Bootstrap:      c.Bootstrap,
		MDNS:           c.MDNS,
		DHT:            c.DHT,
		NATPortMap:     c.NATPortMap,
		Relay:          c.Relay,
		PeerCache:      n.store.Peers(),
		Blocks:         n.store,
		Head:           n.store,
		OnRelease:      n.onRelease,
		OnAnnouncement: n.onAnnouncement,
		OnPresence:     n.onPresence,
		OnRefused:      n.onRefused,
		NextSequence:   n.store.NextSequence,
		OnTwin:         n.onTwin,
		AgentVersion:   n.agentVersion(),
		Log:            n.log,
		Seed:           n.options.Seed,
		Host:           n.options.Host,
		Tuning:         n.options.Tuning,
		Packages:       n.store,
	}
	if n.trainer != nil {
		o.Collect, o.Cursor, o.Score = true, n.trainer.cursors.next, n.trainer.standings.score
	}
	return p2p.New(ctx, o)
}

// openAPI serves the local API if there is a data folder to find it by.
func (n *Node) openAPI() error {
	if n.folder == nil {
		return nil
	}
	token, err := n.folder.Token()
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	if err := registry.Register(metrics{n}); err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	if n.api, err = api.Serve(n.options.Config.API.Address, token, n, registry, n.log); err != nil {
		return err
	}
	return n.folder.WriteAddress(n.api.Address())
}

// Close ends what New began, in the reverse order. Run must have returned.
func (n *Node) Close() error {
	var errs []error
	n.events.Close()
	if n.api != nil {
		errs = append(errs, n.folder.RemoveAddress(), n.api.Close())
	}
	if n.network != nil {
		errs = append(errs, n.network.Close())
	} else if n.options.Host != nil {
		errs = append(errs, n.options.Host.Close())
	}
	if n.player != nil {
		errs = append(errs, n.player.close())
	}
	if n.trainer != nil {
		n.trainer.training.close()
	}
	if n.policies != nil {
		n.policies.close()
	}
	if n.engine != nil {
		errs = append(errs, n.engine.Close())
	}
	for _, e := range n.opened {
		errs = append(errs, env.Close(e))
	}
	if n.store != nil {
		errs = append(errs, n.store.Close())
	}
	if n.folder != nil {
		errs = append(errs, n.folder.Close())
	}
	return errors.Join(errs...)
}

// Charter is the network's.
func (n *Node) Charter() wire.SignedCharter { return n.charter }

// Peer is the node's id.
func (n *Node) Peer() wire.PeerID { return n.key.Peer() }

// Addresses are the multiaddresses, each with the peer id, at which the node may be dialled.
func (n *Node) Addresses() []string { return n.network.Addrs() }

// APIAddress is where the local API listens, as host:port; empty without a data folder.
func (n *Node) APIAddress() string {
	if n.api == nil {
		return ""
	}
	return n.api.Address()
}

// Block implements api.Node: the block comes from the store, or else from other members.
func (n *Node) Block(ctx context.Context, cid string, from []string) ([]byte, error) {
	parsed, err := wire.ParseCIDString(cid)
	if err != nil {
		return nil, fmt.Errorf("block %q: %w", cid, err)
	}
	var hints []wire.PeerID
	for _, text := range from {
		p, err := wire.ParsePeerIDString(text)
		if err != nil {
			return nil, fmt.Errorf("peer %q: %w", text, err)
		}
		hints = append(hints, p)
	}
	return n.network.Fetch(ctx, parsed, hints, wire.MaxBlockBytes)
}

// Subscribe implements api.Node.
func (n *Node) Subscribe(buffer int) (<-chan api.Event, func()) { return n.events.Subscribe(buffer) }

// Shutdown implements api.Node: it makes Run end.
func (n *Node) Shutdown() { n.stopOnce.Do(func() { close(n.stop) }) }
