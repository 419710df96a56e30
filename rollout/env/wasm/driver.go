package wasm

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/protocol"
	"github.com/lightswarm/lightswarm/wire"
)

// Kind is the manifest's kind of these environments.
const Kind = "wasm"

// What a manifest's limits can be.
const (
	MinMemoryBytes = 1 << 20
	MaxMemoryBytes = 1 << 30
	MinSteps       = 1_000_000
	MaxSteps       = 20_000_000_000
)

// defaultEpisodes is how many episodes of an environment run at once.
const defaultEpisodes = 16

// Options are how modules are run. Command is required.
type Options struct {
	// Command starts a process that calls Work on its standard input and output.
	Command []string
	// Cache is a folder for compiled modules, which is made if it does not exist and holds about MaxCacheBytes at most;
	// several processes may share it. Empty means that each start compiles anew, which takes seconds.
	Cache string
	// Episodes bounds how many episodes of one environment run at once, others wait; 0 means 16. So an environment takes
	// at most so many times its limits.memory_bytes.
	Episodes int
	// Interpreter interprets modules instead of compiling them: it takes a hundred times as long, runs on any processor, and
	// does the same to the byte as long as no more than 2000 calls are inside one another.
	Interpreter bool
}

// Driver runs environments of kind "wasm". It implements env.Driver.
type Driver struct{ options Options }

// New returns a driver.
func New(o Options) *Driver {
	if len(o.Command) == 0 {
		panic("wasm: Options without Command")
	}
	if o.Episodes <= 0 {
		o.Episodes = defaultEpisodes
	}
	return &Driver{o}
}

// Kind implements env.Driver.
func (*Driver) Kind() string { return Kind }

// Open implements env.Driver: it checks the manifest and compiles the module. The environment has a process, and is
// closed by the caller.
func (d *Driver) Open(ctx context.Context, p *env.Package) (env.Environment, error) {
	m := p.Manifest()
	if err := checkManifest(m); err != nil {
		return nil, err
	}
	module := p.Artefact(m.Entry)
	if err := checkModule(module); err != nil {
		return nil, fmt.Errorf("%s: %w", m.Entry, err)
	}
	if !d.options.Interpreter && !supported() {
		return nil, fmt.Errorf("environments of kind %s need a processor that is amd64 or arm64; this one is %s", Kind, runtime.GOARCH)
	}
	s := setup{Steps: int64(m.Limits.Steps), MemoryBytes: m.Limits.MemoryBytes, Episodes: d.options.Episodes, Interpreter: d.options.Interpreter}
	if d.options.Cache != "" {
		var err error
		if s.Cache, err = filepath.Abs(d.options.Cache); err == nil { // the child runs elsewhere
			err = os.MkdirAll(s.Cache, 0o700)
		}
		if err != nil {
			return nil, fmt.Errorf("make the folder of compiled modules: %w", err)
		}
	}
	e := &Environment{p: p, m: m, command: d.options.Command, setup: s, module: module, seats: make(chan struct{}, d.options.Episodes)}
	if _, err := e.running(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", m.Entry, err), e.Close())
	}
	return e, nil
}

// supported says whether the engine compiles for this machine: it also interprets, a hundred times slower.
func supported() bool {
	switch runtime.GOOS {
	case "linux", "darwin", "windows", "freebsd", "netbsd":
		return runtime.GOARCH == "amd64" || runtime.GOARCH == "arm64"
	}
	return false
}

// checkManifest checks what the wire format leaves to the driver.
func checkManifest(m wire.EnvironmentManifest) error {
	wrong := func(field, why string) error {
		return &wire.ValidationError{Message: "environment manifest", Field: field, Why: why}
	}
	switch _, ok := m.Artefact(m.Entry); {
	case !ok:
		return wrong("entry", fmt.Sprintf("must be the artefact that is the module; there is no %q", m.Entry))
	case m.Limits.MemoryBytes < MinMemoryBytes || m.Limits.MemoryBytes > MaxMemoryBytes:
		return wrong("limits.memory_bytes", fmt.Sprintf("is %d; it must be between %d and %d", m.Limits.MemoryBytes, MinMemoryBytes, MaxMemoryBytes))
	case m.Limits.Steps < MinSteps || m.Limits.Steps > MaxSteps:
		return wrong("limits.steps", fmt.Sprintf("is %d; it must be between %d and %d", m.Limits.Steps, MinSteps, int64(MaxSteps)))
	case m.Determinism != wire.DeterminismExact:
		return wrong("determinism", "must be exact: a module has nothing to be anything else with")
	}
	return nil
}

// Environment is an open module. It implements env.Environment and io.Closer, and is safe for concurrent use.
type Environment struct {
	p       *env.Package
	m       wire.EnvironmentManifest
	command []string
	setup   setup
	module  []byte
	// seats has an element for each episode that something is left of in a child.
	seats chan struct{}

	mu     sync.Mutex
	closed bool   // guarded by mu
	child  *child // guarded by mu; nil before the first
	peak   Usage  // guarded by mu
}

// Manifest implements env.Environment.
func (e *Environment) Manifest() wire.EnvironmentManifest { return e.m }

// Peak is the most that any request has used so far.
func (e *Environment) Peak() Usage {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.peak
}

func (e *Environment) used(u Usage) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.peak.Steps = max(e.peak.Steps, u.Steps)
	e.peak.MemoryBytes = max(e.peak.MemoryBytes, u.MemoryBytes)
}

// running returns a child whose module is compiled: the one there is, or a new one if that has ended.
func (e *Environment) running(ctx context.Context) (*child, error) {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil, env.ErrClosed
	}
	if e.child != nil {
		select {
		case <-e.child.done:
			e.child = nil
		default:
		}
	}
	if e.child == nil {
		c, err := startChild(e.command, e.setup, e.module)
		if err != nil {
			e.mu.Unlock()
			return nil, fmt.Errorf("start the process of the environment: %w", err)
		}
		e.child = c
	}
	c := e.child
	e.mu.Unlock()
	return c, c.await(ctx)
}

// Reset implements env.Environment. Its errors that are the environment's own are a *Failure.
func (e *Environment) Reset(ctx context.Context, split string, index uint64) (env.Episode, error) {
	if err := protocol.CheckTask(e.m, split, index); err != nil {
		return nil, err
	}
	select {
	case e.seats <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	leave := func() { <-e.seats }
	c, err := e.running(ctx)
	if err != nil {
		leave()
		return nil, err
	}
	id, s, err := c.open(seed(split, index), leave)
	if err != nil {
		return nil, err
	}
	return protocol.Begin(ctx, &port{e, c, id, s}, e.p, split, index)
}

// port is one instance. It implements protocol.Port.
type port struct {
	environment *Environment
	child       *child
	id          uint32
	seat        *seat
}

// Ask implements protocol.Port.
func (p *port) Ask(ctx context.Context, line []byte) ([]byte, error) {
	said, used, err := p.child.request(ctx, p.id, p.seat, line)
	if err == nil {
		p.environment.used(used)
	}
	return said, err
}

// Close implements protocol.Port.
func (p *port) Close() error {
	p.child.end(p.id)
	return nil
}

// Close ends the environment's process, and with it all episodes.
func (e *Environment) Close() error {
	e.mu.Lock()
	e.closed = true
	c := e.child
	e.mu.Unlock()
	if c != nil {
		c.close()
	}
	return nil
}

// seed is that of a task's random bytes.
func seed(split string, index uint64) [32]byte {
	b := []byte("lightswarm/environment/random/1\x00" + split + "\x00")
	return sha256.Sum256(binary.BigEndian.AppendUint64(b, index))
}
