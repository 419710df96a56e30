package process

import (
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// maxComplaints is how much of the end of a program's standard error is kept, in bytes.
	maxComplaints = 8 << 10
	// pipeHolds is what an empty pipe takes at least, in bytes.
	pipeHolds = 4 << 10
	// drain is how long what a program wrote may take to be read after its end: it is there already, but the end of the
	// pipe does not come while a process that escaped holds it.
	drain = time.Second
)

// output is the beginning of what a program wrote; more says that there was more.
type output struct {
	text string
	more bool
}

// stdio is a program's standard input, output and error. One goroutine at a time has it.
type stdio struct {
	limit int
	in    *os.File // what goes to the program comes from here
	out   *os.File
	err   *os.File
	// ends are the program's. That of its input is kept until it ends: a spare's is put right with it.
	ends [3]*os.File

	listening  bool
	moving     sync.WaitGroup
	written    output // after moving
	complaints tail   // after moving
}

// newStdio makes the pipes of a program whose answer has at most limit bytes.
func newStdio(limit int) (s *stdio, err error) {
	s = &stdio{limit: limit}
	if s.ends[0], s.in, err = os.Pipe(); err == nil {
		if s.out, s.ends[1], err = os.Pipe(); err == nil {
			s.err, s.ends[2], err = os.Pipe()
		}
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// tell moves the task in. One that fits into any pipe is there when it returns, and so is its end: a program whose imports
// have made its standard input non-blocking, as some do that look at it, must not find it empty.
func (s *stdio) tell(task string) {
	move := func() {
		_, _ = io.WriteString(s.in, task) // fails if the program does not read all of it, which is its affair
		// A process that is being started has what this one has until it executes its program, the open pipe too.
		syscall.ForkLock.RLock()
		defer syscall.ForkLock.RUnlock()
		s.in.Close()
	}
	if len(task) <= pipeHolds {
		move()
	} else {
		s.moving.Go(move)
	}
}

// listen moves out what the program writes, once it has its ends. A second time does nothing.
func (s *stdio) listen() {
	if s.listening {
		return
	}
	s.listening = true
	for _, f := range s.ends[1:] {
		f.Close()
	}
	s.moving.Go(func() {
		var text strings.Builder
		_, _ = io.Copy(&text, io.LimitReader(s.out, int64(s.limit))) // what came is what there is
		more, _ := io.Copy(io.Discard, s.out)
		s.written = output{text.String(), more > 0}
	})
	s.moving.Go(func() { _, _ = io.Copy(&s.complaints, s.err) })
}

// finish returns what the program wrote, after its end.
func (s *stdio) finish() (out output, complaints string) {
	// They fail where begin has closed the pipe already.
	_ = s.in.SetWriteDeadline(time.Now())
	_ = s.ends[0].Close()
	_ = s.out.SetReadDeadline(time.Now().Add(drain))
	_ = s.err.SetReadDeadline(time.Now().Add(drain))
	s.moving.Wait()
	return s.written, s.complaints.String()
}

// close frees what is open. What is closed already does not mind.
func (s *stdio) close() {
	for _, f := range append(s.ends[:], s.in, s.out, s.err) {
		f.Close()
	}
}

// tail keeps the end of what is written to it. It is safe for concurrent use.
type tail struct {
	mu   sync.Mutex
	kept []byte // guarded by mu
}

// Write implements io.Writer; it never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p[max(0, len(p)-maxComplaints):]...)
	if over := len(t.kept) - maxComplaints; over > 0 {
		t.kept = t.kept[:copy(t.kept, t.kept[over:])]
	}
	return len(p), nil
}

// String is the text so far, without spaces around it.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(strings.ToValidUTF8(string(t.kept), "\uFFFD"))
}
