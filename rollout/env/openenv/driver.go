package openenv

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/wire"
)

// Kind is the manifest's kind of these environments.
const Kind = "openenv"

// What a manifest's limits can be.
const (
	MinTime = 100 * time.Millisecond
	MaxTime = 10 * time.Minute
	// MaxTasks bounds the tasks of all splits together, each of which has a seed of its own.
	MaxTasks = 1 << 31
)

const (
	defaultEpisodes = 16
	defaultPatience = time.Minute
)

// Options say where servers are.
type Options struct {
	// Servers are the addresses of environments' servers, by the environment's name or its CID; see Address.
	Servers map[string]string
	// Server is that of environments that Servers does not have; empty for none.
	Server string
	// Episodes bounds how many episodes of one environment run at once, others wait; 0 means 16.
	Episodes int
	// Patience is how long an episode tries to begin while its server cannot be reached or has no place; 0 means a minute.
	Patience time.Duration
}

// Driver runs environments of kind "openenv". It implements env.Driver.
type Driver struct {
	options Options
	client  *http.Client
}

// New returns a driver.
func New(o Options) *Driver {
	if o.Episodes <= 0 {
		o.Episodes = defaultEpisodes
	}
	if o.Patience <= 0 {
		o.Patience = defaultPatience
	}
	return &Driver{o, &http.Client{
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, TLSHandshakeTimeout: dialTime, MaxResponseHeaderBytes: 64 << 10},
		// The owner named one place, which is not to name another.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Kind implements env.Driver.
func (*Driver) Kind() string { return Kind }

// Open implements env.Driver: it checks the manifest and the Spec, finds the server and asks it for its tools, if the agent
// is to have them.
func (d *Driver) Open(ctx context.Context, p *env.Package) (env.Environment, error) {
	m := p.Manifest()
	if err := checkManifest(m); err != nil {
		return nil, err
	}
	spec, err := DecodeSpec(p.Artefact(SpecFile))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", SpecFile, err)
	}
	e := &Environment{
		p: p, m: m, spec: spec, client: d.client, patience: d.options.Patience,
		seats: make(chan struct{}, d.options.Episodes), closing: make(chan struct{}), seeds: map[string]uint64{},
	}
	if err := e.readTasks(); err != nil {
		return nil, err
	}
	if e.address, err = d.server(p, spec); err != nil {
		return nil, err
	}
	if err := e.meet(ctx); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// checkManifest checks what the wire format leaves to the driver.
func checkManifest(m wire.EnvironmentManifest) error {
	wrong := func(field, why string) error {
		return &wire.ValidationError{Message: "environment manifest", Field: field, Why: why}
	}
	_, there := m.Artefact(SpecFile)
	left := uint64(MaxTasks)
	for _, s := range m.Splits {
		if s.Tasks > left {
			return wrong("splits", fmt.Sprintf("have more than %d tasks together", int64(MaxTasks)))
		}
		left -= s.Tasks
	}
	switch {
	case !there || m.Entry != SpecFile:
		return wrong("entry", fmt.Sprintf("must be the artefact %s", SpecFile))
	case m.Limits.MemoryBytes != 0:
		return wrong("limits.memory_bytes", "must be 0: a server has a machine of its own")
	case m.Limits.Steps < uint64(MinTime/time.Millisecond) || m.Limits.Steps > uint64(MaxTime/time.Millisecond):
		return wrong("limits.steps", fmt.Sprintf("is %d; milliseconds are meant, from %d to %d", m.Limits.Steps, MinTime/time.Millisecond, MaxTime/time.Millisecond))
	case m.Determinism != wire.DeterminismStochastic:
		return wrong("determinism", "must be stochastic: nothing makes two servers agree")
	}
	return nil
}
