package gateway

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"

	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/rollout/agent"
)

// progress is how far the samples of a request have got. The retry of one that the engine failed in goes on there, so that
// the agent sees all that is recorded.
type progress struct {
	answer answer // with the choices that there are
	drawn  int    // samples
	unmet  *apiError
}

// sample asks the policy what a request asks. Several samples are drawn one after the other, so that each has the
// same number, and so the same sampling key, whenever the rollout is run again. Where the calls are used up on the way, or
// some samples are not of the form that is demanded, the answer has the others.
func (s *Session) sample(q *request, p *progress) (*answer, *apiError) {
	ask, fault := s.prepare(q)
	if fault != nil {
		return nil, fault
	}
	a := &p.answer
	a.Created, a.Model = s.gateway.now().Unix(), modelName
	for ; p.drawn < q.Samples; p.drawn++ {
		reply, err := s.llm.Complete(s.ctx, ask)
		if errors.Is(err, agent.ErrExhausted) && len(a.Choices) > 0 {
			_ = s.refuse(err) // for the summary; the agent gets those that there are
			break
		}
		if err != nil && !errors.Is(err, agent.ErrMalformed) && (!errors.Is(err, agent.ErrCut) || errors.Is(err, agent.ErrNoRoom)) {
			return nil, s.refuse(err)
		}
		if slices.ContainsFunc(reply.LogProbs, func(p float32) bool { return !(p <= 0 && p >= -math.MaxFloat32) }) {
			return nil, s.refuse(fmt.Errorf("call %d: a log-prob is no finite number up to 0", reply.Call))
		}
		c, whole := visible(q, reply, err)
		if !q.LogProbs {
			c.Pieces = nil // the answer is kept for retries, and they would be most of it
		}
		if !reply.Constrained {
			if fault := unmet(q, c); fault != nil {
				p.unmet = fault
				continue
			}
		}
		s.remember(q, ask.Messages, c, whole)
		if len(a.Choices) == 0 {
			a.ID = fmt.Sprintf("%s-%d", s.id, reply.Call)
			a.Usage.Prompt = len(reply.Prompt)
		}
		s.witness(a.ID, reply.Call, q.Unnamed)
		a.Usage.Completion += len(c.Tokens)
		a.Choices = append(a.Choices, c)
	}
	if len(a.Choices) == 0 {
		return nil, p.unmet
	}
	s.deliver(a)
	return a, nil
}

// prepare is the call that a request makes.
func (s *Session) prepare(q *request) (agent.Request, *apiError) {
	ask := agent.Request{Agent: q.Agent, Tools: q.Tools, Prompt: q.Prompt, Text: q.Text, Asked: q.asked()}
	if q.Choice.Kind == chooseNone {
		ask.Tools = nil
	}
	var fault *apiError
	if ask.Grammar, fault = q.grammar(); fault != nil {
		return ask, fault
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	err := q.resolve(func(id string) (chat.Message, bool) {
		m, ok := s.answers[id]
		return m, ok
	})
	if err != nil {
		return ask, asAPIError(err)
	}
	ask.Messages = s.history.attach(q.Messages)
	return ask, nil
}

// remember keeps what the agent sees of a completion: with its tokens if that is all of it, so that the conversation
// continues with them.
func (s *Session) remember(q *request, conversation []chat.Message, c choice, whole bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if whole && q.Text == "" && len(q.Prompt) == 0 {
		s.history.add(conversation, c.Message, c.Tokens)
	}
}

// deliver keeps an answer that is about to be sent.
func (s *Session) deliver(a *answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[a.ID] = a.Choices[0].Message
	s.summary.Replies += len(a.Choices)
	for _, c := range a.Choices {
		if len(c.Message.ToolCalls) == 0 {
			s.summary.Answer = c.Message.Content
		}
	}
}

// refuse is what the agent gets to read of an error of the LLM.
func (s *Session) refuse(err error) *apiError {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case errors.Is(err, agent.ErrNoRoom):
		s.summary.Truncated = true
		e := invalid("messages", "the conversation leaves the model no room for a completion")
		e.Code, e.NoRetry = "context_length_exceeded", true
		return e
	case errors.Is(err, agent.ErrExhausted):
		s.summary.Truncated = true
		return &apiError{
			Status: http.StatusConflict, Type: invalidRequest, Code: "calls_exhausted", NoRetry: true,
			Message: "the rollout has used up its calls",
		}
	case errors.Is(err, agent.ErrEnded):
		return endedError()
	case errors.Is(err, chat.ErrConversation):
		return invalid("messages", "%s", err)
	case s.ctx.Err() != nil:
		s.summary.Failure = err
		return &apiError{
			Status: http.StatusServiceUnavailable, Type: serverError, Code: "rollout_given_up", NoRetry: true,
			Message: "the rollout was given up while the policy worked",
		}
	}
	s.summary.Failure = err
	s.gateway.options.Log.Warn("an agent's call failed", "rollout", s.id, "cause", err)
	return &apiError{
		Status: http.StatusServiceUnavailable, Type: serverError, Code: "engine_failed",
		Message: "the engine that runs the policy failed",
	}
}

// asAPIError is an error of a dialect as what it is.
func asAPIError(err error) *apiError {
	var fault *apiError
	if errors.As(err, &fault) {
		return fault
	}
	return invalid("", "%s", err)
}
