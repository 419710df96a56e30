package program

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"

	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/protocol"
)

const (
	// launchTime is how long a sandbox may take to be set up.
	launchTime = time.Minute
	// watchEvery is how often threads are counted, and every roomTicks times the room that files take.
	watchEvery = 50 * time.Millisecond
	roomTicks  = 4
)

// process is one program and its episode. It implements protocol.Port. Its run goroutine owns it.
type process struct {
	scratch string
	limit   time.Duration       // for each request
	took    func(time.Duration) // told how long each answer took
	started chan struct{}       // closed once the process exists; in and kernel are set before
	ready   chan struct{}       // closed once it is the program
	quit    chan struct{}       // closed when the episode ends
	done    chan struct{}       // closed once it has ended; failure is set before
	answers chan []byte         // capacity 1: one thing is asked at a time

	in     io.Writer
	kernel *os.Process

	mu       sync.Mutex
	failure  error               // guarded by mu; why it is of no more use
	asked    bool                // guarded by mu
	line     []byte              // guarded by mu; the answer so far
	says     protocol.Complaints // guarded by mu
	saidMuch int                 // guarded by mu; bytes of standard error
}

func newProcess(scratch string, limit time.Duration, took func(time.Duration)) *process {
	return &process{
		scratch: scratch, limit: limit, took: took,
		started: make(chan struct{}), ready: make(chan struct{}), quit: make(chan struct{}), done: make(chan struct{}),
		answers: make(chan []byte, 1),
	}
}

// run runs the program until it has ended.
func (p *process) run(command []string, s setup, closing <-chan struct{}) {
	defer removeAll(p.scratch) //nolint:errcheck // what is left the environment's Close complains of
	defer close(p.done)
	// The kernel kills the program when the thread that started it ends; this one does with the whole process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := p.play(command, s, closing); err != nil {
		p.fail(&protocol.Failure{Reason: protocol.ReasonProcess, Detail: "the environment's program cannot be started: " + err.Error()})
	}
}

func (p *process) play(command []string, s setup, closing <-chan struct{}) error {
	described, err := json.Marshal(s)
	if err != nil {
		return err
	}
	status, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	defer status.Close()
	cmd := exec.Command(command[0], append(command[1:len(command):len(command)], string(described))...)
	// Nothing of the node's. Work's other threads are not to need memory while it gives that up.
	cmd.Env = []string{"GOTRACEBACK=none", "GOMAXPROCS=1", "GOGC=off"}
	cmd.Dir = p.scratch
	cmd.SysProcAttr = attributes()
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.Stdout, cmd.Stderr = outlet(p.output), outlet(p.complaint)
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	theirs.Close()
	if err != nil {
		return err
	}
	p.kernel, p.in = cmd.Process, in
	close(p.started)
	guard := time.AfterFunc(launchTime, func() { p.kernel.Kill() }) //nolint:errcheck // it fails if the process has ended
	why, err := io.ReadAll(io.LimitReader(status, 4<<10))
	guard.Stop()
	if err != nil || len(why) > 0 {
		p.kernel.Kill() //nolint:errcheck // as above
		cmd.Wait()      //nolint:errcheck // it was killed
		if err == nil {
			err = errors.New(string(why))
		}
		return err
	}
	close(p.ready)
	var watching sync.WaitGroup
	watching.Go(func() { p.watch(closing) })
	ended := cmd.Wait()
	p.fail(p.ended(cmd.ProcessState, ended, s))
	watching.Wait()
	return nil
}

// outlet is a function as an io.Writer. What it writes is never an error: a program that fails is killed.
type outlet func([]byte)

func (o outlet) Write(b []byte) (int, error) {
	o(b)
	return len(b), nil
}

// watch looks after what the system has no limits for. It ends when the process has failed.
func (p *process) watch(closing <-chan struct{}) {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for tick := 1; ; tick++ {
		select {
		case <-closing:
			p.kill(env.ErrClosed)
		case <-p.quit:
			p.kill(env.ErrClosed)
		case <-ticker.C:
		}
		p.mu.Lock()
		over := p.failure != nil
		p.mu.Unlock()
		if over {
			return
		}
		if n := threads(p.kernel.Pid); n > MaxThreads {
			p.kill(&protocol.Failure{Reason: protocol.ReasonThreads, Detail: fmt.Sprintf("it has %d threads; at most %d are allowed", n, MaxThreads)})
		}
		if tick%roomTicks == 0 {
			files, bytes, err := room(p.kernel, p.scratch)
			what := fmt.Sprintf("%d bytes in %d files", bytes, files)
			if err != nil {
				what = "files that cannot be counted (" + err.Error() + ")"
			}
			if err != nil || files > MaxScratchFiles || bytes > MaxScratchBytes {
				p.kill(&protocol.Failure{Reason: protocol.ReasonFiles, Detail: fmt.Sprintf("it keeps %s; at most %d MiB in %d files are allowed",
					what, MaxScratchBytes>>20, MaxScratchFiles)})
			}
		}
	}
}

// fail says why the process is of no more use, if nothing did before.
func (p *process) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failure == nil {
		p.failure = err
	}
}

// kill ends the process, which was started or is being.
func (p *process) kill(why error) {
	p.fail(why)
	<-p.started
	p.kernel.Kill() //nolint:errcheck // it fails if the process has ended
}

// ended says why a process ended by itself.
func (p *process) ended(state *os.ProcessState, err error, s setup) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	how := "status 0"
	if err != nil {
		how = err.Error()
	}
	f := &protocol.Failure{Reason: protocol.ReasonExit, Detail: fmt.Sprintf("it ended with %s before it had answered", how)}
	if computedTooLong(state, time.Duration(s.Seconds)*time.Second) {
		f = &protocol.Failure{Reason: protocol.ReasonTime, Detail: fmt.Sprintf("it computed for longer than %d s, %d times what the manifest allows for a request", s.Seconds, timesTime)}
	}
	if said := p.says.String(); said != "" {
		f.Detail += "; the end of its standard error is: " + said
	}
	return f
}

// output takes what the program writes to its standard output.
func (p *process) output(b []byte) {
	var wrong *protocol.Failure
	p.mu.Lock()
	for len(b) > 0 && wrong == nil {
		part, rest, whole := bytes.Cut(b, []byte{'\n'})
		switch {
		case !p.asked:
			wrong = &protocol.Failure{Reason: protocol.ReasonProtocol, Detail: fmt.Sprintf(
				"it writes %q to standard output when nothing is asked: write one line for each request, and messages to standard error", protocol.Clip(b))}
		case len(p.line)+len(part) > protocol.MaxLine:
			wrong = &protocol.Failure{Reason: protocol.ReasonOutput, Detail: fmt.Sprintf("its answer has more than %d bytes", protocol.MaxLine)}
		case whole:
			p.answers <- append(p.line, part...) // there is room: nothing is asked before this one was taken
			p.asked, p.line = false, nil
		default:
			p.line = append(p.line, part...)
		}
		b = rest
	}
	p.mu.Unlock()
	if wrong != nil {
		p.kill(wrong)
	}
}

// complaint takes what the program writes to its standard error.
func (p *process) complaint(b []byte) {
	p.mu.Lock()
	p.says.Write(b) //nolint:errcheck // it never fails
	p.saidMuch += len(b)
	much := p.saidMuch > MaxComplaints
	p.mu.Unlock()
	if much {
		p.kill(&protocol.Failure{Reason: protocol.ReasonOutput, Detail: fmt.Sprintf("it wrote more than %d MiB to its standard error", MaxComplaints>>20)})
	}
}

// Ask implements protocol.Port.
func (p *process) Ask(ctx context.Context, line []byte) ([]byte, error) {
	select {
	case <-p.ready:
	case <-p.done:
		return nil, p.failure
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	p.mu.Lock()
	p.asked = true
	p.mu.Unlock()
	began := time.Now()
	late := time.AfterFunc(p.limit, func() {
		p.kill(&protocol.Failure{Reason: protocol.ReasonTime, Detail: fmt.Sprintf(
			"it took longer than the %v that the manifest allows for a request: look for an endless loop, or raise seconds", p.limit)})
	})
	defer late.Stop()
	// A program that does not read would hold this up.
	stop := context.AfterFunc(ctx, func() { p.kill(context.Cause(ctx)) })
	defer stop()
	p.in.Write(append(line[:len(line):len(line)], '\n')) //nolint:errcheck // it fails if the process has ended
	select {
	case answer := <-p.answers:
		p.took(time.Since(began))
		return answer, nil
	case <-p.done:
		select {
		case answer := <-p.answers: // the last thing that it did
			p.took(time.Since(began))
			return answer, nil
		default:
			return nil, p.failure
		}
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Close implements protocol.Port. It does not wait: the process keeps its seat until it has ended.
func (p *process) Close() error {
	close(p.quit)
	return nil
}
