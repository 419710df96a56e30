package testnet

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/lightswarm/lightswarm/node"
	"github.com/lightswarm/lightswarm/node/config"
	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/policy/base"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/wire"
)

// Options say what network to run and for how long. Start from DefaultOptions.
type Options struct {
	// Nodes is how many rollout nodes there are, besides the learner.
	Nodes int
	// Seed fixes keys and network; see the package comment.
	Seed uint64
	// Environment is the name of a built-in environment, which is trained on unless there is a Package.
	Environment string
	// Policy is the folder of the first policy; empty is the built-in one.
	Policy string
	// Package is the environment to train on.
	Package *env.Package
	// Drivers run it on nodes of this process.
	Drivers env.Drivers
	// Modules starts agents that are WebAssembly modules on nodes of this process, as node.Options has it.
	Modules []string
	// GroupSize is how many rollouts of one task are compared, EvaluationTasks how many held-out tasks measure a version;
	// 0 leaves it to node.DefaultFounding. A task on which an agent spends long wants fewer of both.
	GroupSize, EvaluationTasks uint32
	// MaxCalls is how many calls a rollout may have, MaxCompletionTokens how many tokens a completion; 0 leaves it to
	// node.DefaultFounding.
	MaxCalls, MaxCompletionTokens uint32
	// Timeout ends the run; 0 sets no limit.
	Timeout time.Duration
	// Processes makes every node a process of the program Binary. Otherwise all share this process.
	Processes bool
	Binary    string
	// Dir is the run folder. It must not exist, or be empty.
	Dir string
	// Examples is how many held-out tasks the report shows in full.
	Examples int
	// Settings are the nodes' settings: the learner's target, steps and so on. Roles, network and addresses are the
	// run's to set.
	Settings config.Config
	// Version and Command are for the report.
	Version, Command string
}

// DefaultOptions returns a network for two processors that learns its environment in about half a minute.
func DefaultOptions() Options {
	o := Options{
		Nodes: 4, Seed: 1, Environment: "calc", Timeout: 5 * time.Minute, Examples: 6,
		Settings: config.Default(),
	}
	s := &o.Settings
	s.P2P.Listen = []string{"/ip4/127.0.0.1/tcp/0"}
	// All of it is on loopback: nobody is to be found, and no router to be asked for a port.
	s.P2P.MDNS, s.P2P.DHT, s.P2P.NATPortMap, s.P2P.Relay = false, false, false, false
	// The nodes share the machine's processors, and its memory, where their stores are: 64 MiB holds a hundred versions.
	s.Rollout.Threads = 1
	s.Store.MaxBlockBytes = 64 << 20
	s.Learner.Target = 0.95
	s.Learner.Workers = 1
	s.Learner.FinalPatience = 30 * time.Second
	return o
}

// OptionError says which option is wrong and what to do about it.
type OptionError struct {
	// Option is its name, as the command's flag.
	Option string
	// Problem completes "OPTION: …".
	Problem string
}

func (e *OptionError) Error() string { return e.Option + ": " + e.Problem }

// Validate checks everything that Run relies on and changes nothing. Its error is an *OptionError, or a
// *config.FieldError for a setting of the nodes.
func (o *Options) Validate() error {
	wrong := func(option, format string, values ...any) error {
		return &OptionError{option, fmt.Sprintf(format, values...)}
	}
	switch {
	case o.Nodes < 1 || o.Nodes > maxNodes:
		return wrong("nodes", "a testnet of %d rollout nodes: use 1 to %d", o.Nodes, maxNodes)
	case o.Timeout < 0:
		return wrong("timeout", "%s: use 0 for none, or a positive duration", o.Timeout)
	case o.Dir == "":
		return wrong("dir", "the run folder is missing")
	case o.Examples < 0:
		return wrong("examples", "%d: use 0 or a positive number", o.Examples)
	case o.Processes && o.Binary == "":
		return wrong("processes", "the program that nodes are processes of is missing")
	case o.Settings.Rollout.Agent.Lightning != "":
		return &config.FieldError{
			Key: "rollout.agent.lightning", Value: o.Settings.Rollout.Agent.Lightning,
			Problem: "the nodes of a testnet cannot share an address for runners; leave it out, and join a network with it",
		}
	}
	switch entries, err := os.ReadDir(o.Dir); {
	case len(entries) > 0: // Figures of two runs do not mix.
		return wrong("dir", "the run folder %s is not empty: name another one, or remove it", o.Dir)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return wrong("dir", "%s is no folder that can be read: name another one", o.Dir)
	}
	f, err := o.founding()
	if err != nil {
		return err
	}
	if n := f.Rollout.GroupSize; n < 2 || n > wire.MaxRolloutsPerBundle {
		return wrong("group-size", "%d rollouts: use 2 to %d, or 0 for the usual", n, wire.MaxRolloutsPerBundle)
	}
	if n := f.Rollout.MaxCalls; n > wire.MaxCallsPerRollout {
		return wrong("max-calls", "%d calls: use at most %d, or 0 for the usual", n, wire.MaxCallsPerRollout)
	}
	if n := f.Rollout.MaxCompletionTokens; n > wire.MaxTokensPerCall {
		return wrong("max-completion-tokens", "%d tokens: use at most %d, or 0 for the usual", n, wire.MaxTokensPerCall)
	}
	if held := f.Environments[0].ValidationTasks; uint64(f.Evaluation.Tasks) > held {
		return wrong("evaluation-tasks", "%d: the environment holds out %d", f.Evaluation.Tasks, held)
	}
	return o.Settings.Validate()
}

// founding is the network that the run founds, but for the founder's key.
func (o *Options) founding() (node.Founding, error) {
	f, err := node.DefaultFounding(networkName)
	if err != nil {
		return f, err
	}
	if f.Base, err = o.base(); err != nil {
		return f, err
	}
	p := o.Package
	if p == nil {
		if p, err = environment(o.Environment); err != nil {
			return f, &OptionError{"env", err.Error()}
		}
	}
	if err := f.Train(p, 1); err != nil {
		return f, &OptionError{"env", err.Error()}
	}
	f.Created, f.Nonce = founded, o.nonce()
	f.Rollout.GroupsPerVersion = o.firstGroups()
	if o.GroupSize > 0 {
		f.Rollout.GroupSize = o.GroupSize
	}
	if o.EvaluationTasks > 0 {
		f.Evaluation.Tasks = o.EvaluationTasks
	}
	if o.MaxCalls > 0 {
		f.Rollout.MaxCalls = o.MaxCalls
	}
	if o.MaxCompletionTokens > 0 {
		f.Rollout.MaxCompletionTokens = o.MaxCompletionTokens
	}
	return f, nil
}

// base is the first policy.
func (o *Options) base() (*policy.Snapshot, error) {
	if o.Policy == "" {
		return base.Load()
	}
	s, err := policy.ReadDir(o.Policy)
	if err != nil {
		return nil, &OptionError{"policy", err.Error()}
	}
	return s, nil
}

// nodeSettings are the settings of every node, which runs the package, and whose store has room for it besides.
func (o *Options) nodeSettings() config.Config {
	s := o.Settings
	if s.Learner.Metrics == "" {
		s.Learner.Metrics = o.Dir
	}
	if o.Package != nil {
		s.Store.MaxBlockBytes += config.Size(o.Package.Bytes())
		// Who runs a testnet on an environment runs the environment.
		s.Rollout.Environments.Kinds = []string{o.Package.Manifest().Kind}
	}
	return s
}

// environmentName is what the report says.
func (o *Options) environmentName() string {
	if o.Package == nil {
		return o.Environment
	}
	m := o.Package.Manifest()
	return m.Name + "@" + m.Version
}

// maxNodes is what one machine can reasonably run.
const maxNodes = 256

// seedBytes derives 32 bytes of a run's seed for one use.
func (o *Options) seedBytes(use string, index int) [32]byte {
	b := append([]byte("lightswarm/testnet/1\x00"+use), 0)
	b = binary.BigEndian.AppendUint64(b, o.Seed)
	return sha256.Sum256(binary.BigEndian.AppendUint64(b, uint64(index)))
}

// key is the identity of node number index; the learner is number 0.
func (o *Options) key(index int) ed25519.PrivateKey {
	seed := o.seedBytes("key", index)
	return ed25519.NewKeyFromSeed(seed[:])
}

// firstGroups is how many groups a node runs under version 0, for which no learner has counted the nodes yet: together a
// batch.
func (o *Options) firstGroups() uint32 {
	return uint32((o.Settings.Learner.Groups + o.Nodes - 1) / o.Nodes)
}

// nonce makes the network's id follow from the seed.
func (o *Options) nonce() []byte {
	seed := o.seedBytes("nonce", 0)
	return seed[:16]
}

// founded is when every testnet was founded: a clock would make their ids differ.
var founded = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
