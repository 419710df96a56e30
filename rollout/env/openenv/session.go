package openenv

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/protocol"
)

const (
	// maxMessage bounds a message in both directions.
	maxMessage = protocol.MaxLine
	// farewellTime is how long a server may take to let go of an episode.
	farewellTime = 5 * time.Second
)

// session is one connection, which is an environment of the server's. Its run goroutine owns it. One goroutine asks at a
// time; after an error there is nothing more to ask.
type session struct {
	ws      *websocket.Conn
	limit   time.Duration       // for each reply
	took    func(time.Duration) // told how long each reply took
	quit    chan struct{}       // closed when nothing more is asked
	lost    chan struct{}       // closed once nothing more is read; failure is set before
	ended   chan struct{}       // closed once the connection is closed
	replies chan []byte         // capacity 1: one thing is asked at a time

	leave sync.Once

	mu      sync.Mutex
	asked   bool  // guarded by mu; a reply is due
	failure error // guarded by mu; why it is of no more use
}

func newSession(ws *websocket.Conn, limit time.Duration, took func(time.Duration)) *session {
	ws.SetReadLimit(maxMessage)
	return &session{
		ws: ws, limit: limit, took: took,
		quit: make(chan struct{}), lost: make(chan struct{}), ended: make(chan struct{}), replies: make(chan []byte, 1),
	}
}

// run reads until the connection is of no more use or nobody needs it, says farewell and closes it.
func (s *session) run(closing <-chan struct{}) {
	defer close(s.ended)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(s.lost)
		s.fail(s.read(ctx))
	})
	select {
	case <-s.quit:
		s.farewell(ctx)
	case <-closing:
		s.farewell(ctx)
	case <-s.lost:
	}
	cancel()
	reading.Wait()
	s.ws.CloseNow() //nolint:errcheck // nothing is left to lose
}

// farewell tells the server that the episode is over, which closes the connection once its place is free.
func (s *session) farewell(ctx context.Context) {
	s.mu.Lock()
	deaf := s.asked || s.failure != nil
	if s.failure == nil {
		s.failure = env.ErrClosed
	}
	s.mu.Unlock()
	if deaf {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, farewellTime)
	defer cancel()
	if s.ws.Write(ctx, websocket.MessageText, []byte(`{"type":"`+sendClose+`"}`)) != nil {
		return
	}
	select {
	case <-s.lost:
	case <-ctx.Done():
	}
}

// read takes what the server sends. It returns why that ended.
func (s *session) read(ctx context.Context) error {
	for {
		kind, raw, err := s.ws.Read(ctx)
		var closed websocket.CloseError
		switch {
		case errors.Is(err, websocket.ErrMessageTooBig):
			return &protocol.Failure{Reason: protocol.ReasonOutput, Detail: fmt.Sprintf("a message of the server has more than %d bytes", maxMessage)}
		case errors.As(err, &closed):
			return lost(fmt.Sprintf("the server closed the connection (%d %s)", closed.Code, protocol.Clip([]byte(closed.Reason))))
		case err != nil:
			return lost("the connection to the server is lost: " + plain(err))
		case kind != websocket.MessageText:
			return &protocol.Failure{Reason: protocol.ReasonProtocol, Detail: "the server sends a message that is no text"}
		}
		s.mu.Lock()
		due := s.asked
		s.asked = false
		s.mu.Unlock()
		if !due {
			return unasked(raw)
		}
		s.replies <- raw // there is room: nothing is asked before this one was taken
	}
}

// busy is a server's trouble if it has no place for another episode.
type busy struct{ trouble *trouble }

func (b *busy) Error() string { return b.trouble.failure().Detail }

func lost(why string) error { return &protocol.Failure{Reason: protocol.ReasonServer, Detail: why} }

// unasked is what is wrong with a message that no reply was due for: it is why the server does not want the connection, or
// the late reply to something else.
func unasked(raw []byte) error {
	if r, err := decodeReply(raw); err == nil && r.trouble != nil {
		return refusedSession(r.trouble)
	}
	return &protocol.Failure{Reason: protocol.ReasonProtocol, Detail: fmt.Sprintf("the server sends %q when nothing is asked", protocol.Clip(raw))}
}

// fail says why the session is of no more use, if nothing did before.
func (s *session) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure == nil {
		s.failure = err
	}
}

func (s *session) why() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure
}

// ask sends a message and returns the reply. A reply that is late is not waited for any more, which ends the session.
func (s *session) ask(ctx context.Context, m message) (reply, error) {
	r, err := s.exchange(ctx, m)
	if err == nil {
		return r, nil
	}
	s.fail(err)
	s.close()
	var f *protocol.Failure
	if errors.As(err, &f) {
		err = &protocol.Failure{Reason: f.Reason, Detail: m.Type + ": " + f.Detail}
	}
	return reply{}, err
}

func (s *session) exchange(ctx context.Context, m message) (reply, error) {
	if ctx.Err() != nil {
		return reply{}, context.Cause(ctx)
	}
	text, err := marshal(m)
	if err != nil {
		return reply{}, err
	}
	if len(text) > maxMessage {
		return reply{}, &protocol.Failure{Reason: protocol.ReasonProtocol, Detail: fmt.Sprintf("a message of %d bytes; at most %d are sent", len(text), maxMessage)}
	}
	s.mu.Lock()
	err = s.failure
	s.asked = err == nil
	s.mu.Unlock()
	if err != nil {
		return reply{}, err
	}
	timed, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	late := func() error {
		var err error = &protocol.Failure{Reason: protocol.ReasonTime, Detail: fmt.Sprintf(
			"the server took longer than the %v that the manifest allows: look what keeps it, or raise seconds", s.limit)}
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.failure = err // also if reading failed first: a write whose time is over closes the connection
		return err
	}
	began := time.Now()
	if err := s.ws.Write(timed, websocket.MessageText, []byte(text)); err != nil && timed.Err() != nil {
		return reply{}, late()
	} // else it is lost, and the server may have said why
	select {
	case raw := <-s.replies:
		return s.understand(raw, began)
	case <-s.lost:
		select {
		case raw := <-s.replies: // the last thing that it said
			return s.understand(raw, began)
		default:
		}
		if timed.Err() != nil {
			return reply{}, late()
		}
		return reply{}, s.why()
	case <-timed.Done():
		return reply{}, late()
	}
}

// understand is a reply, or an error if it ends the session.
func (s *session) understand(raw []byte, began time.Time) (reply, error) {
	s.took(time.Since(began))
	r, err := decodeReply(raw)
	switch {
	case err != nil:
		return reply{}, &protocol.Failure{Reason: protocol.ReasonAnswer, Detail: fmt.Sprintf("the server's message %q is none of OpenEnv's: %s", protocol.Clip(raw), plain(err))}
	case r.trouble != nil && r.trouble.ends():
		return reply{}, refusedSession(r.trouble)
	}
	return r, nil
}

// close ends the session. It does not wait. It may be called more than once.
func (s *session) close() { s.leave.Do(func() { close(s.quit) }) }
