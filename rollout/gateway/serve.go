package gateway

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// dialects are the APIs, by their endpoint.
var dialects = map[string]dialect{
	"chat/completions": chatCompletions{},
	"completions":      completions{},
	"responses":        responses{},
	"messages":         messages{},
}

// retryHeader is how the clients of OpenAI and Anthropic say which try of a request this is, counted from 0.
const retryHeader = "X-Stainless-Retry-Count"

// ServeHTTP implements http.Handler.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		sendFault(w, errorBody, &apiError{
			Status: http.StatusServiceUnavailable, Type: serverError, Code: "shutting_down", Message: errClosing.Error(), NoRetry: true,
		})
		return
	}
	g.handling.Add(1)
	g.mu.Unlock()
	defer g.handling.Done()
	if http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout)) != nil {
		return // the connection is gone
	}
	at, ok := parseRoute(r.URL.Path)
	form, err := errorBody, notFound(r)
	if d := dialects[at.Endpoint]; d != nil {
		form = d.fault
	}
	if ok && signals[at.Endpoint] {
		g.serveSignal(w, r, at)
		return
	}
	if ok {
		err = g.serve(w, r, at)
	}
	if err != nil {
		// There are clients that write their whole body before they read, and take a connection that is closed meanwhile
		// for a failure to try again after.
		if _, broken := io.Copy(io.Discard, io.LimitReader(r.Body, 4*g.options.MaxBody)); broken != nil {
			g.options.Log.Debug("a refused request's body cannot be read", "cause", broken)
		}
		sendFault(w, form, err)
	}
}

// serve answers one request, or says why it cannot. After an error nothing is written yet.
func (g *Gateway) serve(w http.ResponseWriter, r *http.Request, at route) *apiError {
	d := dialects[at.Endpoint]
	model, isModel := strings.CutPrefix(at.Endpoint, "models/")
	method := http.MethodPost
	switch {
	case at.Endpoint == "models" || isModel:
		method = http.MethodGet
	case d == nil && at.Endpoint != "reward" && at.Endpoint != eventsEndpoint:
		return notFound(r)
	}
	if r.Method != method {
		w.Header().Set("Allow", method)
		return &apiError{
			Status: http.StatusMethodNotAllowed, Type: invalidRequest, Code: "method_not_allowed", NoRetry: true,
			Message: "/v1/" + at.Endpoint + " wants " + method,
		}
	}
	s, err := g.bind(r, at)
	if err != nil {
		return err
	}
	if err := s.admit(); err != nil {
		return err
	}
	defer s.leave()
	if method == http.MethodGet {
		return s.serveModels(w, model, isModel)
	}
	body, err := g.readBody(w, r)
	switch {
	case err != nil:
		return err
	case at.Endpoint == eventsEndpoint:
		return s.serveEvent(w, body)
	case d == nil:
		return s.serveReward(w, body)
	}
	return s.serveCall(w, r, at, d, body)
}

// serveCall answers a call in its dialect.
func (s *Session) serveCall(w http.ResponseWriter, r *http.Request, at route, d dialect, body []byte) *apiError {
	q, err := d.decode(body)
	if err != nil {
		return asAPIError(err)
	}
	var fault *apiError
	q.Unnamed = orElse(at.Agent, orElse(r.Header.Get(agentHeader), q.Agent)) == ""
	if q.Agent, fault = s.role(r, at, q.Agent); fault != nil {
		return fault
	}
	tries, _ := strconv.Atoi(r.Header.Get(retryHeader))
	x, fault := s.join(newBodyKey(at.Endpoint, q.Agent, body), tries > 0, q)
	if fault != nil {
		return fault
	}
	if q.Stream {
		return s.stream(w, r, d, q, x)
	}
	select {
	case <-x.done:
	case <-r.Context().Done():
	}
	switch {
	case s.left(r, x):
		return nil
	case x.fault != nil:
		return x.fault
	}
	content, err := d.encode(q, x.answer)
	if err != nil {
		return s.gateway.unencodable(err)
	}
	if !send(w, http.StatusOK, content) {
		s.lose(x)
	}
	return nil
}

// unencodable is the answer when a dialect cannot say an answer.
func (g *Gateway) unencodable(err error) *apiError {
	g.options.Log.Error("an answer cannot be encoded", "cause", err)
	return &apiError{Status: http.StatusInternalServerError, Type: serverError, Code: "internal", Message: "the answer cannot be encoded", NoRetry: true}
}

// readBody reads a body within its bound.
func (g *Gateway) readBody(w http.ResponseWriter, r *http.Request) ([]byte, *apiError) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, g.options.MaxBody))
	if err == nil {
		err = http.NewResponseController(w).SetReadDeadline(time.Time{}) // a call may take as long as it takes
	}
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, &apiError{
			Status: http.StatusRequestEntityTooLarge, Type: invalidRequest, Code: "request_too_large", NoRetry: true,
			Message: "the body has more than " + strconv.FormatInt(large.Limit, 10) + " bytes",
		}
	case err != nil:
		return nil, invalid("", "the body cannot be read: %s", err)
	}
	return body, nil
}

// notFound is the answer for what is not there.
func notFound(r *http.Request) *apiError {
	return &apiError{
		Status: http.StatusNotFound, Type: invalidRequest, Code: "not_found", NoRetry: true,
		Message: "there is no " + r.Method + " " + clip(r.URL.Path) + " here",
	}
}

// sendFault writes an error in a dialect's form.
func sendFault(w http.ResponseWriter, form func(*apiError) []byte, e *apiError) {
	if e.NoRetry {
		w.Header().Set("X-Should-Retry", "false")
	} else if e.Status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	send(w, e.Status, form(e))
}

// send writes a whole JSON answer, and says whether the client was there to take it.
func send(w http.ResponseWriter, status int, content []byte) bool {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(content)))
	return write(w, status, content) == nil
}

// write sends a piece of an answer now; status is its status if it is the first, else 0.
func write(w http.ResponseWriter, status int, piece []byte) error {
	control := http.NewResponseController(w)
	if err := control.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	if status != 0 {
		w.WriteHeader(status)
	}
	if _, err := w.Write(piece); err != nil {
		return err
	}
	return control.Flush()
}
