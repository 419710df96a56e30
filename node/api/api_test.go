package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a Node of fixed answers.
type fake struct {
	status   Status
	ledger   func(from uint64, limit int) ([]LedgerEntry, error)
	events   Broadcaster
	shutdown chan struct{}
	kept     atomic.Bool // A slow package was.
}

func (f *fake) Status() Status                                { return f.status }
func (f *fake) Runs() []Run                                   { return nil }
func (f *fake) Peers() []Peer                                 { return []Peer{{ID: "a"}} }
func (f *fake) Subscribe(n int) (<-chan Event, func())        { return f.events.Subscribe(n) }
func (f *fake) Shutdown()                                     { close(f.shutdown) }
func (f *fake) Ledger(v uint64, n int) ([]LedgerEntry, error) { return f.ledger(v, n) }
func (f *fake) Block(ctx context.Context, cid string, from []string) ([]byte, error) {
	switch cid {
	case "bafkreione":
		return []byte{0, 1, 2}, nil
	case "bafkreifrom":
		return []byte(strings.Join(from, " ")), nil
	case "bafkreislow":
		return nil, fmt.Errorf("fetch: %w", context.DeadlineExceeded)
	}
	return nil, errors.New("nobody has " + cid)
}

func (f *fake) Environments(_ context.Context, cid string, everywhere bool) ([]Environment, error) {
	if cid == "damaged" {
		return nil, errors.New("secret path")
	}
	return []Environment{{CID: cid, Holders: []string{}}}, nil
}

func (f *fake) KeepEnvironment(_ context.Context, file []byte) (Environment, error) {
	if string(file) == "slow" {
		<-f.shutdown
		f.kept.Store(true)
	}
	if string(file) == "bad" {
		return Environment{}, fmt.Errorf("keep: %w", &Error{Code: "bad_request", Message: "this is no package"})
	}
	return Environment{Name: fmt.Sprint(len(file)), Holders: []string{}}, nil
}

func (f *fake) DropEnvironment(cid string) error {
	if cid != "bafkreione" {
		return &Error{Code: "not_found", Message: "this node does not keep it"}
	}
	return nil
}

const token = "0123456789abcdef"

func serve(t *testing.T) (*fake, *Server) {
	t.Helper()
	f := &fake{
		status:   Status{Peer: "me", Head: &Release{Version: 3}, Started: time.Unix(1, 0).UTC()},
		ledger:   func(uint64, int) ([]LedgerEntry, error) { return nil, nil },
		shutdown: make(chan struct{}),
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "lightswarm_test_total"}, func() float64 { return 7 }))
	s, err := Serve("127.0.0.1:0", token, f, registry, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		f.events.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return f, s
}

func client(t *testing.T, s *Server, token string) *Client {
	c := NewClient(s.Address(), token)
	t.Cleanup(c.Close)
	return c
}

func TestAnswers(t *testing.T) {
	f, s := serve(t)
	f.ledger = func(from uint64, limit int) ([]LedgerEntry, error) {
		return []LedgerEntry{{Version: from, Trained: []string{"x"}}, {Version: uint64(limit)}}, nil
	}
	c := client(t, s, token)
	status, err := c.Status(t.Context())
	if diff := cmp.Diff(f.status, status); diff != "" || err != nil {
		t.Error(err, diff)
	}
	if runs, err := c.Runs(t.Context()); runs == nil || len(runs) != 0 || err != nil {
		t.Errorf("runs: %v, %v; want an empty list", runs, err)
	}
	if peers, err := c.Peers(t.Context()); len(peers) != 1 || err != nil {
		t.Errorf("peers: %v, %v", peers, err)
	}
	ledger, err := c.Ledger(t.Context(), 4, 9)
	if err != nil || len(ledger) != 2 || ledger[0].Version != 4 || ledger[1].Version != 9 {
		t.Errorf("ledger: %v, %v", ledger, err)
	}
	if block, err := c.Block(t.Context(), "bafkreione"); !bytes.Equal(block, []byte{0, 1, 2}) || err != nil {
		t.Errorf("block: %v, %v", block, err)
	}
	if err := c.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	<-f.shutdown
}

func TestRefusals(t *testing.T) {
	f, s := serve(t)
	f.ledger = func(uint64, int) ([]LedgerEntry, error) { return nil, errors.New("secret path") }
	for name, c := range map[string]struct {
		method, path, host, authorization string
		status                            int
		code                              string
	}{
		"no token":        {"GET", "/v1/status", "", "", 401, "unauthorized"},
		"wrong token":     {"GET", "/v1/status", "", "Bearer x", 401, "unauthorized"},
		"bare token":      {"GET", "/v1/status", "", token, 401, "unauthorized"},
		"empty token":     {"GET", "/metrics", "", "Bearer ", 401, "unauthorized"},
		"rebound name":    {"GET", "/v1/status", "evil.example", "Bearer " + token, 403, "forbidden_host"},
		"rebound port":    {"GET", "/v1/status", "evil.example:1", "Bearer " + token, 403, "forbidden_host"},
		"other port":      {"GET", "/v1/status", "127.0.0.1:1", "Bearer " + token, 403, "forbidden_host"},
		"unknown path":    {"GET", "/v2/status", "", "Bearer " + token, 404, "not_found"},
		"wrong method":    {"DELETE", "/v1/status", "", "Bearer " + token, 404, "not_found"},
		"bad version":     {"GET", "/v1/ledger?from=-1", "", "Bearer " + token, 400, "bad_request"},
		"too many":        {"GET", "/v1/ledger?limit=1001", "", "Bearer " + token, 400, "bad_request"},
		"none":            {"GET", "/v1/ledger?limit=0", "", "Bearer " + token, 400, "bad_request"},
		"no such block":   {"GET", "/v1/blocks/bafkreitwo", "", "Bearer " + token, 404, "not_found"},
		"broken database": {"GET", "/v1/ledger", "", "Bearer " + token, 500, "internal"},
	} {
		t.Run(name, func(t *testing.T) {
			request, err := http.NewRequestWithContext(t.Context(), c.method, "http://"+s.Address()+c.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			if c.host != "" {
				request.Host = c.host
			}
			request.Header.Set("Authorization", c.authorization)
			response, err := http.DefaultTransport.RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			body, err := io.ReadAll(response.Body)
			if err != nil {
				t.Fatal(err)
			}
			var refusal Error
			if err := json.Unmarshal(body, &refusal); err != nil || response.StatusCode != c.status || refusal.Code != c.code {
				t.Errorf("got %d %s", response.StatusCode, body)
			}
			if strings.Contains(string(body), "secret") {
				t.Errorf("internal details in %s", body)
			}
		})
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

func TestRefusalsReachClients(t *testing.T) {
	_, s := serve(t)
	_, err := client(t, s, "wrong").Status(t.Context())
	var refusal *Error
	if !errors.As(err, &refusal) || refusal.Code != "unauthorized" {
		t.Errorf("status with a wrong token: %v", err)
	}
}

func TestOnlyLoopback(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", "[::]:0"} {
		if s, err := Serve(address, token, &fake{}, prometheus.NewRegistry(), slog.New(slog.DiscardHandler)); err == nil {
			s.Close()
			t.Errorf("serves on %s", address)
		}
	}
}

func TestMetrics(t *testing.T) {
	_, s := serve(t)
	response, err := client(t, s, token).do(t.Context(), http.MethodGet, "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || !strings.Contains(string(body), "lightswarm_test_total 7") {
		t.Errorf("metrics: %s, %v", body, err)
	}
}

// subscribed waits until the node has n subscribers.
func subscribed(f *fake, n int) {
	for {
		f.events.mu.Lock()
		got := len(f.events.subscribers)
		f.events.mu.Unlock()
		if got == n {
			return
		}
		runtime.Gosched()
	}
}

func TestEventsStream(t *testing.T) {
	f, s := serve(t)
	c := client(t, s, token)
	go func() {
		subscribed(f, 1)
		f.events.Publish(Event{Type: EventPhase, Phase: &PhaseEvent{Phase: "one\ndata: two"}})
		f.events.Publish(Event{Type: EventRelease, Release: &Release{Version: 9}})
		f.events.Close()
	}()
	var got []Event
	err := c.Events(t.Context(), func(e Event) error {
		got = append(got, e)
		return nil
	})
	if !errors.Is(err, io.EOF) {
		t.Errorf("stream ended with %v", err)
	}
	if len(got) != 2 || got[0].ID != 0 || got[0].Phase.Phase != "one\ndata: two" || got[1].ID != 1 || got[1].Release.Version != 9 {
		t.Errorf("got %+v", got)
	}
}

func TestStreamsAreBoundedAndEndWithTheirReaders(t *testing.T) {
	f, s := serve(t)
	c := client(t, s, token)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, maxStreams)
	for range maxStreams {
		go func() { ended <- c.Events(ctx, func(Event) error { return nil }) }()
	}
	subscribed(f, maxStreams)
	err := c.Events(t.Context(), func(Event) error { return nil })
	var refusal *Error
	if !errors.As(err, &refusal) || refusal.Code != "busy" {
		t.Errorf("one stream too many: %v", err)
	}
	cancel()
	for range maxStreams {
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("a cancelled stream ended with %v", err)
		}
	}
	subscribed(f, 0)
}

func TestSlowSubscribersSeeAGap(t *testing.T) {
	var b Broadcaster
	events, end := b.Subscribe(2)
	for range 4 {
		b.Publish(Event{Type: EventPhase})
	}
	<-events
	b.Publish(Event{Type: EventPhase})
	end()
	end()
	var ids []uint64
	for e := range events {
		ids = append(ids, e.ID)
	}
	if diff := cmp.Diff([]uint64{1, 4}, ids); diff != "" {
		t.Error(diff)
	}
	b.Close()
	b.Publish(Event{})
	if events, _ := b.Subscribe(1); len(events) != 0 {
		t.Error("a closed broadcaster has events")
	} else if _, open := <-events; open {
		t.Error("a closed broadcaster takes subscribers")
	}
}

func TestEnvironments(t *testing.T) {
	_, s := serve(t)
	c := client(t, s, token)
	refused := func(err error, code, says string) {
		t.Helper()
		var refusal *Error
		if !errors.As(err, &refusal) || refusal.Code != code || !strings.Contains(refusal.Message, says) {
			t.Errorf("%v, want %s: %s", err, code, says)
		}
	}
	for _, cid := range []string{"", "bafkreione"} {
		if list, err := c.Environments(t.Context(), cid, false); err != nil || len(list) != 1 || list[0].CID != cid {
			t.Errorf("%v, %v", list, err)
		}
	}
	_, err := c.Environments(t.Context(), "damaged", true)
	refused(err, "internal", "see the node's log")

	large := make([]byte, 2<<20) // more than the body of any other request
	if kept, err := c.KeepEnvironment(t.Context(), large); err != nil || kept.Name != fmt.Sprint(len(large)) {
		t.Errorf("%v, %v", kept, err)
	}
	_, err = c.KeepEnvironment(t.Context(), []byte("bad"))
	refused(err, "bad_request", "this is no package")
	// Whoever sends too much may find the connection closed before it can read why.
	if _, err := c.KeepEnvironment(t.Context(), make([]byte, MaxPackageBytes+1)); err == nil {
		t.Error("a package above the limit was kept")
	}
	s.keeping <- struct{}{}
	_, err = c.KeepEnvironment(t.Context(), []byte("good"))
	refused(err, "busy", "try again")
	<-s.keeping

	if err := c.DropEnvironment(t.Context(), "bafkreione"); err != nil {
		t.Error(err)
	}
	refused(c.DropEnvironment(t.Context(), "bafkreitwo"), "not_found", "does not keep it")

	if got, err := c.Block(t.Context(), "bafkreifrom", "a", "b"); err != nil || string(got) != "a b" {
		t.Errorf("%q, %v", got, err)
	}
	_, err = c.Block(t.Context(), "bafkreislow")
	refused(err, "timeout", "fetch")
}

// A package that is being kept as the server closes is kept before Close returns: the node closes its store then.
func TestCloseWaitsForRequests(t *testing.T) {
	f, s := serve(t)
	c := client(t, s, token)
	go func() {
		// It fails once Close has lost patience and broken the connection.
		if _, err := c.KeepEnvironment(t.Context(), []byte("slow")); err == nil {
			t.Error("there was an answer")
		}
		close(f.shutdown)
	}()
	for len(s.keeping) == 0 {
		runtime.Gosched()
	}
	if err := s.Close(); err == nil {
		t.Error("no error for a request that was broken off")
	}
	if !f.kept.Load() {
		t.Error("Close did not wait")
	}
}
