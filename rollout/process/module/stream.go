//go:build unix

package module

import (
	"errors"

	"golang.org/x/sys/unix"
)

func (h *host) read(c call) errno {
	f, e := c.file(h)
	if e != success {
		return e
	}
	return c.vectors(1, 3, func(b []byte) (int, errno) { return f.move(unix.Read, unix.POLLIN, b) })
}

func (h *host) write(c call) errno {
	f, e := c.file(h)
	if e != success {
		return e
	}
	return c.vectors(1, 3, func(b []byte) (int, errno) { return f.move(unix.Write, unix.POLLOUT, b) })
}

// receive is read of a connection, without flags.
func (h *host) receive(c call) errno {
	f, e := c.file(h)
	switch {
	case e != success:
		return e
	case c.u32(3) != 0:
		return notSupported
	case !c.memory.WriteUint16Le(c.u32(5), 0):
		return fault
	}
	return c.vectors(1, 4, func(b []byte) (int, errno) { return f.move(unix.Read, unix.POLLIN, b) })
}

// send is write to a connection.
func (h *host) send(c call) errno {
	f, e := c.file(h)
	if e != success {
		return e
	}
	return c.vectors(1, 4, func(b []byte) (int, errno) { return f.move(unix.Write, unix.POLLOUT, b) })
}

// move reads or writes once. It waits until it can, unless the module does not want to.
func (f *file) move(do func(int, []byte) (int, error), until int16, b []byte) (int, errno) {
	if f.listener {
		return 0, badFile
	}
	for {
		n, err := do(f.descriptor, b)
		switch {
		case err == nil:
			return n, success
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN) && !f.nonblock:
			wait := []unix.PollFd{{Fd: int32(f.descriptor), Events: until}}
			unix.Poll(wait, -1) //nolint:errcheck // what is wrong shows when it is tried again
		default:
			return 0, errnoOf(err)
		}
	}
}

// accept makes a connection to the endpoint.
func (h *host) accept(c call) errno {
	f, e := c.file(h)
	switch {
	case e != success:
		return e
	case !f.listener:
		return notSocket
	case h.connections() >= MaxConnections && f.nonblock:
		return again
	case h.connections() >= MaxConnections:
		return tooManyFiles // it would wait for itself
	}
	number := uint32(listenerFile + 1) // the lowest that is free, as systems have it
	for h.files[number] != nil {
		number++
	}
	if e := c.put32(2, number); e != success {
		return e
	}
	descriptor, err := h.dial()
	if err == nil {
		h.files[number] = &file{descriptor: descriptor, nonblock: c.u32(1)&flagNonblock != 0}
	}
	return errnoOf(err)
}

func (h *host) dial() (descriptor int, err error) {
	domain, to := unix.AF_INET6, unix.Sockaddr(&unix.SockaddrInet6{Port: int(h.endpoint.Port()), Addr: h.endpoint.Addr().As16()})
	if h.endpoint.Addr().Is4() {
		domain, to = unix.AF_INET, &unix.SockaddrInet4{Port: int(h.endpoint.Port()), Addr: h.endpoint.Addr().As4()}
	}
	if descriptor, err = unix.Socket(domain, unix.SOCK_STREAM, 0); err != nil {
		return 0, err
	}
	if err = unix.Connect(descriptor, to); err == nil {
		err = unix.SetsockoptInt(descriptor, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	}
	if err == nil {
		err = unix.SetNonblock(descriptor, true)
	}
	if err != nil {
		unix.Close(descriptor) // it is of no use
		return 0, err
	}
	return descriptor, nil
}

func (h *host) shutdown(c call) errno {
	f, e := c.file(h)
	switch how := c.u32(1); {
	case e != success:
		return e
	case c.u32(0) <= listenerFile:
		return notSocket
	case how < 1 || how > 3:
		return invalid
	default:
		// WASI has a bit for each direction, in the order of the system's numbers.
		return errnoOf(unix.Shutdown(f.descriptor, int(how)-1))
	}
}

// errno is an error of WASI.
type errno uint32

const (
	success      errno = 0
	again        errno = 6
	badFile      errno = 8
	refused      errno = 14
	reset        errno = 15
	fault        errno = 21
	invalid      errno = 28
	failed       errno = 29
	tooManyFiles errno = 33
	notConnected errno = 53
	notSocket    errno = 57
	notSupported errno = 58
	brokenPipe   errno = 64
	notSeekable  errno = 70
	notCapable   errno = 76
)

// errnoOf is what a module hears of the system's error.
func errnoOf(err error) errno {
	if err == nil {
		return success
	}
	for system, e := range map[unix.Errno]errno{
		unix.EAGAIN: again, unix.EBADF: badFile, unix.ECONNREFUSED: refused, unix.ECONNRESET: reset, unix.EINVAL: invalid,
		unix.EMFILE: tooManyFiles, unix.ENOTCONN: notConnected, unix.EPIPE: brokenPipe,
	} {
		if errors.Is(err, system) {
			return e
		}
	}
	return failed
}
