package wasm

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/lightswarm/lightswarm/rollout/env/wasm/meter"
)

const pageBytes = 64 << 10

// setup is what the child is told first.
type setup struct {
	Steps       int64  `json:"steps"`
	MemoryBytes uint64 `json:"memory_bytes"`
	// Episodes is how many run at once at most.
	Episodes int `json:"episodes"`
	// Cache is a folder for compiled modules; empty means none.
	Cache string `json:"cache"`
	// Interpreter says that the module is interpreted.
	Interpreter bool `json:"interpreter"`
}

// Work is the child: it runs the episodes that the node asks for on in, and answers on out, until in ends. It limits what
// the whole process may use, so it is called by a process that does nothing else.
func Work(in io.Reader, out io.Writer) error {
	w := &worker{in: bufio.NewReaderSize(in, 64<<10), out: out, episodes: make(map[uint32]*player)}
	err := w.work(context.Background())
	if errors.Is(err, io.EOF) {
		return nil // the node is gone, or wants no more; what still runs ends with the process
	}
	return err
}

// worker runs a module's episodes. One goroutine reads frames and owns the map; each instance has one of its own.
type worker struct {
	in  io.Reader
	mu  sync.Mutex
	out io.Writer // guarded by mu

	setup    setup
	runtime  wazero.Runtime
	module   wazero.CompiledModule
	episodes map[uint32]*player
}

// player is an episode and its instance.
type player struct {
	requests chan []byte
	guest    *guest
}

func (w *worker) work(ctx context.Context) error {
	first, err := readFrame(w.in, 64<<10)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(first.body, &w.setup); err != nil || first.kind != frameSetup {
		return fmt.Errorf("the first frame is no setup: %w", err)
	}
	limitProcess(w.setup)
	module, err := readFrame(w.in, meter.MaxModuleBytes)
	if err != nil {
		return err
	}
	if err := w.compile(ctx, module.body); err != nil {
		return w.fail(0, &Failure{Reason: ReasonAnswer, Detail: "the module cannot be run: " + err.Error()})
	}
	if err := w.send(frame{kind: frameReady}); err != nil {
		return err
	}
	for {
		f, err := readFrame(w.in, MaxAnswer)
		if err != nil {
			return err
		}
		p := w.episodes[f.episode]
		switch {
		case f.kind == frameOpen && p == nil && len(f.body) == 32:
			requests := make(chan []byte, 1)
			p = &player{requests, newGuest(w.setup.Steps, [32]byte(f.body), requests, func(line []byte, u Usage) {
				w.send(frame{frameAnswer, f.episode, append(u.append(nil), line...)}) //nolint:errcheck // if the node is gone the input ends too
			})}
			w.episodes[f.episode] = p
			go w.play(ctx, f.episode, p)
		case f.kind == frameRequest && p != nil:
			// The node asks for one thing at a time, so there is room unless the instance has ended.
			select {
			case p.requests <- f.body:
			default:
			}
		case f.kind == frameClose && p != nil:
			p.guest.closed.Store(true)
			close(p.requests)
			delete(w.episodes, f.episode)
		default:
			return fmt.Errorf("an unexpected frame of kind %d for episode %d", f.kind, f.episode)
		}
	}
}

// limitProcess keeps the process in bounds that its episodes do not reach.
func limitProcess(s setup) {
	// Compiling takes the most besides the episodes' memories, of which an old and a new one exist while one grows.
	const base = 1 << 30
	memories := uint64(s.Episodes) * s.MemoryBytes
	debug.SetMemoryLimit(int64(base/2 + memories))
	limitResources(base + 3*memories)
}

// compile makes the module ready to be instantiated.
func (w *worker) compile(ctx context.Context, code []byte) error {
	rewritten, err := meter.Rewrite(code, maxDepth)
	if err != nil {
		return err
	}
	c := wazero.NewRuntimeConfigCompiler()
	if w.setup.Interpreter {
		c = wazero.NewRuntimeConfigInterpreter()
	}
	c = c.WithCoreFeatures(api.CoreFeaturesV2).
		WithMemoryLimitPages(uint32(w.setup.MemoryBytes / pageBytes)).
		WithDebugInfoEnabled(false)
	if w.setup.Cache != "" && !w.setup.Interpreter {
		folder := moduleFolder(w.setup.Cache, rewritten)
		cache, err := wazero.NewCompilationCacheWithDir(folder)
		if err != nil {
			return fmt.Errorf("open the folder of compiled modules: %w", err)
		}
		c = c.WithCompilationCache(cache)
		// What fails of it is tried again when the next module is compiled.
		defer func() { _ = errors.Join(use(folder, time.Now()), prune(w.setup.Cache, MaxCacheBytes, time.Now())) }()
	}
	w.runtime = wazero.NewRuntimeWithConfig(ctx, c)
	if err := instantiateWASI(ctx, w.runtime); err != nil {
		return err
	}
	if w.module, err = w.runtime.CompileModule(ctx, rewritten); err != nil {
		return err
	}
	for _, f := range w.module.ImportedFunctions() {
		from, name, _ := f.Import()
		if _, ok := wasi[name]; from != wasiModule || !ok && name != "proc_exit" {
			return fmt.Errorf("it imports %q.%q; modules get %s and nothing else", from, name, wasiModule)
		}
	}
	return nil
}

// play runs an episode's instance until it ends.
func (w *worker) play(ctx context.Context, episode uint32, p *player) {
	failure := p.guest.run(ctx, func(ctx context.Context) (api.Module, error) {
		// Without a name, any number of instances can exist.
		return w.runtime.InstantiateModule(ctx, w.module, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	})
	if failure != nil {
		w.fail(episode, failure) //nolint:errcheck // as above
		// The node closes the episode, however it ended.
		for range p.requests {
		}
	}
	w.send(frame{kind: frameEnded, episode: episode}) //nolint:errcheck // as above
}

func (w *worker) fail(episode uint32, f *Failure) error {
	body, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return w.send(frame{frameFailed, episode, body})
}

func (w *worker) send(f frame) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return writeFrame(w.out, f)
}
