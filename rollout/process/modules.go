//go:build unix

package process

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"
)

// compileTimeout bounds the compilation of a module.
const compileTimeout = 5 * time.Minute

// modules starts agents that are WebAssembly modules: each in a process that runs it, from what another has compiled
// before.
type modules struct {
	cold
	compiled chan struct{} // closed when the module is compiled, or never will be
	err      error         // after compiled: why it never will be
}

func newModules(ctx context.Context, c Command, scratch string, o Options) (*modules, error) {
	where, err := newPlace(scratch)
	if err != nil {
		return nil, err
	}
	module := c.Args[0]
	compile := slices.Concat(o.Modules, []string{"compile", where.work, module})
	c.Args = slices.Concat(o.Modules, []string{"run", where.work}, c.Args)
	m := &modules{cold: cold{c, scratch, o.MaxOutput}, compiled: make(chan struct{})}
	go func() {
		defer close(m.compiled)
		if err := m.compile(ctx, compile); err != nil {
			m.err = fmt.Errorf("compile %s: %w", filepath.Base(module), err)
		}
	}()
	return m, nil
}

// compile runs the process that compiles the module.
func (m *modules) compile(ctx context.Context, args []string) error {
	ctx, cancel := context.WithTimeout(ctx, compileTimeout)
	defer cancel()
	r, err := newRoom(m.scratch, maxComplaints)
	if err != nil {
		return err
	}
	defer r.vacate() //nolint:errcheck // it is removed with the folder around it
	p, err := launchIn(r, args, base(r.place))
	if err != nil {
		return err
	}
	r.tell("")
	r.listen()
	defer context.AfterFunc(ctx, p.kill)()
	how, err := p.wait()
	_, complaints := r.finish()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return err
	case !how.ok && complaints == "":
		return errors.New(how.words)
	case !how.ok:
		return fmt.Errorf("%s: %s", how.words, complaints)
	}
	return nil
}

// ready implements starter.
func (m *modules) ready(ctx context.Context) error {
	select {
	case <-m.compiled:
		return m.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// prepare implements starter.
func (m *modules) prepare(ctx context.Context) (*room, error) {
	if err := m.ready(ctx); err != nil {
		return nil, err
	}
	return m.cold.prepare(ctx)
}

func (m *modules) close() { <-m.compiled }
