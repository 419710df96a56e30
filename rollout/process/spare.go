//go:build unix

package process

import (
	"errors"
	"fmt"
	"io"
	"net"
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
	s.program.mark(environ)
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
