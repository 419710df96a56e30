package gateway

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/lightswarm/lightswarm/rollout/agent"
	"github.com/lightswarm/lightswarm/rollout/telemetry"
)

// signals are the endpoints of OTLP/HTTP. Traces are read; metrics and logs are taken and thrown away, so that exporters
// that send them do not try for ever.
var signals = map[string]bool{"traces": true, "metrics": true, "logs": true}

// witness is what a session knows for joining spans to its calls.
type witness struct {
	trace telemetry.Trace
	// made are the calls that were answered, by number.
	made map[int]madeCall
	over bool // the summary's feedback is made
}

// madeCall is a call that was answered.
type madeCall struct {
	// answer is the id of the answer that it is in, without the dialect's prefix.
	answer string
	// unnamed says that the request named no role.
	unnamed bool
}

// witness notes a call that is part of an answer.
func (s *Session) witness(answer string, call int, unnamed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.telemetry.made == nil {
		s.telemetry.made = map[int]madeCall{}
	}
	s.telemetry.made[call] = madeCall{answer, unnamed}
}

// telemetryEnviron makes the exporters of an agent's process find the session.
func (a Access) telemetryEnviron() []string {
	return []string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=" + a.url(),
		"OTEL_EXPORTER_OTLP_HEADERS=x-api-key=" + a.key,
		"TRACELOOP_BASE_URL=" + a.url(),
	}
}

// serveSignal answers an export in OTLP's own form. What comes after the rollout's end is taken and thrown away: it is no
// fault of the agent's, whose exporter may send its last spans late, and there is nobody to read about it.
func (g *Gateway) serveSignal(w http.ResponseWriter, r *http.Request, at route) {
	form, _ := telemetry.FormOf(r.Header.Get("Content-Type"))
	status := http.StatusOK
	var body []byte
	rejected, err := g.takeSignal(w, r, at)
	var fault *telemetry.Fault
	switch {
	case errors.As(err, &fault):
		status, body = fault.Status, fault.Body(form)
	case rejected > 0:
		body = telemetry.Accepted(form, rejected, fmt.Sprintf("a rollout's trace has at most %d spans, all with ids", telemetry.MaxSpans))
	default:
		body = telemetry.Accepted(form, 0, "")
	}
	switch status {
	case http.StatusMethodNotAllowed:
		w.Header().Set("Allow", http.MethodPost)
	case http.StatusTooManyRequests:
		w.Header().Set("Retry-After", "1")
	}
	w.Header().Set("Content-Type", form.ContentType())
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	if err := write(w, status, body); err != nil {
		g.options.Log.Debug("an exporter went away", "cause", err)
	}
}

// takeSignal takes an export, and says how many spans of it were not kept. Errors are *telemetry.Fault.
func (g *Gateway) takeSignal(w http.ResponseWriter, r *http.Request, at route) (rejected int, err error) {
	if r.Method != http.MethodPost {
		return 0, &telemetry.Fault{Status: http.StatusMethodNotAllowed, Message: "/v1/" + at.Endpoint + " wants POST"}
	}
	s, refusal := g.bind(r, at)
	if refusal == nil {
		refusal = s.admit()
		if refusal == nil {
			defer s.leave()
		}
	}
	late := refusal != nil && refusal.Code == endedError().Code
	if refusal != nil && !late {
		return 0, &telemetry.Fault{Status: refusal.Status, Message: refusal.Message}
	}
	body, refusal := g.readBody(w, r) // in any case: an exporter reads the answer once all is sent
	switch {
	case refusal != nil:
		return 0, &telemetry.Fault{Status: refusal.Status, Message: refusal.Message}
	case late || at.Endpoint != "traces":
		return 0, nil
	}
	spans, broken, err := g.decode(r, body)
	if err != nil {
		return 0, err
	}
	return broken + s.Observe(spans), nil
}

// decode reads an export. Only one is read at a time, which bounds the memory that decompressing them takes.
func (g *Gateway) decode(r *http.Request, body []byte) (spans []telemetry.Span, broken int, err error) {
	g.decoding.Lock()
	defer g.decoding.Unlock()
	return telemetry.Decode(r.Header.Get("Content-Type"), r.Header.Get("Content-Encoding"), body)
}

// Observe keeps spans of the rollout, and says how many there was no room for. What comes after the end is dropped.
func (s *Session) Observe(spans []telemetry.Span) (rejected int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.telemetry.over {
		return 0 // it ended meanwhile
	}
	return s.telemetry.trace.Add(spans)
}

// conclude makes the summary's feedback, once. The session's mutex is held.
func (s *Session) conclude() {
	if s.telemetry.over {
		return
	}
	s.telemetry.over = true
	reading := s.telemetry.trace.Read(telemetry.Calls{Response: s.callOfAnswer, ToolCall: s.callOfTool}, s.agents)
	s.telemetry.trace = telemetry.Trace{}
	f := &agent.Feedback{Calls: map[int]agent.CallFeedback{}}
	for number, made := range s.telemetry.made {
		if first, ok := s.callOfAnswer(made.answer); ok && made.unnamed && reading.Agents[first] != "" {
			f.Calls[number] = agent.CallFeedback{Agent: reading.Agents[first]}
		}
	}
	for number, reward := range reading.Rewards {
		call := f.Calls[number]
		call.Reward = &reward
		f.Calls[number] = call
	}
	for _, t := range reading.Tools {
		f.Tools = append(f.Tools, agent.ToolOutcome{Call: t.Call, Tool: t.Tool, Failed: t.Failed})
	}
	switch {
	case s.summary.Reward != nil:
		f.Reward, f.Components = &s.summary.Reward.Value, s.summary.Reward.Components
	case reading.Final != nil:
		f.Reward, f.Components = &reading.Final.Value, reading.Final.Components
	}
	if reading.Lost > 0 {
		s.gateway.options.Log.Debug("telemetry speaks of what was not recorded", "rollout", s.id, "times", reading.Lost)
	}
	if len(f.Calls) == 0 {
		f.Calls = nil
	}
	if f.Calls != nil || f.Tools != nil || f.Reward != nil {
		s.summary.Feedback = f
	}
}

// callOfAnswer is the first call of the answer with this id, whatever the dialect put before it.
func (s *Session) callOfAnswer(id string) (call int, ok bool) {
	_, number, ok := strings.Cut(id, s.id+"-")
	if !ok {
		return 0, false
	}
	return s.callNumbered(number)
}

// callOfTool is the call that a tool call with this id is part of; see visible.
func (s *Session) callOfTool(id string) (call int, ok bool) {
	number, ok := strings.CutPrefix(id, "call_")
	if !ok {
		return 0, false
	}
	number, _, _ = strings.Cut(number, "_")
	return s.callNumbered(number)
}

func (s *Session) callNumbered(number string) (call int, ok bool) {
	call, err := strconv.Atoi(number)
	if err != nil {
		return 0, false
	}
	_, ok = s.telemetry.made[call]
	return call, ok
}
