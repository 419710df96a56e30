package lightning

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/lightswarm/lightswarm/rollout/telemetry"
)

const (
	// headerTimeout is how long a runner may take for a request's header, bodyTimeout for its body, and writeTimeout to take
	// the answer.
	headerTimeout = 10 * time.Second
	bodyTimeout   = time.Minute
	writeTimeout  = 30 * time.Second
	// idleTimeout closes a connection that nothing is asked on.
	idleTimeout = 2 * time.Minute
	// maxHeader bounds a request's header, maxSmall the body of one that has no spans, and maxSpans that of the others, in
	// bytes.
	maxHeader = 64 << 10
	maxSmall  = 1 << 20
	maxSpans  = 8 << 20
	// pollPatience is how long a runner that asks for work waits for it, which is less than its client does (30 seconds).
	// It then sleeps for 5 seconds before it asks again.
	pollPatience = 10 * time.Second
)

// prefix is where Agent Lightning's store is.
const prefix = "/v1/agl"

// fault is an answer that is an error. Clients try 4xx no second time, but for 408.
type fault struct {
	status  int
	message string
}

func (f *fault) Error() string { return f.message }

// endpoint answers a request: with a value that becomes JSON, or an error, which is a *fault.
type endpoint func(r *http.Request, body []byte) (status int, value any, err error)

// handler has all routes.
func (a *Agent) handler() http.Handler {
	routes := http.NewServeMux()
	for pattern, e := range map[string]endpoint{
		"GET /health":                             a.health,
		"POST /queues/rollouts/dequeue":           a.dequeue,
		"GET /resources/latest":                   a.latestResources,
		"GET /resources/{resources}":              a.resources,
		"GET /rollouts/{rollout}":                 a.rollout,
		"GET /rollouts/{rollout}/attempts":        a.attempts,
		"GET /rollouts/{rollout}/attempts/latest": a.latestAttempt,
		"POST /rollouts/{rollout}/attempts/{id}":  a.updateAttempt,
		"POST /spans":                             a.addSpan,
		"POST /spans/next":                        a.nextSpan,
		"POST /workers/{worker}":                  a.updateWorker,
	} {
		method, path, _ := strings.Cut(pattern, " ")
		routes.Handle(method+" "+prefix+path, a.serve(e, map[bool]int64{true: maxSpans, false: maxSmall}[path == "/spans"]))
	}
	routes.HandleFunc("POST /v1/traces", a.takeTraces)
	routes.Handle("/", a.serve(func(r *http.Request, _ []byte) (int, any, error) {
		return 0, nil, &fault{http.StatusNotFound, fmt.Sprintf("there is no %s %.200q here: this node draws its own tasks, and serves the runners that play them", r.Method, r.URL.Path)}
	}, maxSmall))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout)) != nil {
			return // the connection is gone
		}
		if !a.knows(r) {
			w.Header().Set("WWW-Authenticate", `Basic realm="lightning"`)
			a.refuse(w, r, &fault{http.StatusUnauthorized, "the key is missing or wrong: connect to http://" + User + ":KEY@" + a.address})
			return
		}
		routes.ServeHTTP(w, r)
	})
}

// knows says whether a request has the key: as a password, as clients send it, or in a header, as exporters do.
func (a *Agent) knows(r *http.Request) bool {
	_, key, ok := r.BasicAuth()
	if !ok {
		key = r.Header.Get("X-Api-Key")
	}
	got, want := sha256.Sum256([]byte(key)), sha256.Sum256([]byte(a.options.Key))
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

// serve makes a handler of an endpoint.
func (a *Agent) serve(e endpoint, limit int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := readBody(w, r, limit)
		var status int
		var value any
		if err == nil {
			status, value, err = e(r, body)
		}
		if err != nil {
			a.refuse(w, r, err)
			return
		}
		content, err := json.Marshal(value)
		if err != nil {
			a.options.Log.Error("an answer to a runner cannot be encoded", "cause", err)
			a.refuse(w, r, &fault{http.StatusInternalServerError, "the answer cannot be encoded"})
			return
		}
		a.send(w, status, "application/json", content)
	})
}

// refuse answers with an error. The rest of the body is read first: there are clients that read nothing before.
func (a *Agent) refuse(w http.ResponseWriter, r *http.Request, err error) {
	var f *fault
	var bad *telemetry.Fault
	switch {
	case errors.As(err, &bad):
		f = &fault{bad.Status, bad.Message}
	case !errors.As(err, &f):
		f = &fault{http.StatusInternalServerError, err.Error()}
	}
	if _, broken := io.Copy(io.Discard, io.LimitReader(r.Body, 4*maxSpans)); broken != nil {
		a.options.Log.Debug("a refused request's body cannot be read", "cause", broken)
	}
	content, _ := json.Marshal(map[string]string{"detail": f.message}) // cannot fail
	a.send(w, f.status, "application/json", content)
}

func (a *Agent) send(w http.ResponseWriter, status int, contentType string, content []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(content)))
	err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
	if err == nil {
		w.WriteHeader(status)
		_, err = w.Write(content)
	}
	if err != nil {
		a.options.Log.Debug("a runner went away", "cause", err)
	}
}

// readBody reads a body within its bound.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, &fault{http.StatusRequestEntityTooLarge, fmt.Sprintf("the body has more than %d bytes", limit)}
	case err != nil:
		return nil, &fault{http.StatusBadRequest, "the body cannot be read: " + err.Error()}
	}
	return body, nil
}

// dequeue hands out work, and waits for it a little if there is none.
func (a *Agent) dequeue(r *http.Request, body []byte) (int, any, error) {
	q, err := decodeDequeue(body)
	if err != nil {
		return 0, nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), pollPatience)
	defer cancel()
	for {
		if r.Context().Err() != nil {
			return http.StatusOK, nil, nil // it is gone: what it were given would have to be waited for
		}
		claimed, more := a.claim(q)
		if len(claimed) > 0 || q.Limit <= 0 {
			return http.StatusOK, claimed, nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return http.StatusOK, claimed, nil
		case <-a.ctx.Done():
			return http.StatusOK, claimed, nil
		}
	}
}

// claim takes work for a runner; more is closed when there is more.
func (a *Agent) claim(q dequeueRequest) (claimed []rolloutObject, more <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.met {
		a.met = true
		close(a.connected)
	}
	claimed = []rolloutObject{}
	for _, t := range a.queue.claim(a.now(), q.Worker, q.Limit) {
		claimed = append(claimed, a.object(t))
		a.wake(t.ID)
	}
	return claimed, a.work
}

// wake makes the rollout's Run look at it.
func (a *Agent) wake(id string) {
	if p := a.plays[id]; p != nil {
		select {
		case p.wake <- struct{}{}:
		default:
		}
	}
}

// takeTraces takes an export of OTLP, and answers in its form. Spans of attempts that do not count are dropped.
func (a *Agent) takeTraces(w http.ResponseWriter, r *http.Request) {
	form, _ := telemetry.FormOf(r.Header.Get("Content-Type"))
	spans, broken, err := a.decodeTraces(w, r)
	var f *telemetry.Fault
	var small *fault
	switch {
	case errors.As(err, &f):
		a.send(w, f.Status, form.ContentType(), f.Body(form))
		return
	case errors.As(err, &small):
		a.send(w, small.status, form.ContentType(), (&telemetry.Fault{Status: small.status, Message: small.message}).Body(form))
		return
	}
	rejected := broken
	for i := range spans {
		rejected += a.observe(spans[i : i+1])
	}
	a.send(w, http.StatusOK, form.ContentType(), telemetry.Accepted(form, rejected, "an attempt's trace has a bounded number of spans, all with ids"))
}

// decodeTraces reads an export. Only one is decoded at a time, which bounds the memory that it takes.
func (a *Agent) decodeTraces(w http.ResponseWriter, r *http.Request) ([]telemetry.Span, int, error) {
	body, err := readBody(w, r, maxSpans)
	if err != nil {
		return nil, 0, err
	}
	a.decoding.Lock()
	defer a.decoding.Unlock()
	return telemetry.Decode(r.Header.Get("Content-Type"), r.Header.Get("Content-Encoding"), body)
}

// observe gives a span to the session of its attempt, which counts as a sign of life, and says how many found no room.
func (a *Agent) observe(span []telemetry.Span) (rejected int) {
	a.mu.Lock()
	p := a.plays[span[0].Rollout]
	current := p != nil && a.queue.hear(a.now(), span[0].Rollout, span[0].Attempt)
	a.mu.Unlock()
	if !current {
		return 0
	}
	return p.session.Observe(span)
}
