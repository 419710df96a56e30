package node

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lightswarm/lightswarm/node/api"
	"github.com/lightswarm/lightswarm/rollout"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

// failureInterval is the time between two events about failed rollouts: a program that fails always fails often.
const failureInterval = 5 * time.Second

// failures tells by events that rollouts fail. It is safe for concurrent use.
type failures struct {
	events *api.Broadcaster
	mu     sync.Mutex
	last   time.Time // guarded by mu
}

// tell publishes why a rollout failed, unless it did so a moment ago.
func (f *failures) tell(outcome bundle.OutcomeKind, cause error) {
	now := time.Now()
	f.mu.Lock()
	told := !f.last.IsZero() && now.Sub(f.last) < failureInterval
	if !told {
		f.last = now
	}
	f.mu.Unlock()
	if told {
		return
	}
	// Of a program's standard error, the last line says most.
	lines := strings.Split(strings.TrimSpace(cause.Error()), "\n")
	message := lines[0]
	if n := len(lines); n > 1 {
		message += " … " + strings.TrimSpace(lines[n-1])
	}
	f.events.Publish(api.Event{Type: api.EventProblem, Problem: &api.ProblemEvent{
		Message: fmt.Sprintf("rollouts fail, the newest with %s: %s", outcome, message),
	}})
}

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
		Failed:       (&failures{events: &n.events}).tell,
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
