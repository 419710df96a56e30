package openenv

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/protocol"
	"github.com/lightswarm/lightswarm/wire"
)

// Environment is an OpenEnv server and how it is met. It implements env.Environment and io.Closer, and is safe for concurrent
// use.
type Environment struct {
	p        *env.Package
	m        wire.EnvironmentManifest
	spec     *Spec
	seeds    map[string]uint64 // of each split's first task
	address  string
	client   *http.Client
	patience time.Duration
	tools    []chat.Tool
	ours     map[string]*tool // those of tools that are the Spec's; the others are the server's
	// seats has an element for each episode.
	seats   chan struct{}
	closing chan struct{} // closed when Close begins

	mu       sync.Mutex
	closed   bool           // guarded by mu
	peak     time.Duration  // guarded by mu
	sessions sync.WaitGroup // Add is guarded by mu
}

// readTasks looks at the tasks that the package lists, and gives each split its seeds.
func (e *Environment) readTasks() error {
	first := uint64(0)
	for _, s := range e.m.Splits {
		e.seeds[s.Name] = first
		first += s.Tasks
		if s.Data == "" {
			continue
		}
		for i := range s.Tasks {
			if task := e.p.Task(s.Name, i); task[0] != '{' { // it is JSON
				return fmt.Errorf("%s: line %d: it is no JSON object; a task has arguments of the server's reset, such as {\"difficulty\":2}", s.Data, i+1)
			}
		}
	}
	return nil
}

// Manifest implements env.Environment.
func (e *Environment) Manifest() wire.EnvironmentManifest { return e.m }

// Peak is how long the longest reply took so far.
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
	s, r, err := e.begin(ctx, message{sendReset, e.arguments(split, index)}, true)
	if err != nil {
		<-e.seats
		return nil, err
	}
	// The seat is free once the server has let go of the episode.
	e.keepSeat(s)
	p := &Episode{e: e, s: s}
	if err := p.start(r); err != nil {
		s.close()
		return nil, err
	}
	return p, nil
}

// arguments are those of a task's reset.
func (e *Environment) arguments(split string, index uint64) map[string]any {
	arguments := map[string]any{"seed": e.seeds[split] + index}
	for name, value := range e.spec.Reset {
		arguments[name] = value
	}
	if task := e.p.Task(split, index); task != nil {
		for name, value := range objectOf(task) {
			arguments[name] = value
		}
	}
	return arguments
}

// keepSeat gives a seat back when the session has ended.
func (e *Environment) keepSeat(s *session) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed { // nobody waits for a seat any more
		return
	}
	e.sessions.Go(func() {
		<-s.ended
		<-e.seats
	})
}

// Close ends all episodes and waits until their connections are closed.
func (e *Environment) Close() error {
	e.mu.Lock()
	if !e.closed {
		e.closed = true
		close(e.closing)
	}
	e.mu.Unlock()
	e.sessions.Wait()
	e.client.CloseIdleConnections()
	return nil
}
