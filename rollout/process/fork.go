//go:build unix

package process

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

// fork is an agent that a guard was asked to fork.
type fork struct {
	warm        *warm
	interpreter *interpreter
	talk        *net.UnixConn // to the guard
	sent        chan struct{} // closed when the guard has its message, or never will

	mu    sync.Mutex
	ended bool // guarded by mu; the guard has nothing to do with this agent any more
}

// heeding bounds how long an interpreter or a guard may take to take a message.
const heeding = 10 * time.Second

// newFork tells the guard what the agent is to find.
func newFork(w *warm, i *interpreter, talk *net.UnixConn, finds []string) *fork {
	f := &fork{warm: w, interpreter: i, talk: talk, sent: make(chan struct{})}
	framed := frame(finds)
	go func() {
		defer close(f.sent)
		f.send(framed)
	}()
	return f
}

// frame is a list of texts without zero bytes as one message: its length in four bytes, big endian, then the texts,
// separated by zero bytes.
func frame(texts []string) []byte {
	message := strings.Join(texts, "\x00")
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(message))), message...)
}

// send writes to the guard. It fails if the guard is gone, which wait finds.
func (f *fork) send(what []byte) {
	if f.talk.SetWriteDeadline(time.Now().Add(heeding)) == nil {
		_, _ = f.talk.Write(what)
	}
}

// ask implements child.
func (f *fork) ask() { f.tell("t") }

// kill implements child.
func (f *fork) kill() {
	f.tell("k")
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.ended {
		_ = f.talk.SetReadDeadline(time.Now().Add(f.warm.killing)) // it is open
	}
}

// tell tells the guard something behind its message, while the agent runs as far as is known.
func (f *fork) tell(what string) {
	<-f.sent
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.ended {
		f.send([]byte(what))
	}
}

// errLost is the end of an agent that nobody saw.
var errLost = errors.New("its guard, which it is forked from, was killed or did not answer")

// wait implements child.
func (f *fork) wait() (status, error) {
	clean := false
	defer func() {
		f.mu.Lock()
		f.ended = true
		f.mu.Unlock()
		if !clean {
			f.talk.Close()
		}
		<-f.sent
		if clean {
			f.interpreter.keep(f.talk)
		}
	}()
	lines := bufio.NewReader(f.talk) // the guard says no more than is read here
	var pid, guard, code int
	if _, err := fmt.Fscanf(lines, "%d %d\n", &pid, &guard); err != nil {
		f.warm.discard(f.interpreter) // it may be that it forks no more
		return status{}, errUnborn
	}
	if _, err := fmt.Fscanf(lines, "%d\n", &code); err != nil {
		signalGroup(pid, kill)
		signalGroup(guard, kill) // it may only have been stopped
		return status{}, errLost
	}
	clean = true
	f.warm.proved()
	if code < 0 {
		return status{words: "signal: " + syscall.Signal(-code).String()}, nil
	}
	return status{ok: code == 0, words: fmt.Sprintf("exit status %d", code)}, nil
}

// guard is the connection to a guard that has taken an agent's descriptors: of one that has nothing to do, if there is one,
// else of a new one.
func (i *interpreter) guard(ends ...*os.File) (*net.UnixConn, error) {
	for {
		talk := i.idle()
		if talk == nil {
			break
		}
		if pass(talk, ends...) == nil {
			return talk, nil
		}
		talk.Close() // it has died meanwhile
	}
	talk, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	if err = pass(i.control, theirs); err == nil {
		err = pass(talk, ends...)
	}
	if err != nil {
		talk.Close()
		return nil, fmt.Errorf("%w: %w", errUnborn, err)
	}
	return talk, nil
}

// idle takes a guard that has nothing to do, or nil.
func (i *interpreter) idle() *net.UnixConn {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.guards) == 0 {
		return nil
	}
	last := len(i.guards) - 1
	talk := i.guards[last]
	i.guards = i.guards[:last]
	return talk
}

// keep takes back a guard that has nothing to do. There are no more than agents that ran at once.
func (i *interpreter) keep(talk *net.UnixConn) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.dismissed || talk.SetReadDeadline(time.Time{}) != nil {
		talk.Close()
		return
	}
	i.guards = append(i.guards, talk)
}

// dismiss lets the guards end that have nothing to do, and those that have when they are kept.
func (i *interpreter) dismiss() {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, talk := range i.guards {
		talk.Close()
	}
	i.guards, i.dismissed = nil, true
}

// pass hands descriptors to a process. It is safe for concurrent use: one byte is written wholly or not at all.
func pass(to *net.UnixConn, files ...*os.File) error {
	fds := make([]int, len(files))
	for n, f := range files {
		fds[n] = int(f.Fd())
	}
	if err := to.SetWriteDeadline(time.Now().Add(heeding)); err != nil {
		return err
	}
	_, _, err := to.WriteMsgUnix([]byte{0}, syscall.UnixRights(fds...), nil)
	return err
}

// socketPair is a connection's two ends: ours, and one to pass on.
func socketPair() (ours *net.UnixConn, theirs *os.File, err error) {
	syscall.ForkLock.RLock()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, fmt.Errorf("make a pair of sockets: %w", err)
	}
	f := os.NewFile(uintptr(fds[0]), "socket")
	defer f.Close()
	theirs = os.NewFile(uintptr(fds[1]), "socket")
	conn, err := net.FileConn(f)
	if err != nil {
		theirs.Close()
		return nil, nil, fmt.Errorf("make a pair of sockets: %w", err)
	}
	return conn.(*net.UnixConn), theirs, nil
}
