package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/lightswarm/lightswarm/node"
	"github.com/lightswarm/lightswarm/node/config"
)

// commonSettings are those of every node.
var commonSettings = []string{
	"p2p.listen", "p2p.bootstrap", "p2p.mdns", "p2p.dht", "p2p.nat_port_map", "p2p.relay",
	"store.max_block_bytes", "api.address", "log.level", "log.format",
}

// rolloutSettings are those of rollout nodes, agentSettings those of the program that plays their rollouts, learnerSettings
// those of learners.
var (
	rolloutSettings = append([]string{"rollout.in_flight", "rollout.slots", "rollout.threads", "rollout.timeout", "rollout.environments.kinds",
		"rollout.environments.openenv", "rollout.environments.signers", "rollout.agent.lightning"}, agentSettings...)
	agentSettings = []string{
		"rollout.agent.command", "rollout.agent.folder", "rollout.agent.preload", "rollout.agent.variables", "rollout.agent.processes",
		"rollout.agent.grace",
	}
	learnerSettings = []string{
		"learner.steps", "learner.target", "learner.hold", "learner.groups", "learner.dynamic", "learner.patience", "learner.learning_rate",
		"learner.credit", "learner.advantage", "learner.level", "learner.agents", "learner.loss", "learner.normaliser",
		"learner.evaluate_every", "learner.final_patience", "learner.workers", "learner.metrics",
		"learner.queue", "learner.waiting", "learner.peer_pending", "learner.fetch_bytes",
	}
)

func (p *program) learn() *cobra.Command {
	withRollouts, plain := false, false
	c := &cobra.Command{
		Use:   "learn",
		Short: "Run the learner of the data folder's network",
		Long: `Train the policy of the network that the data folder belongs to, on what rollout nodes contribute, and publish the
releases. The data folder is the one in which lightswarm network create founded the network.

Training ends at --learner-target or --learner-steps, or never if neither is given; the command then goes on to serve
what was learned, until it is interrupted. When it is started again it continues where it was. On a terminal it draws
how training goes, and the log goes to log.txt in the data folder.

With --rollout and --agent a program plays this node's rollouts; see docs/agents.md.`,
		Example: `  lightswarm learn --data ./mynet
  lightswarm learn --data ./mynet --rollout --learner-target 0.95
  lightswarm learn --data ./mynet --rollout --agent "python3 agent.py" --agent-preload openai`,
		Args: takes(0, 0),
	}
	data := p.dataFlag(c)
	c.Flags().BoolVar(&withRollouts, "rollout", false, "also run rollouts on this machine")
	c.Flags().BoolVar(&plain, "plain", false, "write the log instead of drawing a screen")
	keys := append(append(append([]string{}, commonSettings...), learnerSettings...), rolloutSettings...)
	config.AddFlags(c.Flags(), keys...)
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		for _, flag := range []string{"agent", "agent-lightning"} {
			if cmd.Flags().Changed(flag) && !withRollouts {
				return usage(fmt.Errorf("flag --%s: this node runs no rollouts unless --rollout is given too", flag))
			}
		}
		folder, err := data()
		if err != nil {
			return usage(err)
		}
		if err := checkFolder(folder); err != nil {
			return err
		}
		loaded, err := settings(cmd, folder)
		if err != nil {
			return err
		}
		if !hasDatabase(folder) {
			return noNetwork(folder)
		}
		loaded.Roles = []config.Role{config.RoleLearner}
		if withRollouts {
			loaded.Roles = append(loaded.Roles, config.RoleRollout)
		}
		o := node.Options{Config: loaded.Config, Folder: folder}
		if plain || !term.IsTerminal(int(p.err.Fd())) {
			return p.runNode(cmd.Context(), o, logProgress)
		}
		return p.runWithScreen(cmd.Context(), o)
	}
	endWithInput(c)
	return c
}
