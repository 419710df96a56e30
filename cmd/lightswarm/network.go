package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lightswarm/lightswarm/node"
	"github.com/lightswarm/lightswarm/node/config"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/calc"
	"github.com/lightswarm/lightswarm/wire"
)

// createdNetwork is what `network create --json` prints.
type createdNetwork struct {
	Network string `json:"network"`
	Name    string `json:"name"`
	Peer    string `json:"peer"`
	Data    string `json:"data"`
	// Train is the command that runs its learner on this machine.
	Train string `json:"train"`
	// Join is the command that makes another machine a rollout node, while the learner runs.
	Join string `json:"join"`

	addresses []string
}

func (p *program) network() *cobra.Command {
	c := &cobra.Command{Use: "network", Short: "Create networks"}
	c.AddCommand(p.networkCreate())
	return c
}

// founding is a network as the flags describe it.
type founding struct {
	name, policy   string
	environments   []string
	learners       []string
	nonce, created string
	rollout        wire.RolloutRules
	evaluation     wire.EvaluationRules
	// measured says that the evaluation's tasks were given.
	measured bool
}

func (p *program) networkCreate() *cobra.Command {
	standard, err := node.DefaultFounding("")
	if err != nil {
		panic(err) // the defaults have no environments that could be wrong
	}
	f := founding{environments: []string{calc.Name}, rollout: standard.Rollout, evaluation: standard.Evaluation}
	c := &cobra.Command{
		Use:   "create --name NAME",
		Short: "Create a network, whose learner runs on this machine",
		Long: `Sign the charter of a new network: its learner, environments, first policy and rules, which never change. Its CID is the
network's id. The data folder gets the identity of the network's learner: keep a copy of its identity.key.

An environment is built in, or a package file or folder that lightswarm env made: the data folder keeps the package, and
nodes that join get it from members. With several, tasks are drawn by weight: --env calc --env letters=3 draws three of
four tasks from letters. Check it first with lightswarm env check.

Listen addresses are stored in the data folder's config.toml. A port that is not given is chosen now, so that the join
command stays true.`,
		Example: `  lightswarm network create --name mynet --data ./mynet
  lightswarm network create --name mynet --data ./mynet --listen /ip4/0.0.0.0/tcp/4001 --group-size 16
  lightswarm network create --name mynet --data ./mynet --env letters-0.1.0.lsenv`,
		Args: takes(0, 0),
	}
	data := p.dataFlag(c)
	flags := c.Flags()
	flags.StringVar(&f.name, "name", "", "name of the network, for people")
	flags.StringArrayVar(&f.environments, "env", f.environments, "environment to train on, as NAME|FILE|FOLDER[=WEIGHT]; repeatable")
	flags.StringVar(&f.policy, "policy", "", "folder of the first policy (default the built-in one)")
	flags.StringSliceVar(&f.learners, "learner", nil, "peer id of another learner that may sign releases; repeatable")
	flags.Uint32Var(&f.rollout.GroupSize, "group-size", f.rollout.GroupSize, "rollouts of one task that are compared")
	flags.Uint32Var(&f.rollout.MaxLag, "max-lag", f.rollout.MaxLag, "largest lag, in versions, that is trained on")
	flags.Uint32Var(&f.rollout.GroupsPerVersion, "groups-per-version", f.rollout.GroupsPerVersion, "groups a node runs under one version until a release says otherwise")
	flags.Uint32Var(&f.rollout.MaxCalls, "max-calls", f.rollout.MaxCalls, "calls of one rollout")
	flags.Uint32Var(&f.rollout.MaxCompletionTokens, "max-completion-tokens", f.rollout.MaxCompletionTokens, "tokens of one completion")
	flags.Uint32Var(&f.evaluation.Tasks, "evaluation-tasks", f.evaluation.Tasks, "held-out tasks of each environment that measure a release; fewer if one has fewer and none are given")
	flags.StringVar(&f.nonce, "nonce", "", "up to 32 hexadecimal digits that tell networks apart (default random)")
	flags.StringVar(&f.created, "created", "", "time of founding, such as 2026-01-31T12:00:00Z (default now)")
	config.AddFlags(flags, "p2p.listen", "rollout.environments.openenv")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		folder, err := data()
		if err != nil {
			return usage(err)
		}
		f.measured = cmd.Flags().Changed("evaluation-tasks")
		return p.createNetwork(cmd, folder, f)
	}
	return c
}

// createNetwork founds a network in a data folder that has none.
func (p *program) createNetwork(cmd *cobra.Command, folder string, f founding) error {
	if f.name == "" {
		return usage(errors.New("give the network a name with --name"))
	}
	if err := checkFolder(folder); err != nil {
		return err
	}
	loaded, err := settings(cmd, folder)
	if err != nil {
		return err
	}
	network, err := f.founding(cmd.Context(), flagsOf(loaded.Config))
	if err != nil {
		return usage(err)
	}
	// Nothing is written before everything that can be wrong was looked at. A founding that was interrupted has told
	// nobody of its network, and is done anew.
	if err := clearUnfinished(folder); err != nil {
		return err
	}
	belongs, bound, err := networkOf(folder)
	if err != nil {
		return err
	}
	if bound {
		return usage(fmt.Errorf("%s belongs to a network already, %s: run its learner with lightswarm learn --data %s, or name another folder with --data", folder, belongs, folder))
	}
	if loaded.P2P.Listen, err = choosePorts(loaded.P2P.Listen); err != nil {
		return usage(loaded.Explain(err))
	}
	loaded.Roles, loaded.Network = []config.Role{config.RoleLearner}, ""
	created, err := found(cmd.Context(), folder, loaded.Config, network)
	if err != nil {
		return nameFlag(err)
	}
	created.Train = "lightswarm learn --data " + created.Data
	if err := remember(folder, remembered{"listen", "The addresses that the join command names.", loaded.P2P.Listen}); err != nil {
		return err
	}
	if err := finishFounding(folder); err != nil {
		return err
	}
	if reach := reachOf(created.addresses); reach != "" {
		fmt.Fprintf(p.err, "lightswarm: the join command works %s alone. For others, forward a port of the router to this machine,\nlisten on that port with --listen, and name the public address in the join command.\n", reach)
	}
	return p.print(created, func(w io.Writer) {
		fmt.Fprintf(w, "network  %s (%s)\n", created.Network, created.Name)
		fmt.Fprintf(w, "learner  %s\n", created.Peer)
		fmt.Fprintf(w, "train    %s\n", created.Train)
		fmt.Fprintf(w, "join     %s\n", created.Join)
	})
}

// founding turns flags into what a node founds.
func (f *founding) founding(ctx context.Context, how environmentFlags) (*node.Founding, error) {
	network, err := node.DefaultFounding(f.name)
	if err != nil {
		return nil, err
	}
	network.Rollout, network.Evaluation = f.rollout, f.evaluation
	for _, text := range f.environments {
		if err := train(ctx, &network, text, how); err != nil {
			return nil, fmt.Errorf("--env: %w", err)
		}
	}
	if f.measured {
		network.Evaluation.Tasks = f.evaluation.Tasks
	}
	for _, text := range f.learners {
		peer, err := wire.ParsePeerIDString(text)
		if err != nil {
			return nil, fmt.Errorf("--learner %q is no peer id: copy it from lightswarm status: %w", text, err)
		}
		network.Learners = append(network.Learners, peer)
	}
	if f.nonce != "" {
		if network.Nonce, err = hex.DecodeString(f.nonce); err != nil {
			return nil, fmt.Errorf("--nonce %q: want an even number of hexadecimal digits", f.nonce)
		}
	}
	if f.created != "" {
		if network.Created, err = time.Parse(time.RFC3339, f.created); err != nil {
			return nil, fmt.Errorf("--created %q: want a time such as 2026-01-31T12:00:00Z", f.created)
		}
	}
	if network.Base, err = readPolicy(f.policy); err != nil {
		return nil, fmt.Errorf("--policy: %w", err)
	}
	return &network, check(&network)
}

// train adds an environment that a flag names, once it has shown that it runs: a charter cannot be changed.
func train(ctx context.Context, f *node.Founding, text string, how environmentFlags) error {
	name, weight, err := weighted(text)
	if err != nil {
		return err
	}
	a, err := findEnvironment(ctx, name)
	if err != nil {
		return err
	}
	a.environmentFlags = how
	e, err := a.open(ctx)
	if err != nil {
		return err
	}
	if a.Statement != nil {
		f.Statements = append(f.Statements, *a.Statement)
	}
	return errors.Join(f.Train(a.Package, weight), env.Close(e))
}

// weighted splits NAME[=WEIGHT]. A name may have another = before.
func weighted(text string) (name string, weight uint32, err error) {
	at := strings.LastIndexByte(text, '=')
	if at < 0 || exists(text) {
		return text, 1, nil
	}
	n, err := strconv.ParseUint(text[at+1:], 10, 32)
	if err != nil || n < 1 || n > wire.MaxEnvironmentWeight {
		return "", 0, fmt.Errorf("%q: the weight behind = must be a whole number from 1 to %d", text, wire.MaxEnvironmentWeight)
	}
	return text[:at], uint32(n), nil
}

// check validates the charter that a founding would become.
func check(f *node.Founding) error {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return fmt.Errorf("make a key: %w", err)
	}
	anchor, _, err := f.Base.Encode()
	if err != nil {
		return fmt.Errorf("--policy: %w", err)
	}
	created := f.Created
	if created.IsZero() {
		created = time.Now()
	}
	return nameFlag(wire.Charter{
		Name: f.Name, Created: created, Nonce: f.Nonce,
		// The founder's own key does not exist yet; any other stands for it.
		Learners:     append([]wire.PeerID{wire.NewKey(private).Peer()}, f.Learners...),
		Environments: f.Environments,
		Base:         wire.PolicyRef{Digest: f.Base.Digest(), StateDigest: f.Base.State, Anchor: anchor},
		Rollout:      f.Rollout, Evaluation: f.Evaluation,
	}.Validate())
}

// charterFlags are the flags that set a charter's fields.
var charterFlags = map[string]string{
	"name": "name", "nonce": "nonce", "created_unix_ms": "created", "learners": "learner",
	"rollout.group_size": "group-size", "rollout.max_lag": "max-lag", "rollout.groups_per_version": "groups-per-version",
	"rollout.max_calls": "max-calls", "rollout.max_completion_tokens": "max-completion-tokens",
	"evaluation.tasks": "evaluation-tasks", "environments": "env",
}

// nameFlag makes an error about a field of a charter one about the flag that sets it; others stay as they are.
func nameFlag(err error) error {
	var invalid *wire.ValidationError
	if !errors.As(err, &invalid) {
		return err
	}
	flag, why := charterFlags[invalid.Field], invalid.Why
	switch {
	case strings.HasPrefix(invalid.Field, "environments[") && strings.HasSuffix(invalid.Field, ".validation_tasks"):
		flag, why = "evaluation-tasks", "is more than the held-out tasks of an environment"
	case strings.HasPrefix(invalid.Field, "environments["):
		flag = "env"
	case flag == "":
		return err
	}
	return usage(fmt.Errorf("--%s %s", flag, why))
}

// found makes the network by starting its learner for a moment.
func found(ctx context.Context, folder string, c config.Config, network *node.Founding) (createdNetwork, error) {
	n, err := node.New(ctx, node.Options{Config: c, Folder: folder, Found: network, Version: programVersion()})
	if err != nil {
		return createdNetwork{}, err
	}
	return createdNetwork{
		Network: n.Charter().ID.String(), Name: n.Charter().Name, Peer: n.Peer().String(), Data: folder, Join: n.JoinCommand(),
		addresses: n.Addresses(),
	}, n.Close()
}
