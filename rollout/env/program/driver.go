package program

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/protocol"
	"github.com/lightswarm/lightswarm/wire"
)

// Kind is the manifest's kind of these environments.
const Kind = "exec"

// What a manifest's limits can be.
const (
	MinMemoryBytes = 64 << 20
	MaxMemoryBytes = 4 << 30
	MinTime        = 100 * time.Millisecond
	MaxTime        = 10 * time.Minute
)

// What every program may have.
const (
	MaxThreads      = 64
	MaxScratchBytes = 64 << 20
	MaxScratchFiles = 1024
	// MaxComplaints bounds what it writes to its standard error, in bytes.
	MaxComplaints = 4 << 20
)

const (
	// timesTime is how many times the time of a request all requests together may compute.
	timesTime = 20
	// defaultEpisodes is how many episodes of an environment run at once.
	defaultEpisodes = 16
)

// Options are how programs are run. Command is required.
type Options struct {
	// Command starts a process that calls Work with the argument that is added.
	Command []string
	// Episodes bounds how many episodes of one environment run at once, others wait; 0 means 16. So an environment takes
	// at most so many times its limits.memory_bytes.
	Episodes int
	// WithoutLandlock also runs programs where the system has no Landlock. They then see and change every file that the
	// user of this process can: it is for environments whose author is trusted.
	WithoutLandlock bool
}

// Driver runs environments of kind "exec". It implements env.Driver.
type Driver struct {
	options Options
	support func() (landlock bool, err error) // what this system has; replaced in tests
}

// New returns a driver.
func New(o Options) *Driver {
	if len(o.Command) == 0 {
		panic("program: Options without Command")
	}
	if o.Episodes <= 0 {
		o.Episodes = defaultEpisodes
	}
	return &Driver{o, support}
}

// Kind implements env.Driver.
func (*Driver) Kind() string { return Kind }

// Open implements env.Driver: it checks the manifest and that the program can be run here, contained. The environment has a
// folder, and is closed by the caller.
func (d *Driver) Open(ctx context.Context, p *env.Package) (env.Environment, error) {
	m := p.Manifest()
	if err := checkManifest(m); err != nil {
		return nil, err
	}
	landlock, err := d.support()
	if err != nil {
		return nil, fmt.Errorf("environments of kind %s are other people's programs, which run in a sandbox: %w", Kind, err)
	}
	if !landlock && !d.options.WithoutLandlock {
		return nil, fmt.Errorf("environments of kind %s are other people's programs, and this system cannot keep its files from them: Landlock is missing. "+
			"Use Linux 5.13 or later with landlock among its security modules (lsm= on the kernel's command line), or, if you trust the author, allow it with --without-landlock", Kind)
	}
	command, folders, err := interpreter(ctx, p.Artefact(m.Entry))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Entry, err)
	}
	e := &Environment{p: p, m: m, driver: d, seats: make(chan struct{}, d.options.Episodes), closing: make(chan struct{})}
	if e.dir, e.lock, err = newFolder(); err != nil {
		return nil, err
	}
	if err := e.unpack(); err != nil {
		return nil, errors.Join(fmt.Errorf("unpack the environment: %w", err), e.Close())
	}
	e.setup = setup{
		Node: os.Getpid(), Command: append(command, filepath.Join(e.dir, packageFolder, m.Entry)), Folders: append(folders, filepath.Join(e.dir, packageFolder)),
		MemoryBytes: m.Limits.MemoryBytes, Seconds: uint64((timeOf(m)*timesTime + time.Second - 1) / time.Second), Landlock: landlock,
	}
	return e, nil
}

// checkManifest checks what the wire format leaves to the driver.
func checkManifest(m wire.EnvironmentManifest) error {
	wrong := func(field, why string) error {
		return &wire.ValidationError{Message: "environment manifest", Field: field, Why: why}
	}
	switch _, ok := m.Artefact(m.Entry); {
	case !ok:
		return wrong("entry", fmt.Sprintf("must be the artefact that is the program; there is no %q", m.Entry))
	case m.Limits.MemoryBytes < MinMemoryBytes || m.Limits.MemoryBytes > MaxMemoryBytes:
		return wrong("limits.memory_bytes", fmt.Sprintf("is %d; it must be between %d and %d", m.Limits.MemoryBytes, MinMemoryBytes, int64(MaxMemoryBytes)))
	case m.Limits.Steps < uint64(MinTime/time.Millisecond) || m.Limits.Steps > uint64(MaxTime/time.Millisecond):
		return wrong("limits.steps", fmt.Sprintf("is %d; milliseconds are meant, from %d to %d", m.Limits.Steps, MinTime/time.Millisecond, MaxTime/time.Millisecond))
	case m.Determinism != wire.DeterminismStochastic:
		return wrong("determinism", "must be stochastic: what a program does also depends on the machine's interpreter")
	}
	return nil
}

// timeOf is how long a request may take.
func timeOf(m wire.EnvironmentManifest) time.Duration {
	return time.Duration(m.Limits.Steps) * time.Millisecond
}

// Environment is an open program. It implements env.Environment and io.Closer, and is safe for concurrent use.
type Environment struct {
	p      *env.Package
	m      wire.EnvironmentManifest
	driver *Driver
	setup  setup
	dir    string   // has the package and the episodes' scratch folders
	lock   *os.File // says that dir is in use
	// seats has an element for each process.
	seats   chan struct{}
	closing chan struct{} // closed when Close begins

	mu        sync.Mutex
	closed    bool           // guarded by mu
	peak      time.Duration  // guarded by mu
	processes sync.WaitGroup // Add is guarded by mu
}

// packageFolder is where the package's files are in an environment's folder.
const packageFolder = "package"

// unpack writes the package's files.
func (e *Environment) unpack() error {
	dir := filepath.Join(e.dir, packageFolder)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	for _, a := range e.m.Artefacts {
		if err := os.WriteFile(filepath.Join(dir, a.Name), e.p.Artefact(a.Name), 0o700); err != nil {
			return err
		}
	}
	return nil
}

// Manifest implements env.Environment.
func (e *Environment) Manifest() wire.EnvironmentManifest { return e.m }

// Peak is how long the longest answer took so far.
func (e *Environment) Peak() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.peak
}

func (e *Environment) took(d time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.peak = max(e.peak, d)
}

// Reset implements env.Environment. Its errors that are the environment's own are a *protocol.Failure.
func (e *Environment) Reset(ctx context.Context, split string, index uint64) (env.Episode, error) {
	if err := protocol.CheckTask(e.m, split, index); err != nil {
		return nil, err
	}
	select {
	case e.seats <- struct{}{}:
	case <-e.closing:
		return nil, env.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	p, err := e.start()
	if err != nil {
		<-e.seats
		return nil, err
	}
	return protocol.Begin(ctx, p, e.p, split, index)
}

// start starts a process, which keeps a seat until it has ended.
func (e *Environment) start() (*process, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, env.ErrClosed
	}
	scratch, err := os.MkdirTemp(e.dir, "scratch-")
	if err != nil {
		return nil, err
	}
	s := e.setup
	s.Scratch = scratch
	p := newProcess(scratch, timeOf(e.m), e.took)
	e.processes.Go(func() {
		p.run(e.driver.options.Command, s, e.closing)
		<-e.seats
	})
	return p, nil
}

// Close ends the environment's processes, and with them all episodes.
func (e *Environment) Close() error {
	e.mu.Lock()
	if !e.closed {
		e.closed = true
		close(e.closing)
	}
	e.mu.Unlock()
	e.processes.Wait()
	err := removeFolder(e.dir)
	e.lock.Close()
	return err
}
