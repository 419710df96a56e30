package node

import (
	"crypto/ed25519"
	"log/slog"

	"github.com/libp2p/go-libp2p/core/host"

	"github.com/lightswarm/lightswarm/learner"
	"github.com/lightswarm/lightswarm/node/config"
	"github.com/lightswarm/lightswarm/p2p"
	"github.com/lightswarm/lightswarm/rollout/env"
)

// Options say what a node is. Fields are optional unless they say otherwise.
type Options struct {
	// Config are the settings. Required; start from config.Default.
	Config config.Config
	// Folder is the data folder. Without one the node keeps everything in memory, serves no API, and has a fresh
	// identity unless Key is given.
	Folder string
	// Key is the identity of a node without a data folder.
	Key ed25519.PrivateKey
	// Found makes a network if the data folder has none. Without it the node joins Config.Network, or continues in the
	// network that its folder belongs to.
	Found *Founding
	// Environments are those that the node can run without a package; nil means those built into the program.
	Environments *env.Set
	// Drivers run the environments that come as packages. Without one of a package's kind the node cannot run it.
	Drivers env.Drivers
	// Modules is a command that runs agents that are WebAssembly modules, as process.Options has it. Without it the node has
	// none.
	Modules []string
	// Observer is told what the node's learner does, besides the node itself.
	Observer learner.Observer
	// Trainer returns what the node's learner trains with in place of the trainer that it is given. For measurement.
	Trainer func(learner.Trainer) learner.Trainer
	// Version is the program's, such as "0.1.0".
	Version string
	// Log receives what an operator wants to know; nil discards it.
	Log *slog.Logger
	// Host is the libp2p host to use in place of one made from Config; the node closes it. For simulation.
	Host host.Host
	// Tuning are the p2p intervals and bounds; zero fields take the defaults.
	Tuning p2p.Tuning
	// Seed makes the network's choices repeatable; 0 takes a random one.
	Seed uint64
}
