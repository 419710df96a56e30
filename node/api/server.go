package api

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Node is what the API shows. Its methods are safe for concurrent use and, but for those with a context, answer at once.
// An *Error that they return is the answer.
type Node interface {
	Status() Status
	// Runs has the newest version first.
	Runs() []Run
	// Peers is ordered by id.
	Peers() []Peer
	// Ledger returns up to limit entries of version from or above, ascending.
	Ledger(from uint64, limit int) ([]LedgerEntry, error)
	// Block returns the block of a CID, which other members may have to send first. Those of from, as peer ids, are asked
	// before others.
	Block(ctx context.Context, cid string, from []string) ([]byte, error)
	// Environments lists the packages that this node and members keep: all, or those of one CID unless it is empty. It
	// asks members and, for one CID that none of them keeps or if everywhere is set, whom else it can find.
	Environments(ctx context.Context, cid string, everywhere bool) ([]Environment, error)
	// KeepEnvironment keeps a package and serves it to members. The file is not changed, and not kept after the call.
	KeepEnvironment(ctx context.Context, file []byte) (Environment, error)
	// DropEnvironment ends that.
	DropEnvironment(cid string) error
	// Subscribe returns the node's events from now on and a function that ends the subscription.
	Subscribe(buffer int) (<-chan Event, func())
	// Shutdown asks the node to stop and does not wait for it.
	Shutdown()
}

// Limits of the server.
const (
	maxHeaderBytes  = 16 << 10
	maxBodyBytes    = 4 << 10
	maxStreams      = 16
	maxLedger       = 1000
	defaultLedger   = 100
	streamBuffer    = 256
	readTimeout     = 10 * time.Second
	writeTimeout    = 30 * time.Second
	idleTimeout     = time.Minute
	blockTimeout    = 8 * time.Second // less than a client waits
	shutdownTimeout = 3 * time.Second
	// keepAlive is how often a silent event stream shows that it is alive.
	keepAlive = 15 * time.Second
	// environmentTimeout is how long members may take to say what they keep, and a package to be sent and kept; clients
	// wait longer.
	environmentTimeout = 45 * time.Second
)

// MaxHints is how many peers a request for a block may name.
const MaxHints = 16

// MaxPackageBytes bounds a package file that a client sends.
const MaxPackageBytes = 65 << 20

// Server is the running API.
type Server struct {
	node    Node
	token   [sha256.Size]byte
	port    string
	streams chan struct{}
	keeping chan struct{} // Holds an element while a package is being kept: each takes memory.
	http    *http.Server
	log     *slog.Logger
	address string
	done    chan struct{}
	stop    context.CancelFunc

	mu       sync.Mutex
	closed   bool           // guarded by mu
	handling sync.WaitGroup // Requests; Add only under mu while not closed.
}

// Serve starts the API on a loopback address, host:port, and returns at once. The caller closes the server.
func Serve(address, token string, node Node, metrics prometheus.Gatherer, log *slog.Logger) (*Server, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("start the local API on %s; choose another api.address: %w", address, err)
	}
	bound := listener.Addr().(*net.TCPAddr)
	if !bound.IP.IsLoopback() {
		return nil, errors.Join(fmt.Errorf("start the local API: %s is not a loopback address", bound), listener.Close())
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &Server{
		node:    node,
		token:   sha256.Sum256([]byte(token)),
		port:    strconv.Itoa(bound.Port),
		streams: make(chan struct{}, maxStreams),
		keeping: make(chan struct{}, 1),
		log:     log,
		address: bound.String(),
		done:    make(chan struct{}),
		stop:    stop,
	}
	s.http = &http.Server{
		Handler:           s.handler(metrics),
		ReadHeaderTimeout: readTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	go func() {
		defer close(s.done)
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("the local API stopped", "error", err)
		}
	}()
	return s, nil
}

// Address is where the server listens, as host:port.
func (s *Server) Address() string { return s.address }

// Close ends event streams, lets other requests end within a few seconds, and waits for the server and for whatever still
// handles a request: after it nothing calls the node any more.
func (s *Server) Close() error {
	s.stop()
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, s.http.Close())
	}
	<-s.done
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.handling.Wait()
	if err != nil {
		return fmt.Errorf("stop the local API: %w", err)
	}
	return nil
}

// handler routes requests that passed the guard.
func (s *Server) handler(metrics prometheus.Gatherer) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, _ *http.Request) { s.answer(w, http.StatusOK, s.node.Status()) })
	mux.HandleFunc("GET /v1/runs", func(w http.ResponseWriter, _ *http.Request) { s.answer(w, http.StatusOK, list(s.node.Runs())) })
	mux.HandleFunc("GET /v1/peers", func(w http.ResponseWriter, _ *http.Request) { s.answer(w, http.StatusOK, list(s.node.Peers())) })
	mux.HandleFunc("GET /v1/ledger", s.ledger)
	mux.HandleFunc("GET /v1/blocks/{cid}", s.block)
	mux.HandleFunc("GET /v1/environments", s.environments)
	mux.HandleFunc("POST "+keepPath, s.keepEnvironment)
	mux.HandleFunc("DELETE /v1/environments/{cid}", s.dropEnvironment)
	mux.HandleFunc("GET /v1/events", s.events)
	mux.HandleFunc("POST /v1/shutdown", func(w http.ResponseWriter, _ *http.Request) {
		s.answer(w, http.StatusAccepted, struct{}{})
		s.node.Shutdown()
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{Timeout: readTimeout, MaxRequestsInFlight: 4}))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.refuse(w, http.StatusNotFound, "not_found", "there is no "+r.Method+" "+r.URL.Path)
	})
	return s.guard(mux)
}

// enter counts a request that Close waits for, which then calls handling.Done; it is false once the server is closed.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.handling.Add(1)
	return true
}

// guard lets through what comes from this machine and knows the token.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.enter() {
			return // Nobody is there to read an answer.
		}
		defer s.handling.Done()
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		if !s.ownHost(r.Host) {
			s.refuse(w, http.StatusForbidden, "forbidden_host", "the Host header must be "+s.address)
			return
		}
		token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		sum := sha256.Sum256([]byte(token))
		if subtle.ConstantTimeCompare(sum[:], s.token[:]) != 1 || !ok {
			w.Header().Set("WWW-Authenticate", `Bearer realm="lightswarm"`)
			s.refuse(w, http.StatusUnauthorized, "unauthorized", "send the token of the data folder's api.token as Authorization: Bearer TOKEN")
			return
		}
		limit := int64(maxBodyBytes)
		if r.Method == http.MethodPost && r.URL.Path == keepPath {
			limit = MaxPackageBytes
		}
		r.Body = http.MaxBytesReader(w, r.Body, limit)
		next.ServeHTTP(w, r)
	})
}

// ownHost says whether a Host header names this server by a loopback name.
func (s *Server) ownHost(host string) bool {
	name, port, err := net.SplitHostPort(host)
	if err != nil || port != s.port {
		return false
	}
	ip := net.ParseIP(name)
	return name == "localhost" || ip != nil && ip.IsLoopback()
}

func (s *Server) ledger(w http.ResponseWriter, r *http.Request) {
	from, fromErr := number(r, "from", 0)
	limit, limitErr := number(r, "limit", defaultLedger)
	if fromErr != nil || limitErr != nil || limit < 1 || limit > maxLedger {
		s.refuse(w, http.StatusBadRequest, "bad_request", fmt.Sprintf("from must be a version and limit 1 to %d", maxLedger))
		return
	}
	entries, err := s.node.Ledger(from, int(limit))
	if err != nil {
		s.log.Error("the local API could not read the ledger", "error", err)
		s.refuse(w, http.StatusInternalServerError, "internal", "the ledger could not be read; see the node's log")
		return
	}
	s.answer(w, http.StatusOK, list(entries))
}

// number reads a query parameter.
func number(r *http.Request, name string, standard uint64) (uint64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return standard, nil
	}
	return strconv.ParseUint(text, 10, 64)
}

// block answers with a block's bytes.
func (s *Server) block(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), blockTimeout)
	defer cancel()
	from := r.URL.Query()["from"]
	if len(from) > MaxHints {
		s.refuse(w, http.StatusBadRequest, "bad_request", fmt.Sprintf("from may name %d peers", MaxHints))
		return
	}
	data, err := s.node.Block(ctx, r.PathValue("cid"), from)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		s.refuse(w, http.StatusGatewayTimeout, "timeout", err.Error())
		return
	case err != nil:
		s.refuse(w, http.StatusNotFound, "not_found", err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	if _, err := w.Write(data); err != nil {
		s.log.Debug("the local API could not answer", "error", err)
	}
}

// events streams until the reader leaves, the node stops or the reader does not keep up with the connection.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		s.refuse(w, http.StatusServiceUnavailable, "busy", fmt.Sprintf("%d event streams are open; close one", maxStreams))
		return
	}
	events, end := s.node.Subscribe(streamBuffer)
	defer end()
	w.Header().Set("Content-Type", "text/event-stream")
	connection := http.NewResponseController(w)
	// send writes and flushes within the write timeout, which starts anew with each event.
	send := func(format string, args ...any) error {
		if err := connection.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, format, args...); err != nil {
			return err
		}
		return connection.Flush()
	}
	alive := time.NewTicker(keepAlive)
	defer alive.Stop()
	err := send(": events of %s\n\n", s.address)
	for err == nil {
		select {
		case e, open := <-events:
			if !open {
				return
			}
			var data []byte
			if data, err = json.Marshal(e); err == nil {
				err = send("id: %d\nevent: %s\ndata: %s\n\n", e.ID, e.Type, data)
			}
		case <-alive.C:
			err = send(": alive\n\n")
		case <-r.Context().Done():
			return
		}
	}
	s.log.Debug("an event stream ended", "error", err)
}

// list makes an empty slice of nil: in JSON a list is never null.
func list[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

func (s *Server) refuse(w http.ResponseWriter, status int, code, message string) {
	s.answer(w, status, &Error{Code: code, Message: message})
}

func (s *Server) answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		s.log.Debug("the local API could not answer", "error", err)
	}
}
