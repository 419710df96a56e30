package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/lightswarm/lightswarm/node/api"
	"github.com/lightswarm/lightswarm/node/config"
	"github.com/lightswarm/lightswarm/rollout/agent"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/gateway"
	"github.com/lightswarm/lightswarm/rollout/lightning"
	"github.com/lightswarm/lightswarm/rollout/process"
)

// gatewayPatience is how long the gateway may take to end what still runs when the node closes. Nothing should.
const gatewayPatience = 5 * time.Second

// defaultProcesses is how many processes run at once unless the settings say: a group's or a block's worth, so that the
// engine has calls to batch.
const defaultProcesses = 32

// outsider is an agent from outside the node.
type outsider interface {
	agent.Agent
	// Ready waits until it can play.
	Ready(ctx context.Context) error
	Close() error
}

// player is who plays the node's rollouts in place of the built-in agent, a program or runners that connect, and the way to
// the policy.
type player struct {
	gateway *gateway.Gateway
	agent   outsider
	// command and program are those of a program, runners is what others connect to; one of both is nil.
	command string
	program *process.Agent
	runners *lightning.Agent
	// temporary is the scratch folder of a node without a data folder; empty otherwise.
	temporary string
	// prepared says that it can play.
	prepared atomic.Bool
}

// openPlayer makes the player that the settings ask for.
func (n *Node) openPlayer() (*player, error) {
	roles, err := n.agentRoles()
	if err != nil {
		return nil, err
	}
	if c := n.options.Config.Rollout.Agent; c.Lightning != "" {
		return newRunners(c.Lightning, roles, n.folder, n.log)
	}
	scratch := ""
	if n.folder != nil {
		scratch = n.folder.Agents()
		// What a node that was killed left.
		if err := process.RemoveAll(scratch); err != nil {
			return nil, fmt.Errorf("empty the agents' folder: %w", err)
		}
		if err := os.MkdirAll(scratch, 0o700); err != nil {
			return nil, fmt.Errorf("make the agents' folder: %w", err)
		}
	}
	p, err := newPlayer(n.options.Config.Rollout.Agent, roles, n.options.Modules, scratch, n.log)
	if err != nil {
		return nil, err
	}
	n.log.Info("rollouts are played by a program", "command", p.command)
	return p, nil
}

// newPlayer makes a program's player, whose calls may name these roles; modules is Options.Modules. Rollouts work below the
// folder scratch, or, if that is empty, below a temporary one.
func newPlayer(c config.Agent, roles, modules []string, scratch string, log *slog.Logger) (_ *player, err error) {
	p := &player{command: strings.Join(c.Command, " ")}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("the agent %q: %w", p.command, err), p.close())
		}
	}()
	command, err := agentCommand(c, os.LookupEnv)
	if err != nil {
		return nil, err
	}
	if scratch == "" {
		if p.temporary, err = os.MkdirTemp("", "lightswarm-agents-"); err != nil {
			return nil, err
		}
		scratch = p.temporary
	}
	if p.gateway, err = gateway.Serve(gateway.Options{Log: log}); err != nil {
		return nil, err
	}
	program, err := process.New(process.Options{
		Gateway:    p.gateway,
		Roles:      roles,
		Command:    command,
		Modules:    modules,
		Concurrent: cmp.Or(c.Processes, defaultProcesses),
		Grace:      c.Grace,
		Scratch:    scratch,
		Log:        log,
	})
	if err != nil {
		return nil, err
	}
	p.agent, p.program = program, program
	return p, nil
}

// Program is an agent that is a program, as a node with these settings would play its rollouts, without a node. It implements
// agent.Agent, and is safe for concurrent use.
type Program struct{ player *player }

// OpenProgram makes a program's agent, whose calls may name these roles; modules is as in Options. What is to be ready before
// a rollout begins to become so. The caller closes it.
func OpenProgram(c config.Agent, roles, modules []string, log *slog.Logger) (*Program, error) {
	p, err := newPlayer(c, roles, modules, "", log)
	if err != nil {
		return nil, err
	}
	return &Program{p}, nil
}

// Ready waits until the program can be started; an error says why it cannot be.
func (p *Program) Ready(ctx context.Context) error { return p.player.ready(ctx) }

// Run implements agent.Agent.
func (p *Program) Run(ctx context.Context, llm agent.LLM, e env.Episode) (agent.Result, error) {
	return p.player.agent.Run(ctx, llm, e)
}

// Close ends what runs, and leaves nothing of it. It is called once.
func (p *Program) Close() error { return p.player.close() }

// agentCommand is how a program is started; lookup finds the node's environment variables.
func agentCommand(a config.Agent, lookup func(name string) (string, bool)) (process.Command, error) {
	folder, err := filepath.Abs(a.Folder)
	if err != nil {
		return process.Command{}, err
	}
	command := process.Command{Args: a.Command, Dir: folder, Preload: a.Preload}
	for _, name := range a.Variables {
		value, ok := lookup(name)
		if !ok {
			return process.Command{}, fmt.Errorf("it is to get the environment variable %s, which this node does not have: set it, or leave it out of rollout.agent.variables", name)
		}
		command.Environ = append(command.Environ, name+"="+value)
	}
	return command, nil
}

// ready waits until the program can be started, or a runner has connected.
func (p *player) ready(ctx context.Context) error {
	switch err := p.agent.Ready(ctx); {
	case err != nil && p.runners != nil:
		return err
	case err != nil:
		return fmt.Errorf("the agent %q: %w", p.command, err)
	}
	p.prepared.Store(true)
	return nil
}

// awaited is what the node waits for until the player is ready.
func (p *player) awaited() string {
	if p.runners != nil {
		return "waiting for a runner of Agent Lightning to connect to " + p.runners.Address()
	}
	return "waiting until the agent's modules are imported"
}

// status is what the player does.
func (p *player) status() *api.AgentStatus {
	if p.runners != nil {
		s := p.runners.Stats()
		return &api.AgentStatus{Lightning: p.runners.Address(), Waiting: s.Waiting, Running: s.Running, Started: s.Started}
	}
	s := p.program.Stats()
	return &api.AgentStatus{Command: p.command, Running: s.Running, Started: s.Started}
}

// close ends the programs, or lets the runners go, and then their way to the policy.
func (p *player) close() error {
	var errs []error
	if p.agent != nil {
		errs = append(errs, p.agent.Close())
	}
	if p.gateway != nil {
		ctx, cancel := context.WithTimeout(context.Background(), gatewayPatience)
		defer cancel()
		errs = append(errs, p.gateway.Close(ctx))
	}
	if p.temporary != "" {
		errs = append(errs, os.RemoveAll(p.temporary))
	}
	return errors.Join(errs...)
}
