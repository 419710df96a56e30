package config

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/lightswarm/lightswarm/wire"
)

// Role is a part that a node plays in its network.
type Role string

// The roles of a node. One process may take several.
const (
	// RoleLearner trains the policy and signs releases. The charter names the peers that may.
	RoleLearner Role = "learner"
	// RoleRollout runs agents against the newest policy.
	RoleRollout Role = "rollout"
	// RoleRelay only connects others: it keeps their messages and blocks within its limits and passes them on.
	RoleRelay Role = "relay"
)

// Config is everything that a user can set about one node. The zero value is not valid; start from [Default].
type Config struct {
	// Network is the id of the network, the CID of its signed charter.
	Network string
	// Roles are the parts that this node plays; at least one.
	Roles []Role

	P2P     P2P
	Store   Store
	API     API
	Rollout Rollout
	Learner Learner
	Log     Log
}

// P2P says how the node reaches others.
type P2P struct {
	// Listen are the multiaddresses to listen on. Port 0 picks a free one.
	Listen []string
	// Bootstrap are multiaddresses, each with a /p2p/ peer id, of members to dial first.
	Bootstrap []string
	// MDNS finds members on the local network.
	MDNS bool
	// DHT finds members through a Kademlia table that only this network's members form.
	DHT bool
	// NATPortMap asks the router for an inbound port (UPnP, NAT-PMP).
	NATPortMap bool
	// Relay lets others reach this node through members that relay, and makes it relay for others if it can be reached:
	// a little control traffic. Nothing depends on it.
	Relay bool
}

// Store bounds what the node keeps on disk.
type Store struct {
	// MaxBlockBytes is how many bytes of blocks, pinned and unpinned, are kept. Unpinned blocks make room, oldest
	// first; pinned ones are never removed for it.
	MaxBlockBytes Size
}

// API is the local HTTP API.
type API struct {
	// Address is a loopback host:port; port 0 picks a free one, which the data folder's api.address then names.
	Address string
}

// Rollout says how much work a rollout node takes on.
type Rollout struct {
	// InFlight is how many groups and evaluation blocks run at once; 0 means 4. More of them make fuller batches for
	// the engine and older groups for the learner.
	InFlight int
	// Slots is how many calls the engine runs together; 0 means 64.
	Slots int
	// Threads is how many processors the engine uses; 0 means all.
	Threads int
	// Timeout ends a rollout that takes longer; 0 means never. It never changes one that ends in time.
	Timeout time.Duration
	// Agent is the program that plays the rollouts.
	Agent Agent
	// Environments says which of other people's environments the node runs.
	Environments Environments
}

// The kinds of environments; package rollout/env explains what they are.
const (
	KindBuiltin = "builtin"
	KindWasm    = "wasm"
	KindExec    = "exec"
	KindOpenEnv = "openenv"
)

// Environments says what a rollout node lets a network's charter run on its machine.
type Environments struct {
	// Kinds are the kinds of environments that it runs; at least one.
	Kinds []string
	// Signers are the peer ids of authors whose packages it runs, besides those that the node signs itself; none means
	// anybody's.
	Signers []string
	// OpenEnv says where the servers of environments of kind openenv are, each as NAME=ADDRESS: the environment's name or
	// CID, and an address as package rollout/env/openenv takes it.
	OpenEnv []string
}

// Servers are the addresses of OpenEnv by name.
func (e *Environments) Servers() map[string]string {
	servers := map[string]string{}
	for _, s := range e.OpenEnv {
		name, address, _ := strings.Cut(s, "=")
		servers[name] = address
	}
	return servers
}

func (e *Environments) check(check func(ok bool, key, problem string)) {
	kinds := []string{KindBuiltin, KindWasm, KindExec, KindOpenEnv}
	check(len(e.Kinds) > 0, "rollout.environments.kinds", "give at least one of builtin, wasm, exec, openenv")
	for _, kind := range e.Kinds {
		check(slices.Contains(kinds, kind), "rollout.environments.kinds", fmt.Sprintf("%q is no kind of environment; use builtin, wasm, exec or openenv", kind))
	}
	seen := map[string]bool{}
	for _, s := range e.OpenEnv {
		name, address, _ := strings.Cut(s, "=")
		u, err := url.Parse(address)
		check(name != "" && err == nil && slices.Contains([]string{"http", "https", "ws", "wss"}, u.Scheme) && u.Host != "", "rollout.environments.openenv",
			fmt.Sprintf("%q does not say where an environment's server is; use for example maze=http://127.0.0.1:8000", s))
		check(!seen[name], "rollout.environments.openenv", fmt.Sprintf("%q is there twice; an environment has one server", name))
		seen[name] = true
	}
	for _, signer := range e.Signers {
		_, err := wire.ParsePeerIDString(signer)
		check(err == nil, "rollout.environments.signers", fmt.Sprintf("%q is no peer id; use for example 12D3Koo…, the author that `lightswarm env show` prints", signer))
	}
}

// Learner says how a learner trains and when it stops. Package learner explains each term.
type Learner struct {
	// Steps is the last version that the learner makes; 0 sets no limit.
	Steps int
	// Target is the success on held-out tasks, sampled, that ends training when Hold evaluations in a row reach it; 0 for
	// none.
	Target float64
	Hold   int
	// Groups is how many groups one step trains on.
	Groups int
	// Dynamic is the largest multiple of Groups that a step takes until Groups of them teach something; 1 takes Groups,
	// whatever they teach.
	Dynamic float64
	// Patience is how long a step waits for groups when none arrive, before it takes what there is.
	Patience time.Duration
	// LearningRate is AdamW's after the warm-up.
	LearningRate float64
	// Algorithm says how rollouts become an update.
	Algorithm Algorithm
	// EvaluateEvery asks the network to measure each version that is a multiple of it, besides the first and the last;
	// 0 asks for those alone.
	EvaluateEvery int
	// FinalPatience is how long the learner waits for another result in the evaluation of its last version.
	FinalPatience time.Duration
	// Workers is how many goroutines train; 0 means one a processor. It never changes a result.
	Workers int

	// Metrics is the folder that figures of each step are written to, for programs and for TensorBoard; empty for none.
	Metrics string

	// The settings below bound what the learner takes in, and with it its memory and disk.

	// Queue is how many announcements wait until their bundles are fetched; one more makes the oldest of the peer with
	// the most go.
	Queue int
	// Waiting is how many groups wait to be trained on before no more are fetched; 0 means four of the largest steps, and at
	// least 256.
	Waiting int
	// PeerPending is how many bundles of one peer may be on their way or wait; further ones are refused.
	PeerPending int
	// FetchBytes is how many bytes of bundles are in memory at a time.
	FetchBytes Size
}

// Log says what is logged and how.
type Log struct {
	// Level is debug, info, warn or error.
	Level string
	// Format is text, json, or auto: text on a terminal and JSON elsewhere.
	Format string
}

// Default returns the settings of a rollout node that a volunteer runs at home.
func Default() Config {
	return Config{
		Roles: []Role{RoleRollout},
		P2P: P2P{
			Listen:     []string{"/ip4/0.0.0.0/tcp/0", "/ip4/0.0.0.0/udp/0/quic-v1"},
			MDNS:       true,
			DHT:        true,
			NATPortMap: true,
			Relay:      true,
		},
		Store:   Store{MaxBlockBytes: 4 << 30},
		API:     API{Address: "127.0.0.1:0"},
		Rollout: Rollout{Timeout: 5 * time.Minute, Agent: Agent{Grace: 2 * time.Second}, Environments: Environments{Kinds: []string{KindBuiltin, KindWasm}}},
		Learner: Learner{
			Groups:        32,
			Dynamic:       1,
			Patience:      20 * time.Second,
			LearningRate:  3e-4,
			Algorithm:     Algorithm{Credit: "to-go", Advantage: "rloo", Level: "trajectory", Loss: "dppo", Normaliser: "per-rollout"},
			EvaluateEvery: 5,
			FinalPatience: 2 * time.Minute,
			Hold:          3,
			Queue:         4096,
			PeerPending:   128,
			FetchBytes:    64 << 20,
		},
		Log: Log{Level: "info", Format: "auto"},
	}
}

// Has says whether the node plays r.
func (c *Config) Has(r Role) bool {
	for _, role := range c.Roles {
		if role == r {
			return true
		}
	}
	return false
}
