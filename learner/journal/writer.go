package journal

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/lightswarm/lightswarm/learner"
	"github.com/lightswarm/lightswarm/learner/tensorboard"
	"github.com/lightswarm/lightswarm/learner/watch"
	"github.com/lightswarm/lightswarm/wire"
)

// queued is how many lines wait for a slow disk before further ones are lost.
const queued = 256

// Options say where metrics go.
type Options struct {
	// Folder is made if it does not exist.
	Folder  string
	Network wire.CID
	// Problem is told what goes wrong, once until a line is written again; it is called by the writer's goroutine.
	Problem func(error)
	// Now is the clock; nil for time.Now.
	Now func() time.Time
}

// Writer writes metrics. Its methods are safe for concurrent use; nothing is added once Close is called.
type Writer struct {
	options Options
	work    chan Line
	done    chan struct{}

	mu   sync.Mutex
	lost int // guarded by mu; lines that found no room
	// closed says that work is closed; guarded by mu.
	closed bool

	// The goroutine owns these; nil until the folder could be opened.
	lines   *lines
	board   *board
	failing bool
	ended   error // read once done is closed
}

// Start begins to write. It does no I/O itself: that the folder cannot be written to is a Problem.
func Start(o Options) *Writer {
	if o.Now == nil {
		o.Now = time.Now
	}
	w := &Writer{options: o, work: make(chan Line, queued), done: make(chan struct{})}
	go w.run()
	return w
}

// Stepped adds a training step and the alerts that stand after it.
func (w *Writer) Stepped(s learner.Step, alerts []watch.Alert) {
	w.add(Line{Type: TypeStep, Version: s.Version, Alerts: alertsOf(alerts), Step: stepOf(&s)})
}

// Evaluated adds an evaluation that is complete, and the alerts that stand after it; others are left out.
func (w *Writer) Evaluated(e learner.Evaluation, alerts []watch.Alert) {
	if e.Complete() {
		w.add(Line{Type: TypeEvaluation, Version: e.Version, Alerts: alertsOf(alerts), Evaluation: evaluationOf(&e)})
	}
}

func (w *Writer) add(l Line) {
	l.Network, l.Time = w.options.Network.String(), w.options.Now().UTC()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	select {
	case w.work <- l:
	default:
		w.lost++
	}
}

// Close writes what waits, and closes the files.
func (w *Writer) Close() error {
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		close(w.work)
	}
	w.mu.Unlock()
	<-w.done
	return w.ended
}

func (w *Writer) run() {
	defer close(w.done)
	for l := range w.work {
		err := w.write(&l)
		w.mu.Lock()
		lost := w.lost
		w.lost = 0
		w.mu.Unlock()
		if lost > 0 {
			err = errors.Join(err, fmt.Errorf("the disk is too slow for them: %d lines are lost", lost))
		}
		if err != nil && !w.failing {
			w.options.Problem(fmt.Errorf("metrics are not written to %s; training goes on: %w", w.options.Folder, err))
		}
		w.failing = err != nil
	}
	if w.lines != nil {
		w.ended = errors.Join(w.lines.close(), w.board.file.Close())
	}
}

// write writes a line unless the file has it, and draws it.
func (w *Writer) write(l *Line) error {
	if err := w.open(); err != nil {
		return err
	}
	if w.lines.has(l) {
		return nil
	}
	if err := w.lines.add(l); err != nil {
		return err
	}
	return w.board.draw(l)
}

// open opens the files, as long as they are not.
func (w *Writer) open() error {
	if w.lines != nil {
		return nil
	}
	if err := os.MkdirAll(w.options.Folder, 0o755); err != nil {
		return err
	}
	j, err := openLines(w.options.Folder, w.options.Network.String())
	if err != nil {
		return err
	}
	file, err := tensorboard.Create(w.options.Folder, w.options.Now())
	if err != nil {
		return errors.Join(err, j.close())
	}
	w.lines, w.board = j, &board{file: file, agents: make(map[string]bool)}
	return nil
}
