package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/lightswarm/lightswarm/node"
	"github.com/lightswarm/lightswarm/node/config"
	"github.com/lightswarm/lightswarm/node/store"
)

// dataFlag adds --data, whose value folder returns.
func (p *program) dataFlag(c *cobra.Command) (folder func() (string, error)) {
	var path string
	c.Flags().StringVar(&path, "data", "", "data folder (default $LIGHTSWARM_DATA, or lightswarm in the user's data directory)")
	return func() (string, error) {
		if path != "" {
			return path, nil
		}
		return config.DefaultFolder()
	}
}

// settings merges the data folder's config.toml, the environment and the command's flags.
func settings(cmd *cobra.Command, folder string) (*config.Loaded, error) {
	loaded, err := config.Load(config.Sources{
		File: config.View(folder).ConfigFile(), Environ: os.Environ(), Flags: cmd.Flags(),
	})
	return loaded, usage(err)
}

// startedNode is what a node's command prints once the node listens.
type startedNode struct {
	Network   string   `json:"network"`
	Name      string   `json:"name"`
	Peer      string   `json:"peer"`
	Roles     []string `json:"roles"`
	Addresses []string `json:"addresses"`
	// Join is the command that makes another machine a rollout node of the network.
	Join string `json:"join"`
	Data string `json:"data"`
	// API is where the local API listens.
	API string `json:"api"`
}

// runNode runs a node until it is interrupted, which is a good end, asked to stop, or fails. watch may be nil; it is told
// of a node that has started and returns a function that it is told of the node's end with.
func (p *program) runNode(ctx context.Context, o node.Options, watch func(*node.Node, *slog.Logger) (ended func())) error {
	if o.Log == nil {
		log, err := p.logger(o.Config.Log, p.err)
		if err != nil {
			return usage(err)
		}
		o.Log = log
	}
	o.Version = programVersion()
	drivers, err := environmentDrivers(flagsOf(o.Config))
	if err != nil {
		return err
	}
	o.Drivers = drivers
	if o.Modules, err = moduleCommand(); err != nil {
		return err
	}
	last := lastListen(o.Folder)
	o.Config.P2P.Listen = keepPorts(o.Config.P2P.Listen, last)
	n, err := node.New(ctx, o)
	if err != nil {
		if errors.Is(context.Cause(ctx), errInterrupted) {
			return errInterrupted
		}
		return explainFolder(err, o.Folder)
	}
	err = p.announceNode(n, o)
	if !o.Config.Has(config.RoleLearner) && slices.Contains(n.Charter().Learners, n.Peer()) {
		fmt.Fprintf(p.err, "lightswarm: %s is the data folder of a learner of this network; now it runs rollouts alone. To train, stop this and run\nlightswarm learn --data %s, with --rollout for both.\n", o.Folder, o.Folder)
	}
	if err == nil && len(o.Config.P2P.Bootstrap) > 0 {
		err = remember(o.Folder, remembered{"bootstrap", "Members to dial first, as the first start named them.", o.Config.P2P.Bootstrap})
	}
	if err == nil && !slices.Equal(last, o.Config.P2P.Listen) {
		err = rememberListen(o.Folder, o.Config.P2P.Listen)
	}
	if err == nil {
		ended := func() {}
		if watch != nil {
			ended = watch(n, o.Log)
		}
		err = n.Run(ctx)
		ended()
	}
	if errors.Is(err, errInterrupted) {
		err = nil
	}
	version := "before the first release"
	if head := n.Status().Head; head != nil {
		version = fmt.Sprintf("at version %d", head.Version)
	}
	if err := errors.Join(err, n.Close()); err != nil {
		return err
	}
	if !p.json {
		fmt.Fprintf(p.err, "lightswarm: stopped %s; everything is saved in %s. Go on with %s\n", version, o.Folder, again(o))
	}
	return nil
}

// explainFolder says what to do with a data folder that does not suit the command.
func explainFolder(err error, folder string) error {
	switch {
	case errors.Is(err, node.ErrNotLearner):
		return usage(fmt.Errorf("%w. Run rollouts with lightswarm join --data %s, or name the data folder of the network's learner with --data", err, folder))
	case errors.Is(err, node.ErrNoNetwork):
		return noNetwork(folder)
	case errors.Is(err, store.ErrOtherNetwork), errors.Is(err, node.ErrKind), errors.Is(err, node.ErrAuthor):
		return usage(err)
	}
	return err
}

// noNetwork says that a data folder has nothing that a learner could run.
func noNetwork(folder string) error {
	return usage(fmt.Errorf("there is no network in %s: found one with lightswarm network create --data %s, or name the data folder of its learner with --data", folder, folder))
}

// again is the command that goes on where a node stopped. A program that plays rollouts is not remembered: what runs on a
// machine is said each time, or in the data folder's config.toml.
func again(o node.Options) string {
	command := againCommand(o)
	switch a := o.Config.Rollout.Agent; {
	case !o.Config.Has(config.RoleRollout):
	case len(a.Command) > 0:
		command += ", and the same --agent"
	case a.Lightning != "":
		command += ", and the same --agent-lightning"
	}
	return command
}

func againCommand(o node.Options) string {
	switch {
	case !o.Config.Has(config.RoleLearner):
		return "lightswarm join --data " + o.Folder
	case o.Config.Has(config.RoleRollout):
		return "lightswarm learn --rollout --data " + o.Folder
	}
	return "lightswarm learn --data " + o.Folder
}

// announceNode says where a node that has started can be reached.
func (p *program) announceNode(n *node.Node, o node.Options) error {
	charter := n.Charter()
	s := startedNode{
		Network: charter.ID.String(), Name: charter.Name, Peer: n.Peer().String(),
		Addresses: n.Addresses(), Join: n.JoinCommand(), Data: o.Folder, API: n.APIAddress(),
	}
	for _, role := range o.Config.Roles {
		s.Roles = append(s.Roles, string(role))
	}
	return p.print(s, func(w io.Writer) {
		fmt.Fprintf(w, "network  %s (%s)\n", s.Network, s.Name)
		fmt.Fprintf(w, "peer     %s\n", s.Peer)
		fmt.Fprintf(w, "status   lightswarm status --data %s\n", s.Data)
		fmt.Fprintf(w, "join     %s\n", s.Join)
	})
}

// logger writes to a file, which may be standard error, as the settings say.
func (p *program) logger(c config.Log, to *os.File) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Level)); err != nil {
		return nil, fmt.Errorf("log.level %q: %w", c.Level, err)
	}
	text := c.Format == "text" || c.Format == "auto" && term.IsTerminal(int(to.Fd()))
	if !text {
		return slog.New(slog.NewJSONHandler(to, &slog.HandlerOptions{Level: level})), nil
	}
	short := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			a.Value = slog.StringValue(a.Value.Time().Format(time.TimeOnly))
		}
		return a
	}
	return slog.New(slog.NewTextHandler(to, &slog.HandlerOptions{Level: level, ReplaceAttr: short})), nil
}
