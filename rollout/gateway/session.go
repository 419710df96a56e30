package gateway

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/rollout/agent"
)

// maxOpen bounds the requests of one session that are in the gateway at once, and its exchanges that run, of which the
// clients may have gone, and with it the memory of their bodies.
const maxOpen = 64

// SessionOptions are what a session is made of. LLM and Agents are required.
type SessionOptions struct {
	// Access is what Gateway.Reserve made for this session; zero makes a new one.
	Access Access
	// LLM answers the rollout's calls and records them; the session calls it concurrently.
	LLM agent.LLM
	// Agents are the environment's roles. Calls that name none are the first one's.
	Agents []string
}

// Session is one rollout's way to its policy. It is safe for concurrent use.
type Session struct {
	Access
	llm     agent.LLM
	agents  []string
	opened  time.Time
	ctx     context.Context
	cancel  context.CancelCauseFunc
	running sync.WaitGroup // exchanges

	mu        sync.Mutex
	ended     bool                    // guarded by mu
	open      int                     // guarded by mu; requests that are being handled
	asking    int                     // guarded by mu; exchanges that run
	exchanges exchanges               // guarded by mu
	history   history                 // guarded by mu
	answers   map[string]chat.Message // guarded by mu; the first choice of each answer, by its id
	summary   Summary                 // guarded by mu
	telemetry witness                 // guarded by mu
}

// Summary is what a session saw of its rollout.
type Summary struct {
	// Replies is how many completions the agent got.
	Replies int
	// Truncated says that a call was refused because the rollout had no calls left, or the model no room.
	Truncated bool
	// Answer is the last text that the policy answered with, without tool calls; empty if there was none.
	Answer string
	// Reward is what the agent posted, nil if it did not.
	Reward *Reward
	// Feedback is what the agent posted and what its telemetry says, nil for nothing.
	Feedback *agent.Feedback
	// Failure is the machinery's last failure that the agent got to see, nil if there was none.
	Failure error
}

// Reward is an agent's own judgement of its rollout.
type Reward struct {
	Value float64
	// Components explain the value, by name.
	Components map[string]float64
}

func newSession(ctx context.Context, o SessionOptions) *Session {
	s := &Session{
		Access: o.Access, llm: o.LLM, agents: o.Agents, opened: o.Access.gateway.now(),
		exchanges: exchanges{}, answers: map[string]chat.Message{},
	}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	return s
}

// End lets no new calls begin, waits for those that run, and says what the session saw. Further calls of it return
// the same.
func (s *Session) End() Summary {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.running.Wait()
	s.cancel(nil)
	s.gateway.retire(s)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conclude()
	return s.summary
}

// admit counts a request in; whoever was admitted leaves.
func (s *Session) admit() *apiError {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended || s.ctx.Err() != nil:
		return endedError()
	case s.open == maxOpen:
		return busyError()
	}
	s.open++
	return nil
}

func (s *Session) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
}

// endedError is the answer to all that comes too late.
func endedError() *apiError {
	return &apiError{
		Status: http.StatusConflict, Type: invalidRequest, Code: "rollout_ended", NoRetry: true,
		Message: "the rollout has ended: it takes no more calls",
	}
}

// busyError is the answer to more than can be asked at once.
func busyError() *apiError {
	return &apiError{
		Status: http.StatusTooManyRequests, Type: rateLimited, Code: "too_many_requests",
		Message: "the rollout has too many requests open; wait for some to end",
	}
}

// join returns the exchange of a request: that of an earlier one with the same body if this is a retry, else a new
// one, which asks the policy and ends even if nobody waits for it.
func (s *Session) join(key bodyKey, retry bool, q *request) (*exchange, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil, endedError()
	}
	if retry {
		if x := s.exchanges.retried(key); x != nil {
			return x, nil
		}
	}
	if s.asking == maxOpen {
		return nil, busyError()
	}
	s.asking++
	x := s.exchanges.begin(key, retry)
	s.running.Go(func() {
		defer close(x.done)
		x.answer, x.fault = s.sample(q, x.progress)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.asking--
		if x.fault != nil {
			s.exchanges.forget(key, x)
		}
	})
	return x, nil
}

// lose notes that an exchange's client went away without the answer.
func (s *Session) lose(x *exchange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x.lost = true
}

// left says whether a request's client went away before the answer, also if it has come meanwhile. Then the exchange is
// lost.
func (s *Session) left(r *http.Request, x *exchange) bool {
	if r.Context().Err() == nil {
		return false
	}
	s.lose(x)
	return true
}
