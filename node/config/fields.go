package config

import "strings"

// field ties one key to the place in a Config that it sets.
type field struct {
	key   string
	usage string
	value value
}

// fields is the table of every setting of c, in the order in which they are listed. A key's section is the part
// before the dot.
func (c *Config) fields() []field {
	return []field{
		{"network", "id of the network: the CID of its charter", textValue(&c.Network)},
		{"roles", "parts that this node plays: learner, rollout, relay", listValue(&c.Roles)},

		{"p2p.listen", "multiaddresses to listen on", listValue(&c.P2P.Listen)},
		{"p2p.bootstrap", "members to dial first, as multiaddresses ending in /p2p/<peer id>", listValue(&c.P2P.Bootstrap)},
		{"p2p.mdns", "find members on the local network", boolValue(&c.P2P.MDNS)},
		{"p2p.dht", "find members through the Lightswarm DHT", boolValue(&c.P2P.DHT)},
		{"p2p.nat_port_map", "ask the router for an inbound port (UPnP, NAT-PMP)", boolValue(&c.P2P.NATPortMap)},
		{"p2p.relay", "be reachable through members that relay, and relay for others: control traffic alone", boolValue(&c.P2P.Relay)},

		{"store.max_block_bytes", "disk for blocks: bundles, policies and what is kept for others", sizeValue(&c.Store.MaxBlockBytes)},

		{"api.address", "loopback host:port of the local API; port 0 picks a free one", textValue(&c.API.Address)},

		{"rollout.in_flight", "groups and evaluation blocks that run at once; 0 is 4", intValue(&c.Rollout.InFlight)},
		{"rollout.slots", "calls that the engine runs together; 0 is 64", intValue(&c.Rollout.Slots)},
		{"rollout.threads", "processors that the engine uses; 0 is all", intValue(&c.Rollout.Threads)},
		{"rollout.timeout", "end a rollout that takes longer; 0 is never", durationValue(&c.Rollout.Timeout)},
		{"rollout.agent.command", "program that plays the rollouts, with its arguments, in place of the built-in agent", commandValue(&c.Rollout.Agent.Command)},
		{"rollout.agent.folder", "folder of the program's files; empty is where the node is started", textValue(&c.Rollout.Agent.Folder)},
		{"rollout.agent.preload", "modules of Python or Node.js to import ahead, so that each rollout starts with them", listValue(&c.Rollout.Agent.Preload)},
		{"rollout.agent.variables", "names of the node's environment variables that the program gets too", listValue(&c.Rollout.Agent.Variables)},
		{"rollout.agent.processes", "processes of the program that run at once; 0 is 32", intValue(&c.Rollout.Agent.Processes)},
		{"rollout.agent.grace", "how long a process may take to end when its rollout's time is over", durationValue(&c.Rollout.Agent.Grace)},
		{"rollout.agent.lightning", "loopback host:port for runners of Agent Lightning 0.3, which play the rollouts in place of a program; empty for none", textValue(&c.Rollout.Agent.Lightning)},
		{"rollout.environments.kinds", "kinds of environments that this node runs: builtin, wasm, exec, openenv", listValue(&c.Rollout.Environments.Kinds)},
		{"rollout.environments.openenv", "servers of environments of kind openenv, each as NAME=ADDRESS, such as maze=http://127.0.0.1:8000", listValue(&c.Rollout.Environments.OpenEnv)},
		{"rollout.environments.signers", "peer ids of the authors whose environment packages this node runs; empty is anybody", listValue(&c.Rollout.Environments.Signers)},

		{"learner.steps", "last version that the learner makes; 0 is no limit", intValue(&c.Learner.Steps)},
		{"learner.target", "held-out success that ends training; 0 is none", floatValue(&c.Learner.Target)},
		{"learner.hold", "evaluations in a row that must reach the target to end training", intValue(&c.Learner.Hold)},
		{"learner.groups", "groups that one step trains on", intValue(&c.Learner.Groups)},
		{"learner.dynamic", "go on taking groups until learner.groups of them teach something, up to this many times as many; 1 is off", floatValue(&c.Learner.Dynamic)},
		{"learner.patience", "how long a step waits for groups when none arrive", durationValue(&c.Learner.Patience)},
		{"learner.learning_rate", "AdamW's learning rate", floatValue(&c.Learner.LearningRate)},
		{"learner.credit", "how a rollout's return is spread over its calls, such as \"turn-group weight=0.5\"; docs/configuration.md lists the ways", textValue(&c.Learner.Algorithm.Credit)},
		{"learner.advantage", "what rollouts are compared with: rloo, dr-grpo, grpo, reinforce-pp, reinforce-pp-baseline or \"rae decay=0.95\"", textValue(&c.Learner.Algorithm.Advantage)},
		{"learner.level", "what a row of training data holds: trajectory, calls that continue one another; transition, one call; or concatenated, a rollout", textValue(&c.Learner.Algorithm.Level)},
		{"learner.agents", "agents to train, of those that an environment trains, by names such as writer or check*; empty is all", listValue(&c.Learner.Algorithm.Agents)},
		{"learner.loss", "loss, which bounds what a token may do, such as \"ppo high=0.3 + veto\"; docs/configuration.md lists them", textValue(&c.Learner.Algorithm.Loss)},
		{"learner.normaliser", "how much each token counts: per-rollout, per-token or \"per-constant tokens=512\"", textValue(&c.Learner.Algorithm.Normaliser)},
		{"learner.evaluate_every", "measure each version that is a multiple of this; 0 is the first and last alone", intValue(&c.Learner.EvaluateEvery)},
		{"learner.final_patience", "how long to wait for another result of the last version's evaluation", durationValue(&c.Learner.FinalPatience)},
		{"learner.workers", "goroutines that train; 0 is one a processor", intValue(&c.Learner.Workers)},
		{"learner.metrics", "folder for figures of each step: metrics.jsonl, and event files for TensorBoard; empty for none", textValue(&c.Learner.Metrics)},
		{"learner.queue", "announcements that wait until their bundles are fetched", intValue(&c.Learner.Queue)},
		{"learner.waiting", "groups that wait to be trained on before no more are fetched; 0 is four of the largest steps, at least 256", intValue(&c.Learner.Waiting)},
		{"learner.peer_pending", "bundles of one peer on their way or waiting", intValue(&c.Learner.PeerPending)},
		{"learner.fetch_bytes", "memory for bundles on their way", sizeValue(&c.Learner.FetchBytes)},

		{"log.level", "debug, info, warn or error", textValue(&c.Log.Level)},
		{"log.format", "text, json, or auto: text on a terminal and json elsewhere", textValue(&c.Log.Format)},
	}
}

// environmentPrefix starts the name of every environment variable of the table.
const environmentPrefix = "LIGHTSWARM_"

// environmentName is the variable that sets key.
func environmentName(key string) string {
	return environmentPrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// choices are the values of settings that have only a few.
var choices = map[string][]string{
	"learner.level": {"trajectory", "transition", "concatenated"},
	"log.level":     {"debug", "info", "warn", "error"},
	"log.format":    {"text", "json", "auto"},
}

// Choices are the values that a flag of AddFlags takes, if they are few; nil otherwise.
func Choices(flag string) []string {
	for key, list := range choices {
		if flagName(key) == flag {
			return list
		}
	}
	return nil
}

// commandSets says that the command itself decides a setting, so that it has no flag.
func commandSets(key string) bool { return key == "network" || key == "roles" }

// flagName is the command-line flag, without its hyphens, that sets key. Those of section p2p, which everybody uses, go
// without the section, and those of rollout.agent without "rollout.", where the command is the agent.
func flagName(key string) string {
	if name, ok := strings.CutPrefix(key, "rollout.agent."); ok {
		key = strings.TrimSuffix("agent."+name, ".command")
	}
	return strings.NewReplacer(".", "-", "_", "-").Replace(strings.TrimPrefix(key, "p2p."))
}
