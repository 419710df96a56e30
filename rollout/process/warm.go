//go:build unix

package process

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lightswarm/lightswarm/rollout/gateway"
)

//go:embed preload.py
var preloader []byte

const (
	// preloadTimeout bounds the import of the modules.
	preloadTimeout = 2 * time.Minute
	// leaving is how long an interpreter may take to end that has given up.
	leaving = time.Second
	// firstPause is before the second start in a row that led to nothing; it doubles with each, up to maxPause.
	firstPause = 100 * time.Millisecond
	maxPause   = 30 * time.Second
)

// warm starts programs as forks of an interpreter that has imported their modules. The interpreter is started again
// when it has ended and somebody asks.
type warm struct {
	command Command
	place   place
	script  string // the preloader
	scratch string
	limit   int // of an answer, in bytes
	log     *slog.Logger
	ctx     context.Context // ends before close is called
	// killing bounds how long a guard may take to kill an agent and all that it left, which it gives up after 10 seconds.
	killing time.Duration

	mu      sync.Mutex
	current *interpreter // guarded by mu; the last that was started
	vain    int          // guarded by mu; starts since an agent ended properly
	serving sync.WaitGroup
}

func newWarm(ctx context.Context, c Command, scratch string, o Options) (*warm, error) {
	where, err := newPlace(scratch)
	if err != nil {
		return nil, err
	}
	w := &warm{
		command: c, place: where, script: filepath.Join(where.root, "preload.py"), scratch: scratch, limit: o.MaxOutput,
		log: o.Log, ctx: ctx, killing: 15 * time.Second,
	}
	if err := os.WriteFile(w.script, preloader, 0o600); err != nil {
		return nil, err
	}
	w.interpreter()
	return w, nil
}

// close implements starter.
func (w *warm) close() { w.serving.Wait() }

// interpreter is the current one, or else a new one that begins to start.
func (w *warm) interpreter() *interpreter {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.current != nil && !w.current.over() {
		return w.current
	}
	var pause time.Duration
	if w.vain > 0 {
		pause = min(maxPause, firstPause<<min(w.vain-1, 16))
	}
	w.vain++
	i := &interpreter{ready: make(chan struct{}), gone: make(chan struct{})}
	w.current = i
	w.serving.Go(func() {
		defer close(i.gone)
		defer i.dismiss()
		i.serve(w, pause)
	})
	return i
}

// discard ends an interpreter that does not fork, and lets the next that asks have another.
func (w *warm) discard(i *interpreter) {
	i.program.kill()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.current == i {
		w.current = nil
	}
}

// proved notes that an agent ended properly: what starts next need not wait.
func (w *warm) proved() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.vain = 0
}

// ready implements starter.
func (w *warm) ready(ctx context.Context) error {
	_, err := w.await(ctx)
	return err
}

// await returns an interpreter that has imported the modules.
func (w *warm) await(ctx context.Context) (*interpreter, error) {
	i := w.interpreter()
	select {
	case <-i.ready:
		return i, i.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// prepare implements starter.
func (w *warm) prepare(context.Context) (*room, error) { return newRoom(w.scratch, w.limit) }

// start implements starter.
func (w *warm) start(ctx context.Context, r *room, environ []string) (child, error) {
	i, err := w.await(ctx)
	if err != nil {
		return nil, err
	}
	talk, err := i.guard(r.ends[0], r.ends[1], r.ends[2])
	if errors.Is(err, errUnborn) {
		w.discard(i) // if it is there at all it does not listen
	}
	if err != nil {
		return nil, err
	}
	return newFork(w, i, talk, append([]string{r.work}, environ...)), nil
}

// interpreter is one process that preloads modules and forks.
type interpreter struct {
	ready chan struct{} // closed when the modules are imported, or never will be
	err   error         // after ready: why they never will be
	gone  chan struct{} // closed when the process is gone

	program *program      // after ready, without err
	control *net.UnixConn // after ready, without err

	mu        sync.Mutex
	guards    []*net.UnixConn // guarded by mu; to those that have nothing to do
	dismissed bool            // guarded by mu; guards are not kept any more
}

func (i *interpreter) over() bool {
	select {
	case <-i.gone:
		return true
	default:
		return false
	}
}

// serve starts the process after a pause and waits for its end.
func (i *interpreter) serve(w *warm, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.ctx.Done():
		i.err = context.Cause(w.ctx)
		close(i.ready)
		return
	}
	ours, theirs, err := socketPair()
	if err != nil {
		i.err = err
		close(i.ready)
		return
	}
	defer ours.Close()
	program, out, err := w.launch(theirs)
	theirs.Close()
	if err != nil {
		i.err = err
		close(i.ready)
		return
	}
	defer out.Close()
	var said tail
	var copying sync.WaitGroup
	copying.Go(func() { _, _ = io.Copy(&said, out) }) // what came is what there is
	defer context.AfterFunc(w.ctx, program.kill)()
	_ = ours.SetReadDeadline(time.Now().Add(preloadTimeout)) // it is open
	var threads int
	if _, err = fmt.Fscanf(ours, "ready %d\n", &threads); err == nil {
		if threads > 1 {
			w.log.Warn("preloaded modules started threads, which agents will lack", "threads", threads-1, "modules", w.command.Preload)
		}
		i.control, i.program = ours, program
		close(i.ready)
	} else if errors.Is(err, os.ErrDeadlineExceeded) {
		program.kill()
	} else {
		defer time.AfterFunc(leaving, program.kill).Stop() // how it ends by itself says more
	}
	how, lost := program.wait()
	_ = out.SetReadDeadline(time.Now().Add(drain)) // it is open
	copying.Wait()
	switch {
	case w.ctx.Err() != nil:
		err = context.Cause(w.ctx)
	case lost != nil:
		err = lost
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = fmt.Errorf("the import of %s took longer than %s; the end of what the interpreter wrote:\n%s", strings.Join(w.command.Preload, ", "), preloadTimeout, &said)
	default:
		err = fmt.Errorf("the interpreter that imports %s ended: %s; the end of what it wrote:\n%s", strings.Join(w.command.Preload, ", "), how.words, &said)
	}
	if i.control == nil {
		i.err = err
		close(i.ready)
	} else if w.ctx.Err() == nil {
		w.log.Warn("the interpreter for agents is started again when it is needed", "cause", err)
	}
}

// launch starts the process. What it writes comes out of the pipe, which the caller closes.
func (w *warm) launch(control *os.File) (p *program, out *os.File, err error) {
	args := append([]string{w.script, strings.Join(w.command.Preload, ",")}, w.command.Args[1:]...)
	cmd := exec.Command(w.command.Args[0], args...)
	cmd.Dir, cmd.Env = w.place.work, latest(slices.Concat(base(w.place), w.command.Environ, gateway.Environ()))
	out, theirs, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer theirs.Close()
	// Standard input is a pipe like an agent's, at its end: what Python asks of it once is right for agents too.
	in, end, err := os.Pipe()
	if err != nil {
		out.Close()
		return nil, nil, err
	}
	end.Close()
	defer in.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = in, theirs, theirs, []*os.File{control}
	if p, err = launch(cmd); err != nil {
		out.Close()
		return nil, nil, err
	}
	return p, out, nil
}
