package testnet

import (
	"context"
	"errors"
	"fmt"

	"github.com/lightswarm/lightswarm/node/api"
	"github.com/lightswarm/lightswarm/node/config"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/calc"
)

// member is one node of a running network.
type member struct {
	peer string
	role config.Role
	node running
}

// running is a node that has started, in this process or another.
type running interface {
	// events visits the node's events from its start, as far as they were kept, until ctx ends or the node does.
	events(ctx context.Context, visit func(api.Event)) error
	// block gets a block from the node's store or from its peers.
	block(ctx context.Context, cid string) ([]byte, error)
	// status is the node at a glance.
	status(ctx context.Context) (api.Status, error)
	// stop makes the node end in order and waits for it, until ctx ends. Its error is how the node failed.
	stop(ctx context.Context) error
}

// network is a running network: the learner first, then the rollout nodes.
type network struct {
	id        string
	groupSize int
	members   []member
}

// stop ends the nodes, rollout nodes before the learner that takes their work.
func (n *network) stop(ctx context.Context) error {
	var errs []error
	for i := len(n.members) - 1; i >= 0; i-- {
		m := n.members[i]
		if err := m.node.stop(ctx); err != nil {
			errs = append(errs, fmt.Errorf("%s %s: %w", m.role, m.peer, err))
		}
	}
	return errors.Join(errs...)
}

// environment is a built-in environment by name.
func environment(name string) (*env.Package, error) {
	if name != calc.Name {
		return nil, fmt.Errorf("there is no built-in environment %q; use %s", name, calc.Name)
	}
	return env.NewPackage(calc.New().Manifest(), nil)
}
