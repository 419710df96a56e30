package wasm

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/lightswarm/lightswarm/rollout/env/protocol"
	"github.com/lightswarm/lightswarm/rollout/env/wasm/meter"
)

const (
	// compileTime is how long a child may take to compile its module.
	compileTime = 3 * time.Minute
	// patience is how long any request may take besides what its steps take on the slowest machine that is of use.
	patience       = time.Minute
	slowestPerStep = 50 * time.Nanosecond
	// interpreting is how many times as long a step takes at most that is interpreted.
	interpreting = 100
)

// child is a process that runs the episodes of one environment. It is safe for concurrent use. One goroutine reads what it
// says and waits for its end.
type child struct {
	process *os.Process
	limit   time.Duration // how long a request may take
	ready   chan struct{} // closed once the module is compiled
	done    chan struct{} // closed once the process has ended; failure is set before

	writing sync.Mutex
	in      io.WriteCloser // guarded by writing

	mu       sync.Mutex
	compiled bool             // guarded by mu; ready is closed
	episodes map[uint32]*seat // guarded by mu
	last     uint32           // guarded by mu
	killed   string           // guarded by mu; why
	failure  *Failure         // guarded by mu until done
}

// seat is an episode in a child.
type seat struct {
	// answers has room for the answer to the one request and for the failure that can follow before it is taken.
	answers chan frame
	leave   func() // called once, when the instance is gone
}

func newSeat(leave func()) *seat { return &seat{answers: make(chan frame, 2), leave: leave} }

// startChild starts a process and gives it the module.
func startChild(command []string, s setup, module []byte) (*child, error) {
	cmd := exec.Command(command[0], command[1:]...)
	// Nothing of the node's environment: the child needs none of it.
	cmd.Env = []string{"GOTRACEBACK=none"}
	cmd.Dir = os.TempDir()
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	complaints := &protocol.Complaints{}
	cmd.Stderr = complaints
	perStep := slowestPerStep
	if s.Interpreter {
		perStep *= interpreting
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &child{
		process:  cmd.Process,
		limit:    patience + time.Duration(s.Steps)*perStep,
		ready:    make(chan struct{}),
		done:     make(chan struct{}),
		in:       in,
		episodes: make(map[uint32]*seat),
	}
	go c.listen(cmd, out, complaints)
	described, err := json.Marshal(s)
	if err == nil {
		err = c.send(frame{kind: frameSetup, body: described})
	}
	if err == nil {
		err = c.send(frame{kind: frameModule, body: module})
	}
	if err != nil {
		<-c.done // its end says more than a pipe that it broke
		return nil, c.failure
	}
	return c, nil
}

// await waits until the module is compiled.
func (c *child) await(ctx context.Context) error {
	guard := time.AfterFunc(compileTime, func() { c.kill("its module takes longer to compile than " + compileTime.String()) })
	defer guard.Stop()
	select {
	case <-c.ready:
		return nil
	case <-c.done:
		return c.failure
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// send tells the child something. After an error the process is ending.
func (c *child) send(f frame) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	const why = "it takes no more input"
	guard := time.AfterFunc(patience, func() { c.kill(why) })
	defer guard.Stop()
	err := writeFrame(c.in, f)
	if err != nil {
		c.kill(why)
	}
	return err
}

// kill ends the process.
func (c *child) kill(why string) {
	c.mu.Lock()
	if c.killed == "" {
		c.killed = why
	}
	c.mu.Unlock()
	c.process.Kill() //nolint:errcheck // it fails if the process has ended
}

// close ends the process and waits for it.
func (c *child) close() {
	c.kill("it was closed")
	<-c.done
}

// listen takes what the child says, until it ends.
func (c *child) listen(cmd *exec.Cmd, out io.Reader, complaints *protocol.Complaints) {
	broken := c.take(bufio.NewReaderSize(out, 64<<10))
	if !errors.Is(broken, io.EOF) {
		c.kill(broken.Error())
	}
	c.writing.Lock()
	c.in.Close()
	c.writing.Unlock()
	ended := cmd.Wait()

	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failure == nil {
		why := c.killed
		if why == "" {
			why = "it ended"
			if ended != nil {
				why += " with " + ended.Error()
			}
			if said := complaints.String(); said != "" {
				why += ": " + said
			}
		}
		c.failure = &Failure{Reason: ReasonProcess, Detail: "the process of the environment: " + why}
	}
	close(c.done)
	for id, s := range c.episodes {
		delete(c.episodes, id)
		s.leave()
	}
}

// take hands frames to their episodes. It returns why there are no more.
func (c *child) take(out io.Reader) error {
	for {
		f, err := readFrame(out, usageBytes+MaxAnswer)
		if err != nil {
			return err
		}
		c.mu.Lock()
		s := c.episodes[f.episode]
		switch {
		case f.kind == frameReady && !c.compiled:
			c.compiled = true
			close(c.ready)
		case f.kind == frameFailed && f.episode == 0:
			c.failure = readFailure(f.body)
		case f.kind == frameEnded && s != nil:
			delete(c.episodes, f.episode)
			s.leave()
		case f.kind == frameAnswer && s != nil && len(f.body) >= usageBytes, f.kind == frameFailed && s != nil:
			select {
			case s.answers <- f:
			default: // of a request that was given up
			}
		default:
			err = fmt.Errorf("a frame of kind %d for episode %d", f.kind, f.episode)
		}
		c.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

func readFailure(body []byte) *Failure {
	f := &Failure{}
	if json.Unmarshal(body, f) != nil || f.Reason == "" {
		f = &Failure{Reason: ReasonProcess, Detail: "the process of the environment failed and does not say why"}
	}
	return f
}

// open begins an episode. leave is called once, when nothing of it is left in the child.
func (c *child) open(seed [32]byte, leave func()) (id uint32, s *seat, err error) {
	s = newSeat(leave)
	c.mu.Lock()
	select {
	case <-c.done:
		defer c.mu.Unlock()
		leave()
		return 0, nil, c.failure
	default:
	}
	c.last++
	id = c.last
	c.episodes[id] = s
	c.mu.Unlock()
	if c.send(frame{kind: frameOpen, episode: id, body: seed[:]}) != nil {
		<-c.done
		return 0, nil, c.failure
	}
	return id, s, nil
}

// request asks an episode's module for an answer. After an error the episode is of no more use.
func (c *child) request(ctx context.Context, id uint32, s *seat, line []byte) ([]byte, Usage, error) {
	guard := time.AfterFunc(c.limit, func() { c.kill("a request took longer than " + c.limit.String()) })
	defer guard.Stop()
	if c.send(frame{frameRequest, id, line}) != nil {
		<-c.done
		return nil, Usage{}, c.failure
	}
	select {
	case f := <-s.answers:
		if f.kind == frameFailed {
			return nil, Usage{}, readFailure(f.body)
		}
		return f.body[usageBytes:], readUsage(f.body), nil
	case <-c.done:
		return nil, Usage{}, c.failure
	case <-ctx.Done():
		return nil, Usage{}, context.Cause(ctx)
	}
}

// end ends an episode. An instance that is at work notices within milliseconds.
func (c *child) end(id uint32) {
	c.send(frame{kind: frameClose, episode: id}) //nolint:errcheck // it fails if the process has ended
}

// checkModule is an error if a module is too large to be sent to a child.
func checkModule(code []byte) error {
	if len(code) > meter.MaxModuleBytes {
		return fmt.Errorf("the module has %d bytes; at most %d MiB are allowed", len(code), meter.MaxModuleBytes>>20)
	}
	return nil
}
