package config

import (
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/multiformats/go-multiaddr"

	"github.com/lightswarm/lightswarm/wire"
)

// FieldError says which setting is wrong and what to do about it.
type FieldError struct {
	Key   string
	Value string
	// Problem completes "KEY = VALUE: …" and says what to do.
	Problem string
	// Origin is where the value came from; empty if that is not known.
	Origin string
}

func (e *FieldError) Error() string {
	where := ""
	if e.Origin != "" && e.Origin != "default" {
		where = " (" + e.Origin + ")"
	}
	return fmt.Sprintf("%s = %q%s: %s", e.Key, e.Value, where, e.Problem)
}

// Bounds of numbers that only a mistake would exceed.
const (
	maxParallel   = 4096
	maxGroups     = 1 << 16
	maxDynamic    = 64
	maxHold       = 1 << 10
	maxWaiting    = 1 << 20
	minBlockBytes = 64 << 20
	minFetchBytes = 4 << 20
)

// Validate checks every setting; its error is a *FieldError with the value's origin.
func (l *Loaded) Validate() error { return l.Explain(l.Config.Validate()) }

// Explain adds to a *FieldError where the setting's value came from; other errors stay as they are.
func (l *Loaded) Explain(err error) error {
	var field *FieldError
	if errors.As(err, &field) {
		field.Origin = l.origins[field.Key]
	}
	return err
}

// Validate checks every setting; its error is a *FieldError. An empty network is valid here: commands that found a
// network start without one.
func (c *Config) Validate() error {
	problems := c.problems()
	for _, f := range c.fields() {
		if problem := problems[f.key]; problem != "" {
			return &FieldError{Key: f.key, Value: f.value.String(), Problem: problem}
		}
	}
	return nil
}

// problems maps each invalid key to what is wrong with its value.
func (c *Config) problems() map[string]string {
	p := map[string]string{}
	check := func(ok bool, key, problem string) {
		if !ok && p[key] == "" {
			p[key] = problem
		}
	}

	if c.Network != "" {
		_, err := wire.ParseCIDString(c.Network)
		check(err == nil, "network", "not a network id; copy the whole id, which starts with bafkrei, from the join command")
	}
	check(len(c.Roles) > 0, "roles", "give at least one of learner, rollout, relay")
	known := []Role{RoleLearner, RoleRollout, RoleRelay}
	for i, role := range c.Roles {
		check(slices.Contains(known, role), "roles", fmt.Sprintf("%q is no role; use learner, rollout or relay", role))
		check(!slices.Contains(c.Roles[:i], role), "roles", fmt.Sprintf("%q is there twice; remove one", role))
	}

	for _, address := range c.P2P.Listen {
		_, err := multiaddr.NewMultiaddr(address)
		check(err == nil, "p2p.listen", fmt.Sprintf("%q is not a multiaddress; use for example /ip4/0.0.0.0/tcp/4001", address))
	}
	for _, address := range c.P2P.Bootstrap {
		m, err := multiaddr.NewMultiaddr(address)
		if err == nil {
			_, err = m.ValueForProtocol(multiaddr.P_P2P)
		}
		check(err == nil, "p2p.bootstrap",
			fmt.Sprintf("%q is not a member's address; use for example /ip4/192.0.2.1/tcp/4001/p2p/12D3Koo…, as `lightswarm status` prints it", address))
	}

	check(c.Store.MaxBlockBytes >= minBlockBytes, "store.max_block_bytes", "too small to hold a policy; use at least 64MiB")
	check(loopback(c.API.Address), "api.address", "the API has no protection against a network; use a loopback address such as 127.0.0.1:0")

	for key, n := range map[string]int{
		"rollout.in_flight": c.Rollout.InFlight, "rollout.slots": c.Rollout.Slots, "rollout.threads": c.Rollout.Threads,
		"rollout.agent.processes": c.Rollout.Agent.Processes, "learner.workers": c.Learner.Workers,
	} {
		check(n >= 0 && n <= maxParallel, key, fmt.Sprintf("use 0 to %d", maxParallel))
	}
	check(c.Rollout.Timeout >= 0, "rollout.timeout", "use 0 for never, or a positive duration")

	c.Rollout.Agent.check(check)
	c.Rollout.Environments.check(check)

	check(c.Learner.Steps >= 0, "learner.steps", "use 0 for no limit, or a positive number")
	check(c.Learner.Target >= 0 && c.Learner.Target <= 1, "learner.target", "use 0 for none, or a share of solved tasks up to 1")
	check(c.Learner.Hold >= 1 && c.Learner.Hold <= maxHold, "learner.hold", fmt.Sprintf("use 1 to %d", maxHold))
	check(c.Learner.Groups >= 1 && c.Learner.Groups <= maxGroups, "learner.groups", fmt.Sprintf("use 1 to %d", maxGroups))
	check(c.Learner.Dynamic >= 1 && c.Learner.Dynamic <= maxDynamic, "learner.dynamic", fmt.Sprintf("use 1 for off, or up to %d", maxDynamic))
	check(c.Learner.Patience > 0, "learner.patience", "use a positive duration such as 20s")
	check(c.Learner.LearningRate > 0 && c.Learner.LearningRate < 1, "learner.learning_rate", "use a number between 0 and 1, such as 3e-4")
	c.Learner.Algorithm.check(check)
	check(c.Learner.EvaluateEvery >= 0, "learner.evaluate_every", "use 0 or a positive number of versions")
	check(c.Learner.FinalPatience >= 0, "learner.final_patience", "use a duration such as 2m")
	check(c.Learner.Queue >= 1 && c.Learner.Queue <= maxWaiting, "learner.queue", fmt.Sprintf("use 1 to %d", maxWaiting))
	check(c.Learner.Waiting == 0 || float64(c.Learner.Waiting) >= c.Learner.Dynamic*float64(c.Learner.Groups) && c.Learner.Waiting <= maxWaiting,
		"learner.waiting", fmt.Sprintf("use 0, or from as many as learner.groups times learner.dynamic up to %d", maxWaiting))
	check(c.Learner.PeerPending >= 1 && c.Learner.PeerPending <= maxWaiting, "learner.peer_pending", fmt.Sprintf("use 1 to %d", maxWaiting))
	check(c.Learner.FetchBytes >= minFetchBytes, "learner.fetch_bytes", "too small to fetch bundles side by side; use at least 4MiB")

	check(slices.Contains(choices["log.level"], c.Log.Level), "log.level", "use debug, info, warn or error")
	check(slices.Contains(choices["log.format"], c.Log.Format), "log.format", "use text, json or auto")
	return p
}

// loopback says whether address is a host:port whose host can be reached from this machine alone.
func loopback(address string) bool {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
