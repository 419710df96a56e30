package block

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/lightswarm/lightswarm/p2p/stream"
	"github.com/lightswarm/lightswarm/wire"
)

var (
	// errSessionEnded says that a session ended before a request was answered; another peer may be asked.
	errSessionEnded = errors.New("the block stream ended")
	// errIdle ends a session that nobody used for a while.
	errIdle = errors.New("nothing was asked for a while")
	// errProtocol says that a peer broke the block protocol.
	errProtocol = errors.New("the peer broke the block protocol")
)

// session is one stream to one peer with requests pipelined on it. Callers queue requests; run owns the stream, with
// a writer that sends what is queued and a reader that matches answers, which come in the order of the requests.
type session struct {
	peer   peer.ID
	window chan struct{}          // One element for each request queued or sent and not answered.
	keep   func(wire.CID, []byte) // Takes the blocks that came after their caller had left.

	received atomic.Uint64 // Bytes that came.

	mu      sync.Mutex
	queued  []*request    // Not sent yet; guarded by mu.
	sent    []*request    // Sent and not answered, in order; guarded by mu.
	err     error         // Why the session ended, nil while it lives; guarded by mu.
	pending chan struct{} // Holds an element when queued may have something; capacity 1.
	awaited chan struct{} // Holds an element when sent may have something; capacity 1.
	ended   chan struct{} // Closed when err is set.
}

// request is one CID asked of a session.
type request struct {
	cid    wire.CID
	limit  int
	index  uint32
	answer chan answer // Capacity 1, so that the reader never waits for a caller.
	left   bool        // The caller gave up waiting; guarded by the session's mu.
}

type answer struct {
	data []byte
	err  error
}

func newSession(p peer.ID, window int, keep func(wire.CID, []byte)) *session {
	return &session{
		peer: p, window: make(chan struct{}, window), keep: keep,
		pending: make(chan struct{}, 1), awaited: make(chan struct{}, 1), ended: make(chan struct{}),
	}
}

// get asks the peer for one block and waits for it. It fails with ErrNotFound, wire.ErrTooLarge, wire.ErrCIDMismatch,
// errSessionEnded, errProtocol or the context's error.
//
// A request cannot be taken back, and a peer with a slow link may have many answers on their way. So whoever asks again
// for what an earlier caller no longer waits for takes over that request, instead of adding to what has to be sent.
func (s *session) get(ctx context.Context, cid wire.CID, limit int) ([]byte, error) {
	r := s.takeOver(cid, limit)
	if r == nil {
		var err error
		if r, err = s.request(ctx, cid, limit); err != nil {
			return nil, err
		}
	}
	select {
	case a := <-r.answer:
		return a.data, a.err
	case <-ctx.Done():
		return s.leave(ctx, r)
	}
}

// request queues a request once the window has room.
func (s *session) request(ctx context.Context, cid wire.CID, limit int) (*request, error) {
	select {
	case s.window <- struct{}{}:
	case <-s.ended:
		return nil, s.reason()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	r := &request{cid: cid, limit: limit, answer: make(chan answer, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	s.queued = append(s.queued, r)
	signal(s.pending)
	return r, nil
}

// takeOver returns a request for the same that nobody waits for any more, nil if there is none.
func (s *session) takeOver(cid wire.CID, limit int) *request {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, list := range [][]*request{s.sent, s.queued} {
		for _, r := range list {
			if r.left && r.cid == cid && r.limit == limit {
				r.left = false
				return r
			}
		}
	}
	return nil
}

// leave notes that nobody waits for a request, unless its answer has just come.
func (s *session) leave(ctx context.Context, r *request) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case a := <-r.answer:
		return a.data, a.err
	default:
		r.left = true
		return nil, ctx.Err()
	}
}

// load is how many requests wait for the peer.
func (s *session) load() int { return len(s.window) }

// reason is why the session ended.
func (s *session) reason() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// run serves the session on a stream until ctx ends, the peer fails or nothing was asked for idle, and returns why. It
// owns the stream and returns when both directions are done.
func (s *session) run(ctx context.Context, st network.Stream, stall, idle time.Duration) error {
	ctx, cancel := context.WithCancelCause(ctx)
	// Resetting fails only when the stream is over.
	stop := context.AfterFunc(ctx, func() { _ = st.Reset() })
	var writer sync.WaitGroup
	writer.Go(func() { cancel(s.write(ctx, st)) })
	cancel(s.read(ctx, st, stall, idle))
	writer.Wait()
	stop()
	_ = st.Reset()
	return context.Cause(ctx)
}

// end fails everything that waits, and whatever is asked from now on.
func (s *session) end(cause error) {
	s.mu.Lock()
	s.err = fmt.Errorf("%w: %w", errSessionEnded, cause)
	waiting := append(s.sent, s.queued...)
	s.sent, s.queued = nil, nil
	s.mu.Unlock()
	close(s.ended)
	for _, r := range waiting {
		r.answer <- answer{err: s.err}
	}
}

// write sends what is queued, as many CIDs in one request as there are.
func (s *session) write(ctx context.Context, st network.Stream) error {
	for {
		select {
		case <-s.pending:
		case <-ctx.Done():
			return ctx.Err()
		}
		for {
			batch := s.nextBatch()
			if len(batch.CIDs) == 0 {
				break
			}
			encoded, err := wire.EncodeBlockRequest(batch)
			if err != nil {
				return err
			}
			if err := st.SetWriteDeadline(time.Now().Add(writeSlack)); err != nil {
				return err
			}
			if err := stream.WriteFrame(st, encoded); err != nil {
				return err
			}
		}
	}
}

// nextBatch moves queued requests to sent.
func (s *session) nextBatch() wire.BlockRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(len(s.queued), wire.MaxBlockRequestCIDs)
	var batch wire.BlockRequest
	for i, r := range s.queued[:n] {
		r.index = uint32(i)
		batch.CIDs = append(batch.CIDs, r.cid)
	}
	s.sent = append(s.sent, s.queued[:n]...)
	s.queued = append([]*request(nil), s.queued[n:]...)
	signal(s.awaited)
	return batch
}

// read matches answers with requests. A peer may stay silent for stall while an answer is due.
func (s *session) read(ctx context.Context, st network.Stream, stall, idle time.Duration) error {
	r := bufio.NewReaderSize(counted{st, &s.received}, bufferBytes)
	rest := time.NewTimer(idle)
	defer rest.Stop()
	for {
		next := s.oldest()
		if next == nil {
			rest.Reset(idle)
			select {
			case <-s.awaited:
				continue
			case <-rest.C:
				return errIdle
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if err := st.SetReadDeadline(time.Now().Add(stall)); err != nil {
			return err
		}
		data, err := receive(st, r, next)
		if errors.Is(err, errProtocol) || isStreamError(err) {
			return err
		}
		s.answered(next, answer{data, err})
		if errors.Is(err, wire.ErrCIDMismatch) {
			return fmt.Errorf("%w: %w", errProtocol, err)
		}
	}
}

// counted counts what is read.
type counted struct {
	io.Reader
	n *atomic.Uint64
}

func (c counted) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n.Add(uint64(n))
	return n, err
}

// oldest is the request whose answer is due next, nil when none is.
func (s *session) oldest() *request {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.sent) == 0 {
		return nil
	}
	return s.sent[0]
}

// answered ends the oldest request and makes room in the window.
func (s *session) answered(r *request, a answer) {
	s.mu.Lock()
	s.sent = s.sent[1:]
	left := r.left
	r.answer <- a
	s.mu.Unlock()
	<-s.window
	if left && a.err == nil {
		s.keep(r.cid, a.data)
	}
}

// streamError marks errors after which a stream cannot be read on.
type streamError struct{ error }

func (e streamError) Unwrap() error { return e.error }

func isStreamError(err error) bool {
	var e streamError
	return errors.As(err, &e)
}

// receive reads the answer to one request.
func receive(st interface{ SetReadDeadline(time.Time) error }, r *bufio.Reader, q *request) ([]byte, error) {
	raw, err := stream.ReadFrame(r, wire.MaxBlockHeaderBytes)
	if errors.Is(err, stream.ErrTooLarge) {
		return nil, fmt.Errorf("%w: %w", errProtocol, err)
	}
	if err != nil {
		return nil, streamError{err}
	}
	header, err := wire.DecodeBlockHeader(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errProtocol, err)
	}
	if header.Index != q.index {
		return nil, fmt.Errorf("%w: answer %d came where %d was due", errProtocol, header.Index, q.index)
	}
	if !header.Found {
		return nil, ErrNotFound
	}
	if err := st.SetReadDeadline(time.Now().Add(transferTime(int(header.Bytes)))); err != nil {
		return nil, streamError{err}
	}
	if int(header.Bytes) > q.limit {
		if _, err := r.Discard(int(header.Bytes)); err != nil {
			return nil, streamError{err}
		}
		return nil, fmt.Errorf("%w: %d bytes, the limit is %d", wire.ErrTooLarge, header.Bytes, q.limit)
	}
	data := make([]byte, header.Bytes)
	if _, err := io.ReadFull(r, data); err != nil {
		return nil, streamError{err}
	}
	if err := q.cid.Verify(data); err != nil {
		return nil, err
	}
	return data, nil
}

// signal puts an element into a channel of capacity 1 unless it has one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
