package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lightswarm/lightswarm/node"
	"github.com/lightswarm/lightswarm/node/config"
	"github.com/lightswarm/lightswarm/wire"
)

func (p *program) join() *cobra.Command {
	c := &cobra.Command{
		Use:   "join [NETWORK]",
		Short: "Run rollouts for a network",
		Long: `Join the network with this id and run rollouts for it. Somebody who runs a node of the network can tell the whole
command: lightswarm status prints it. No inbound port is needed. The first time, a member has to be found: one that
--bootstrap names, or one on the local network.

The command runs until it is interrupted. From the second time on NETWORK may be left out: the command continues in the
network that the data folder belongs to, and dials the same members, which are stored in the data folder's config.toml.

With --agent the rollouts are played by a program of any kind that calls a model by OpenAI's API: it is started for each
rollout, gets the task on standard input, and answers on standard output. With --agent-lightning they are played by
runners of Agent Lightning 0.3 that connect to this node. See docs/agents.md.`,
		Example: `  lightswarm join bafkrei… --bootstrap /ip4/192.0.2.1/tcp/4001/p2p/12D3Koo…
  lightswarm join --data ./volunteer
  lightswarm join --data ./volunteer --agent "python3 agent.py" --agent-preload openai`,
		Args: takes(0, 1),
	}
	data := p.dataFlag(c)
	config.AddFlags(c.Flags(), append(append([]string{}, commonSettings...), rolloutSettings...)...)
	c.RunE = func(cmd *cobra.Command, arguments []string) error {
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
		if len(arguments) > 0 {
			if _, err := wire.ParseCIDString(arguments[0]); err != nil {
				return usage(fmt.Errorf("%q is not a network id: copy the whole id, which starts with bafkrei, from the join command", arguments[0]))
			}
			loaded.Network = arguments[0]
		}
		if err := p.checkSources(loaded.Config, folder); err != nil {
			return err
		}
		loaded.Roles = []config.Role{config.RoleRollout}
		return p.runNode(cmd.Context(), node.Options{Config: loaded.Config, Folder: folder}, logProgress)
	}
	endWithInput(c)
	return c
}

// checkSources fails if a node could look for its network for ever: nobody says which it is, or where a member is. If there
// is but the local network to look in, it says so.
func (p *program) checkSources(c config.Config, folder string) error {
	if hasDatabase(folder) {
		if len(c.P2P.Bootstrap) > 0 {
			return nil
		}
		if _, bound, err := networkOf(folder); bound || err != nil {
			return err // a network's database remembers members
		}
	}
	switch {
	case c.Network == "":
		return usage(fmt.Errorf("there is no network yet in %s: give the id of the one to join, as in the join command that lightswarm status prints, or name the data folder of a node with --data", folder))
	case len(c.P2P.Bootstrap) > 0:
	case c.P2P.MDNS:
		fmt.Fprintln(p.err, "lightswarm: looking for a member on the local network. If none runs there, stop this and name one with --bootstrap, as in the join command.")
	default:
		return usage(errors.New("nothing says where a member of the network is: name one with --bootstrap, as in the join command, or look on the local network with --mdns"))
	}
	return nil
}
