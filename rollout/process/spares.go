//go:build unix

package process

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/lightswarm/lightswarm/rollout/gateway"
)

//go:embed preload.mjs
var nodePreloader []byte

// spares starts programs of Node.js ahead: each process has imported the modules and waits for the one rollout that it
// plays, while others play theirs. A few slots have one such process each, which may still be on its way.
type spares struct {
	command Command
	gateway *gateway.Gateway
	scratch string
	limit   int    // of an answer, in bytes
	script  string // the preloader
	log     *slog.Logger
	ctx     context.Context // ends before close is called
	// importing bounds how long an import may take, heeding how long a process may take to begin its rollout.
	importing, heeding time.Duration

	offers   chan *spare   // from a slot to the rollout that takes what waits in it
	waiting  chan struct{} // from a slot to whoever wants to know that something waits in it
	failures chan error    // from a slot to one of those that wait, when nothing came of a start
	slots    sync.WaitGroup
}

func newSpares(ctx context.Context, c Command, scratch string, o Options) (*spares, error) {
	where, err := newPlace(scratch)
	if err != nil {
		return nil, err
	}
	p := &spares{
		command: c, gateway: o.Gateway, scratch: scratch, limit: o.MaxOutput, script: filepath.Join(where.root, "preload.mjs"), log: o.Log, ctx: ctx,
		importing: preloadTimeout, heeding: heeding,
		offers: make(chan *spare), waiting: make(chan struct{}), failures: make(chan error),
	}
	if err := os.WriteFile(p.script, nodePreloader, 0o600); err != nil {
		return nil, err
	}
	// More at once would only share the processors: importing does nothing else.
	n := runtime.GOMAXPROCS(0)
	if o.Concurrent > 0 {
		n = min(n, o.Concurrent)
	}
	for range n {
		p.slots.Go(p.slot)
	}
	return p, nil
}

// close implements starter.
func (p *spares) close() { p.slots.Wait() }

// slot starts one process after another, with growing pauses while no rollout takes them.
func (p *spares) slot() {
	for vain := 0; p.ctx.Err() == nil; vain++ {
		s, err := p.open()
		if err == nil {
			var taken bool
			if taken, err = p.offer(s); taken {
				vain = -1
				continue
			}
			if p.ctx.Err() == nil {
				p.log.Warn("a process that waited for a rollout is started again", "cause", err)
			}
			err = nil // rollouts can wait for the next one
		}
		p.pause(err, min(maxPause, firstPause<<min(vain, 16)))
	}
}

// pause waits before the next start. One of those that wait for a process hears why there is none, if there is a reason.
func (p *spares) pause(why error, d time.Duration) {
	failures := p.failures
	if why == nil {
		failures = nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case failures <- why:
			failures = nil
		case <-timer.C:
			return
		case <-p.ctx.Done():
			return
		}
	}
}

// open starts a process and waits until it has imported the modules.
func (p *spares) open() (_ *spare, err error) {
	r, err := newRoom(p.scratch, p.limit)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.vacate())
		}
	}()
	talk, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	s := &spare{room: r, talk: talk}
	modules := url.PathEscape(strings.Join(p.command.Preload, ","))
	preloader := (&url.URL{Scheme: "file", Path: p.script, RawQuery: modules}).String()
	args := append([]string{p.command.Args[0], "--import", preloader}, p.command.Args[1:]...)
	// What imports see, and what they start bears, is the rollout's already, but for the task.
	r.access = p.gateway.Reserve()
	s.program, err = launchIn(r, args, environ(r.place, p.command.Environ, r.access), theirs)
	theirs.Close()
	if err != nil {
		talk.Close()
		return nil, err
	}
	r.listen()
	defer context.AfterFunc(p.ctx, s.program.kill)()
	if heard := s.hear('r', p.importing); heard == nil {
		r.tenant = s
		return s, nil
	} else if errors.Is(heard, os.ErrDeadlineExceeded) {
		s.program.kill()
		<-s.program.ended
		err = fmt.Errorf("the import of %s took longer than %s%s", strings.Join(p.command.Preload, ", "), p.importing, s.wrote())
	} else {
		timer := time.AfterFunc(leaving, s.program.kill) // how it ends by itself says more
		end := <-s.program.ended
		timer.Stop()
		err = fmt.Errorf("the process that imports %s ended: %w%s", strings.Join(p.command.Preload, ", "), end.cause(), s.wrote())
	}
	talk.Close()
	if cause := context.Cause(p.ctx); cause != nil {
		err = cause
	}
	return nil, err
}

// offer holds a process that waits until a rollout takes it, or it ends. Then, and when ctx ends, nothing is left of it.
func (p *spares) offer(s *spare) (taken bool, err error) {
	for {
		select {
		case p.offers <- s:
			return true, nil
		case p.waiting <- struct{}{}:
		case end := <-s.program.ended:
			s.program.ended <- end // for leave
			err = fmt.Errorf("it ended: %w%s", end.cause(), s.wrote())
			return false, errors.Join(err, s.room.vacate())
		case <-p.ctx.Done():
			return false, errors.Join(context.Cause(p.ctx), s.room.vacate())
		}
	}
}

// ready implements starter.
func (p *spares) ready(ctx context.Context) error {
	select {
	case <-p.waiting:
		return nil
	case err := <-p.failures:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-p.ctx.Done():
		return context.Cause(p.ctx)
	}
}

// prepare implements starter.
func (p *spares) prepare(ctx context.Context) (*room, error) {
	select {
	case s := <-p.offers:
		return s.room, nil
	case err := <-p.failures:
		return nil, err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// start implements starter. A process that stands ready begins at once, so the end of the context is left to what follows:
// to kill it here would deny one that has just begun its grace.
func (p *spares) start(_ context.Context, r *room, environ []string) (child, error) {
	s := r.tenant.(*spare)
	if err := s.begin(environ, p.heeding); err != nil {
		return nil, fmt.Errorf("%w: %w", errUnborn, err)
	}
	r.tenant = nil
	return s.program, nil
}
