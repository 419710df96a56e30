//go:build sdks

package conformance

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

// between stands between a program and the gateway, and sees what goes to and fro. It tells the policy when to go on:
//
//	count, late  when a comment has come, so that the client has to skip it
//	slow         when the question is asked for the second time
type between struct {
	server *httptest.Server
	ready  map[string]chan struct{}

	mu    sync.Mutex
	slow  int             // guarded by mu; requests with the slow question
	told  map[string]bool // guarded by mu; questions of which the channel is closed
	other []string        // guarded by mu; hosts that were asked for
}

func newBetween(t *testing.T, address string, ready map[string]chan struct{}) *between {
	b := &between{ready: ready, told: map[string]bool{}}
	forward := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: address})
	forward.FlushInterval = -1
	forward.ErrorHandler = func(http.ResponseWriter, *http.Request, error) {} // the client is gone
	b.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != b.server.Listener.Addr().String() {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.other = append(b.other, r.Host)
			http.Error(w, "there is nothing but the gateway", http.StatusForbidden)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		for _, question := range []string{count, late} {
			if bytes.Contains(body, []byte(question)) {
				w = &watched{ResponseWriter: w, comment: func() { b.tell(question) }}
			}
		}
		if bytes.Contains(body, []byte(slow)) && b.again() {
			b.tell(slow)
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(b.server.Close)
	return b
}

// again counts a request with the slow question, and says whether it is not the first.
func (b *between) again() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.slow++
	return b.slow > 1
}

// tell lets the policy go on with a question.
func (b *between) tell(question string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.told[question] {
		b.told[question] = true
		close(b.ready[question])
	}
}

// redirect is an environment in which the gateway is reached through b.
func (b *between) redirect(environ []string) []string {
	out := slices.Clone(environ)
	for i, entry := range out {
		name, value, _ := strings.Cut(entry, "=")
		if u, err := url.Parse(value); err == nil && u.Scheme == "http" {
			u.Host = b.server.Listener.Addr().String()
			out[i] = name + "=" + u.String()
		}
	}
	return out
}

// environ makes b the way to everything else, and keeps a library from fetching a price list when it is imported.
func (b *between) environ() []string {
	return []string{
		"HTTP_PROXY=" + b.server.URL, "HTTPS_PROXY=" + b.server.URL, "ALL_PROXY=" + b.server.URL, "NO_PROXY=127.0.0.1,localhost",
		"LITELLM_LOCAL_MODEL_COST_MAP=True",
	}
}

// strangers are the hosts that the program asked for besides the gateway.
func (b *between) strangers() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.other
}

// watched calls comment once a comment of an event stream is written.
type watched struct {
	http.ResponseWriter
	comment func()
}

func (w *watched) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	if bytes.HasPrefix(p, []byte(":")) {
		w.comment()
	}
	return n, err
}

// Unwrap lets what is written be flushed.
func (w *watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }
