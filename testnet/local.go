package testnet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/lightswarm/lightswarm/node"
	"github.com/lightswarm/lightswarm/node/api"
	"github.com/lightswarm/lightswarm/node/config"
)

// keptEvents is how many events of a node wait to be collected.
const keptEvents = 1 << 14

// local is a node in this process.
type local struct {
	node   *node.Node
	stream <-chan api.Event
	ended  chan struct{}
	err    error // how the node ended; read once ended is closed
}

var _ running = (*local)(nil)

// startLocal runs the network in this process, with every store in memory. ctx bounds the start, life the nodes.
func startLocal(ctx, life context.Context, o Options, log *slog.Logger) (_ *network, err error) {
	founding, err := o.founding()
	if err != nil {
		return nil, err
	}
	n := &network{groupSize: int(founding.Rollout.GroupSize)}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.stop(context.WithoutCancel(ctx)))
		}
	}()
	settings := o.nodeSettings()
	for i := range o.Nodes + 1 {
		options := node.Options{
			Config: settings, Key: o.key(i), Version: o.Version, Seed: o.Seed + uint64(i) + 1,
			Log: log.With("node", i), Drivers: o.Drivers, Modules: o.Modules,
		}
		options.Config.Roles = []config.Role{config.RoleRollout}
		if i == 0 {
			options.Config.Roles, options.Found = []config.Role{config.RoleLearner}, &founding
		}
		l, err := runLocal(ctx, life, options)
		if err != nil {
			return nil, fmt.Errorf("start node %d: %w", i, err)
		}
		if i == 0 {
			n.id = l.node.Charter().ID.String()
			settings.Network, settings.P2P.Bootstrap = n.id, l.node.Addresses()
		}
		n.members = append(n.members, member{l.node.Peer().String(), options.Config.Roles[0], l})
	}
	return n, nil
}

// networkName is what every testnet is called.
const networkName = "testnet"

// runLocal starts one node. It ends when life does, or when it is stopped.
func runLocal(ctx, life context.Context, o node.Options) (*local, error) {
	n, err := node.New(ctx, o)
	if err != nil {
		return nil, err
	}
	l := &local{node: n, ended: make(chan struct{})}
	// The subscription ends when the node closes.
	l.stream, _ = n.Subscribe(keptEvents)
	go func() {
		defer close(l.ended)
		l.err = errors.Join(n.Run(life), n.Close())
	}()
	return l, nil
}

func (l *local) events(ctx context.Context, visit func(api.Event)) error {
	for {
		select {
		case e, open := <-l.stream:
			if !open {
				return nil
			}
			visit(e)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (l *local) block(ctx context.Context, cid string) ([]byte, error) {
	return l.node.Block(ctx, cid, nil)
}

func (l *local) status(context.Context) (api.Status, error) { return l.node.Status(), nil }

func (l *local) stop(ctx context.Context) error {
	l.node.Shutdown()
	select {
	case <-l.ended:
		return l.err
	case <-ctx.Done():
		return fmt.Errorf("it did not stop in time: %w", context.Cause(ctx))
	}
}
