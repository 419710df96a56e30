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
	"syscall"
	"time"
)

// fork is an agent that an interpreter was asked to fork, seen through the agent's guard.
type fork struct {
	warm        *warm
	interpreter *interpreter
	talk        *net.UnixConn
	sent        chan struct{} // closed when the guard has its message, or never will
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
	_ = f.talk.SetReadDeadline(time.Now().Add(f.warm.killing)) // fails once wait has closed it
}

// tell tells the guard something behind its message.
func (f *fork) tell(what string) {
	<-f.sent
	f.send([]byte(what))
}

// errLost is the end of an agent that nobody saw.
var errLost = errors.New("its guard, which it is forked from, was killed or did not answer")

// wait implements child.
func (f *fork) wait() (status, error) {
	defer func() {
		f.talk.Close()
		<-f.sent
	}()
	lines := bufio.NewReader(f.talk)
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
	f.warm.proved()
	if code < 0 {
		return status{words: "signal: " + syscall.Signal(-code).String()}, nil
	}
	return status{ok: code == 0, words: fmt.Sprintf("exit status %d", code)}, nil
}

// pass hands descriptors to the process. It is safe for concurrent use: one byte is written wholly or not at all.
func (i *interpreter) pass(files ...*os.File) error {
	fds := make([]int, len(files))
	for n, f := range files {
		fds[n] = int(f.Fd())
	}
	if err := i.control.SetWriteDeadline(time.Now().Add(heeding)); err != nil {
		return err
	}
	_, _, err := i.control.WriteMsgUnix([]byte{0}, syscall.UnixRights(fds...), nil)
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
