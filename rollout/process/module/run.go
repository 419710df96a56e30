//go:build unix

package module

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"
)

const (
	// MemoryBytes is how much memory a module may have.
	MemoryBytes = 256 << 20
	// MaxConnections is how many connections it may have open at once.
	MaxConnections = 16
	// MaxModuleBytes bounds a module's file.
	MaxModuleBytes = 64 << 20
	// trapped is the exit status of a module that the engine ended.
	trapped = 2
	// maxStatus is the highest exit status that there is. A system drops all but eight bits: 256 would look like success.
	maxStatus = 255
)

const pageBytes = 64 << 10

// Program is a module and what it is run with.
type Program struct {
	// Code is the module.
	Code []byte
	// Cache is a folder for compiled modules, which exists; empty means that each run compiles anew, which takes seconds.
	Cache string
	// Args are the program's name and its arguments, Environ its variables as "NAME=value".
	Args, Environ []string
	// Endpoint is where the connections lead to that it accepts.
	Endpoint netip.AddrPort
}

// engine compiles modules. The caller closes it.
func engine(ctx context.Context, cache string) (wazero.Runtime, error) {
	c := wazero.NewRuntimeConfig().
		WithCoreFeatures(api.CoreFeaturesV2).
		WithMemoryLimitPages(MemoryBytes / pageBytes)
	if cache != "" {
		folder, err := wazero.NewCompilationCacheWithDir(cache)
		if err != nil {
			return nil, fmt.Errorf("open the folder of compiled modules: %w", err)
		}
		c = c.WithCompilationCache(folder)
	}
	return wazero.NewRuntimeWithConfig(ctx, c), nil
}

// Compile checks that the module can be run, and leaves it compiled in the cache. It limits what this process may use, so it
// is called by one that does nothing else.
func (p *Program) Compile(ctx context.Context) error {
	limitResources()
	r, err := engine(ctx, p.Cache)
	if err != nil {
		return err
	}
	defer r.Close(ctx)
	_, err = p.compile(ctx, r)
	return err
}

func (p *Program) compile(ctx context.Context, r wazero.Runtime) (wazero.CompiledModule, error) {
	m, err := r.CompileModule(ctx, p.Code)
	if err != nil {
		return nil, fmt.Errorf("it is no WebAssembly module that can be run: %w", err)
	}
	for _, f := range m.ImportedFunctions() {
		if from, name, _ := f.Import(); from != wasi_snapshot_preview1.ModuleName {
			return nil, fmt.Errorf("it imports %q.%q; modules get %s and nothing else", from, name, wasi_snapshot_preview1.ModuleName)
		}
	}
	if m.ExportedFunctions()["_start"] == nil {
		return nil, errors.New("it is no command: it exports no _start")
	}
	return m, nil
}

// Run runs the module with the descriptors 0, 1 and 2 of this process and returns its exit status. It limits what the process
// may use, and leaves descriptors open, so it is called by a process that then ends. An error says that the module could not
// be started, or how the engine ended it; the status is right in any case.
func (p *Program) Run(ctx context.Context) (status int, err error) {
	limitResources()
	r, err := engine(ctx, p.Cache)
	if err != nil {
		return trapped, err
	}
	defer r.Close(ctx)
	m, err := p.compile(ctx, r)
	if err != nil {
		return trapped, err
	}
	if err := newHost(p.Endpoint).instantiate(ctx, r); err != nil {
		return trapped, err
	}
	c := wazero.NewModuleConfig().WithName("").WithArgs(p.Args...).
		WithSysWalltime().WithNanotime(func() int64 { return int64(time.Since(started)) }, sys.ClockResolution(time.Nanosecond)).
		WithRandSource(rand.Reader)
	for _, entry := range p.Environ {
		name, value, _ := strings.Cut(entry, "=")
		c = c.WithEnv(name, value)
	}
	var exit *sys.ExitError
	switch _, err := r.InstantiateModule(ctx, m, c); {
	case err == nil:
		return 0, nil
	case errors.As(err, &exit):
		return int(min(exit.ExitCode(), maxStatus)), nil
	default:
		return trapped, err
	}
}
