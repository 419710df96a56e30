package node

import (
	"fmt"
	"slices"

	"github.com/lightswarm/lightswarm/rollout"
)

// worker is the node's rollout role.
type worker struct {
	*rollout.Worker
	network *rollout.Network
}

// openWorker makes the rollout worker. It fails if the charter has an environment that this program cannot run.
func (n *Node) openWorker() (*worker, error) {
	c := n.options.Config.Rollout
	network := &rollout.Network{
		ID:           n.charter.ID,
		Charter:      &n.charter.Charter,
		Environments: n.environments,
		Timeout:      c.Timeout,
		Log:          n.log,
	}
	if n.player != nil {
		network.Agent = n.player.agent
	}
	w, err := rollout.NewWorker(rollout.WorkerConfig{
		Peer:        n.key.Peer(),
		Network:     network,
		Policies:    n.policies,
		Announcer:   n.announcer,
		Counters:    n.store.Draws(),
		Evaluations: &n.evaluations,
		InFlight:    c.InFlight,
	})
	if err != nil {
		return nil, fmt.Errorf("this program cannot run rollouts of network %q; upgrade it, or leave out the rollout role: %w", n.charter.Name, err)
	}
	return &worker{w, network}, nil
}

// agentRoles are the roles of the charter's environments, each once, in their order.
func (n *Node) agentRoles() []string {
	var roles []string
	for _, reference := range n.charter.Environments {
		e, err := n.environments.Get(reference.Manifest)
		if err != nil {
			continue // The worker says so.
		}
		for _, role := range e.Manifest().Agents {
			if !slices.Contains(roles, role) {
				roles = append(roles, role)
			}
		}
	}
	return roles
}
