//go:build unix

package module

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// The layout of what a module waits for, and of what it hears.
const (
	subscriptionBytes = 48
	eventBytes        = 32
	// maxSubscriptions bounds what it waits for at once: more than its descriptors, each for reading and writing, and a few
	// clocks.
	maxSubscriptions = 4 * (MaxConnections + listenerFile + 1)

	eventClock, eventRead, eventWrite = 0, 1, 2
	clockRealtime, clockMonotonic     = 0, 1
	flagAbsolute                      = 1
)

// interest is one thing that a module waits for.
type interest struct {
	user   [8]byte
	kind   byte
	due    time.Time // of a clock
	file   *file     // of a descriptor
	wrong  errno     // it cannot be waited for
	polled int       // its place among what the system waits for, or -1
}

// started is what the module's monotonic clock counts from.
var started = time.Now()

func (h *host) poll(c call) errno {
	n := c.u32(2)
	if n == 0 || n > maxSubscriptions {
		return invalid
	}
	in, ok := c.memory.Read(c.u32(0), n*subscriptionBytes)
	out, ok2 := c.memory.Read(c.u32(1), n*eventBytes)
	if !ok || !ok2 {
		return fault
	}
	now := time.Now()
	var interests []interest
	var polled []unix.PollFd
	var first time.Time // the earliest due time, if any
	for s := in; len(s) > 0; s = s[subscriptionBytes:] {
		i := h.interest(s, now)
		switch {
		case i.kind == eventClock && i.wrong == success && (first.IsZero() || i.due.Before(first)):
			first = i.due
		case i.kind != eventClock && i.wrong == success && !i.file.listener:
			p := unix.PollFd{Fd: int32(i.file.descriptor), Events: unix.POLLIN}
			if i.kind == eventWrite {
				p.Events = unix.POLLOUT
			}
			i.polled = len(polled)
			polled = append(polled, p)
		}
		interests = append(interests, i)
	}
	for {
		wait := milliseconds(first)
		if slices.ContainsFunc(interests, func(i interest) bool { return h.happened(i, polled) }) {
			wait = 0 // but see what else there is
		}
		if _, err := unix.Poll(polled, wait); err != nil && !errors.Is(err, unix.EINTR) {
			return errnoOf(err)
		}
		events := uint32(0)
		for _, i := range interests {
			if h.happened(i, polled) {
				b := out[events*eventBytes:][:eventBytes]
				clear(b)
				copy(b, i.user[:])
				binary.LittleEndian.PutUint16(b[8:], uint16(i.wrong))
				b[10] = i.kind
				events++
			}
		}
		if events > 0 {
			return c.put32(3, events)
		}
	}
}

// interest reads a subscription.
func (h *host) interest(s []byte, now time.Time) (i interest) {
	i.user, i.kind, i.polled = [8]byte(s), s[8], -1
	switch i.kind {
	case eventClock:
		timeout := time.Duration(min(binary.LittleEndian.Uint64(s[24:]), math.MaxInt64/2))
		absolute := binary.LittleEndian.Uint16(s[40:])&flagAbsolute != 0
		switch clock := binary.LittleEndian.Uint32(s[16:]); {
		case clock > clockMonotonic:
			i.wrong = invalid
		case !absolute:
			i.due = now.Add(timeout)
		case clock == clockRealtime:
			i.due = time.Unix(0, int64(timeout))
		default:
			i.due = started.Add(timeout)
		}
	case eventRead, eventWrite:
		var ok bool
		if i.file, ok = h.files[binary.LittleEndian.Uint32(s[16:])]; !ok {
			i.wrong = badFile
		}
	default:
		i.wrong = invalid
	}
	return i
}

// happened says whether what a module waits for has happened, as the system last saw it.
func (h *host) happened(i interest, polled []unix.PollFd) bool {
	switch {
	case i.wrong != success:
		return true
	case i.kind == eventClock:
		return !time.Now().Before(i.due)
	case i.file.listener:
		return h.connections() < MaxConnections
	default:
		return polled[i.polled].Revents != 0
	}
}

// milliseconds is how long the system waits at most, rounded up; -1 for ever.
func milliseconds(until time.Time) int {
	if until.IsZero() {
		return -1
	}
	left := max(0, time.Until(until))
	return int(min((left+time.Millisecond-1)/time.Millisecond, math.MaxInt32))
}
