package embedded

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/policy/grammar"
	"github.com/lightswarm/lightswarm/policy/transformer"
)

// Errors of engines and sessions.
var (
	// ErrClosed says that the engine or the session was closed.
	ErrClosed = errors.New("closed")
	// ErrNoPolicy says that no policy was loaded yet.
	ErrNoPolicy = errors.New("no policy is loaded")
	// ErrRequest is wrapped by errors about a request that no policy could answer.
	ErrRequest = errors.New("bad request")
)

// Options size an engine. They change how fast results come, never the results.
type Options struct {
	// Slots is how many calls run at the same time; more wait in line. 0 means 64.
	Slots int
	// Threads is how many goroutines a step is divided among. 0 means one a processor.
	Threads int
	// CacheBytes bounds the memory of keys and values that are kept after their calls ended. 0 means 256 MiB, a
	// negative number none.
	CacheBytes int
}

// Engine runs policies. It implements policy.Engine.
type Engine struct {
	options  Options
	calls    chan *call
	wake     chan struct{} // holds a token when retired has something for the scheduler
	quit     chan struct{}
	stopped  chan struct{}
	loading  chan struct{} // holds a token while a Load runs
	counters counters

	mu      sync.Mutex
	current *resident      // guarded by mu, like the sessions of every resident
	retired []*resident    // guarded by mu: given up, not yet purged by the scheduler
	closed  bool           // guarded by mu
	running sync.WaitGroup // calls; added to under mu while not closed
}

var _ policy.Engine = (*Engine)(nil)

// resident is a policy that is loaded: the newest, or pinned by a session.
type resident struct {
	digest   policy.Digest
	model    *transformer.Model
	grammars func() *grammar.Cache
	sessions int // guarded by the engine's mu

	retired bool // the scheduler's: nothing of it is worth keeping
}

// New starts an engine. The caller closes it.
func New(o Options) *Engine {
	if o.Slots <= 0 {
		o.Slots = 64
	}
	if o.Threads <= 0 {
		o.Threads = runtime.GOMAXPROCS(0)
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = 256 << 20
	}
	e := &Engine{
		options: o,
		calls:   make(chan *call),
		wake:    make(chan struct{}, 1),
		quit:    make(chan struct{}),
		stopped: make(chan struct{}),
		loading: make(chan struct{}, 1),
	}
	go e.run()
	return e
}

// Load makes s the policy of the sessions opened from now on. Loads happen one after the other; running calls go on
// meanwhile. Loading the newest policy again does nothing, so its cached prefixes survive.
func (e *Engine) Load(ctx context.Context, s *policy.Snapshot) error {
	select {
	case e.loading <- struct{}{}:
		defer func() { <-e.loading }()
	case <-ctx.Done():
		return fmt.Errorf("load policy: %w", ctx.Err())
	}
	digest := s.Digest()
	if current := e.newest(); current != nil && current.digest == digest {
		return nil
	}
	model, err := newModel(s)
	if err != nil {
		return fmt.Errorf("load policy %s: %w", digest.Short(), err)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("load policy %s: %w", digest.Short(), err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return fmt.Errorf("load policy %s: engine: %w", digest.Short(), ErrClosed)
	}
	previous := e.current
	e.current = &resident{digest: digest, model: model, grammars: newGrammars(s)}
	if previous != nil {
		e.retireUnused(previous)
	}
	return nil
}

// maxGrammars bounds the grammars that are remembered for one policy.
const maxGrammars = 16

// newGrammars makes what a policy's grammars need with the first that there is.
func newGrammars(s *policy.Snapshot) func() *grammar.Cache {
	weightless := *s
	weightless.Tensors = nil // they must not outlive the policy
	return sync.OnceValue(func() *grammar.Cache { return grammar.NewCache(weightless.Vocabulary(), maxGrammars) })
}

func newModel(s *policy.Snapshot) (*transformer.Model, error) {
	c, err := transformer.ParseConfig(s.ConfigJSON)
	if err != nil {
		return nil, err
	}
	p, err := transformer.FromTensors(c, s.Tensors)
	if err != nil {
		return nil, err
	}
	return transformer.NewModel(p), nil
}

func (e *Engine) newest() *resident {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.current
}

// Open starts a session on the newest loaded policy. It fails with ErrNoPolicy or ErrClosed.
func (e *Engine) Open() (policy.Session, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.closed:
		return nil, fmt.Errorf("engine: %w", ErrClosed)
	case e.current == nil:
		return nil, ErrNoPolicy
	}
	e.current.sessions++
	return &Session{e, e.current.digest, e.current.model.Config(), e.current, e.current.grammars}, nil
}

// Close refuses new calls, waits for those that run or wait in line, and frees the engine. To end calls early, cancel
// their contexts.
func (e *Engine) Close() error {
	e.mu.Lock()
	first := !e.closed
	e.closed, e.current = true, nil
	e.mu.Unlock()
	if first {
		e.running.Wait()
		close(e.quit)
	}
	<-e.stopped
	return nil
}

// retireUnused hands r to the scheduler to forget if nothing can use it any more. The caller holds e.mu.
func (e *Engine) retireUnused(r *resident) {
	if r == e.current || r.sessions > 0 {
		return
	}
	e.retired = append(e.retired, r)
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// run is the scheduler's goroutine.
func (e *Engine) run() {
	defer close(e.stopped)
	s := newScheduler(e.options, &e.counters)
	for {
		// With nothing to do it waits; otherwise it takes what is there and goes on.
		if s.idle() {
			select {
			case c := <-e.calls:
				s.submit(c)
			case <-e.wake:
			case <-e.quit:
				return
			}
		}
		for more := true; more; {
			select {
			case c := <-e.calls:
				s.submit(c)
			case <-e.wake:
			default:
				more = false
			}
		}
		e.mu.Lock()
		retired := e.retired
		e.retired = nil
		e.mu.Unlock()
		s.forget(retired)
		s.step()
	}
}
