package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lightswarm/lightswarm/node"
	"github.com/lightswarm/lightswarm/node/config"
	"github.com/lightswarm/lightswarm/wire"
)

func (p *program) join() *cobra.Command {
	c := &cobra.Command{
		Use:   "join NETWORK",
		Short: "Run rollouts for a network",
		Long: `Join the network with this id and run rollouts for it. Somebody who runs a node of the network can tell the whole
command: lightswarm status prints it. No inbound port is needed.

The command runs until it is interrupted. Without NETWORK it continues in the network that the data folder belongs to,
and dials the same members: they are stored in the data folder's config.toml.`,
		Example: `  lightswarm join bafkrei… --bootstrap /ip4/192.0.2.1/tcp/4001/p2p/12D3Koo…
  lightswarm join --data ./volunteer`,
		Args: cobra.MaximumNArgs(1),
	}
	data := p.dataFlag(c)
	config.AddFlags(c.Flags(), append(append([]string{}, commonSettings...), rolloutSettings...)...)
	c.RunE = func(cmd *cobra.Command, arguments []string) error {
		folder, err := data()
		if err != nil {
			return usage(err)
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
		loaded.Roles = []config.Role{config.RoleRollout}
		return p.runNode(cmd.Context(), node.Options{Config: loaded.Config, Folder: folder}, nil)
	}
	endWithInput(c)
	return c
}
