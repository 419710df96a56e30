//go:build unix

package process

import (
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"
)

// spare is a process of Node.js that has imported modules and waits for its rollout. One goroutine at a time has it.
type spare struct {
	room    *room
	program *program
	talk    *net.UnixConn
}

// hear waits for a byte that the process says.
func (s *spare) hear(want byte, d time.Duration) error {
	if err := s.talk.SetReadDeadline(time.Now().Add(d)); err != nil {
		return err
	}
	var said [1]byte
	if _, err := io.ReadFull(s.talk, said[:]); err != nil {
		return err
	}
	if said[0] != want {
		return fmt.Errorf("it says %q instead of %q", said[0], want)
	}
	return nil
}

// begin lets the process run its script with an environment. After an error it has not begun, or is never to be heard of.
func (s *spare) begin(environ []string, within time.Duration) error {
	if err := s.block(); err != nil {
		return err
	}
	if err := s.talk.SetWriteDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	if _, err := s.talk.Write(frame(environ)); err != nil {
		return err
	}
	if err := s.hear('b', within); err != nil {
		return err
	}
	s.talk.Close()
	return nil
}

// block has reads of standard input wait for what comes, as they do in a program that has just started: Node.js makes a pipe
// non-blocking for good as soon as a module looks at process.stdin, and a read ahead of a large task would fail.
func (s *spare) block() error {
	in, err := s.room.ends[0].SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = in.Control(func(fd uintptr) { failed = syscall.SetNonblock(int(fd), false) })
	return errors.Join(err, failed)
}

// leave ends the process, if it has not ended, and waits for it.
func (s *spare) leave() {
	s.talk.Close()
	s.program.kill()
	<-s.program.ended
}

// wrote is the end of what the process wrote, after its end, as the end of an error.
func (s *spare) wrote() string {
	out, complaints := s.room.finish()
	if out.text == "" && complaints == "" {
		return ""
	}
	return "; the end of what it wrote:\n" + out.text[:min(len(out.text), maxComplaints)] + complaints
}

// cause is how a process ended, as an error.
func (e ended) cause() error {
	if e.err != nil {
		return e.err
	}
	return errors.New(e.status.words)
}
