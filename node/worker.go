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
		return nil, n.cannotRun(err)
	}
	return &worker{w, network}, nil
}

// agentRoles are the roles that a program plays: those of each of the charter's environments.
func (n *Node) agentRoles() (roles []string, err error) {
	for i, reference := range n.charter.Environments {
		e, err := n.environments.Get(reference.Manifest)
		if err != nil {
			return nil, n.cannotRun(fmt.Errorf("environment %q of the charter: %w", reference.Name, err))
		}
		switch own := e.Manifest().Agents; {
		case i == 0:
			roles = own
		case !slices.Equal(own, roles): // its calls would be recorded as roles that the environment does not have
			return nil, fmt.Errorf("the network's environments %q and %q have different roles, which no program can play yet: leave out rollout.agent.command",
				n.charter.Environments[0].Name, reference.Name)
		}
	}
	return roles, nil
}

func (n *Node) cannotRun(err error) error {
	return fmt.Errorf("this program cannot run rollouts of network %q; upgrade it, or leave out the rollout role: %w", n.charter.Name, err)
}
