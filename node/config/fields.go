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

		{"store.max_block_bytes", "disk for blocks: bundles, policies and what is kept for others", sizeValue(&c.Store.MaxBlockBytes)},

		{"api.address", "loopback host:port of the local API; port 0 picks a free one", textValue(&c.API.Address)},

		{"rollout.parallel", "rollouts that run at once; 0 is twice the number of processors", intValue(&c.Rollout.Parallel)},
		{"rollout.slots", "calls that the engine decodes together; 0 follows rollout.parallel", intValue(&c.Rollout.Slots)},

		{"learner.steps", "training steps before the final release; 0 is no end", intValue(&c.Learner.Steps)},
		{"learner.groups", "groups that one step consumes", intValue(&c.Learner.Groups)},
		{"learner.learning_rate", "AdamW's learning rate", floatValue(&c.Learner.LearningRate)},
		{"learner.evaluate_every", "measure each version that is a multiple of this; 0 is the first and the final one only", intValue(&c.Learner.EvaluateEvery)},
		{"learner.workers", "goroutines that train; 0 is the number of processors", intValue(&c.Learner.Workers)},
		{"learner.step_timeout", "how long a step waits for groups before it says so", durationValue(&c.Learner.StepTimeout)},

		{"log.level", "debug, info, warn or error", textValue(&c.Log.Level)},
		{"log.format", "text, json or auto", textValue(&c.Log.Format)},
	}
}

// environmentPrefix starts the name of every environment variable of the table.
const environmentPrefix = "LIGHTSWARM_"

// environmentName is the variable that sets key.
func environmentName(key string) string {
	return environmentPrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// flagName is the command-line flag, without its hyphens, that sets key.
func flagName(key string) string {
	return strings.NewReplacer(".", "-", "_", "-").Replace(key)
}
