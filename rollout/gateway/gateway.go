package gateway

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// Options are what a gateway is made of. The zero value is ready to use.
type Options struct {
	// Address is where to listen: a loopback address and a port. Empty means any free port of 127.0.0.1.
	Address string
	// MaxBody bounds a request's body, in bytes; 0 means 8 MiB.
	MaxBody int64
	// Keepalive is how often an open stream gets a comment while the policy works; 0 means every 3 seconds.
	Keepalive time.Duration
	// Log gets what goes wrong on the gateway's side; nil discards it.
	Log *slog.Logger
}

const (
	// headerTimeout is how long a client may take for a request's header, bodyTimeout for its body, also for one that is
	// refused, and writeTimeout to take a piece of the answer.
	headerTimeout = 10 * time.Second
	bodyTimeout   = time.Minute
	writeTimeout  = 30 * time.Second
	// idleTimeout closes a connection that nothing is asked on.
	idleTimeout = 2 * time.Minute
	// maxHeader bounds a request's header, in bytes.
	maxHeader = 64 << 10
	// maxEnded is how many sessions are remembered after their end, so that late calls are told so.
	maxEnded = 4096
)

var errClosing = errors.New("the gateway is shutting down")

// Gateway is an endpoint on loopback for the agents of a whole node. It is safe for concurrent use.
type Gateway struct {
	options  Options
	server   *http.Server
	address  string
	now      func() time.Time
	served   chan error // has room for the one result of the server
	handling sync.WaitGroup
	decoding sync.Mutex // held while an export is decoded

	mu      sync.Mutex
	closed  bool                // guarded by mu
	byID    map[string]*Session // guarded by mu; the open ones
	byKey   map[string]*Session // guarded by mu; the open ones
	ended   map[string]bool     // guarded by mu; ids and keys
	endings [][2]string         // guarded by mu; the id and key of each session in ended, oldest first
}

// Serve starts a gateway. The caller closes it.
func Serve(o Options) (*Gateway, error) {
	if o.Address == "" {
		o.Address = "127.0.0.1:0"
	}
	if o.MaxBody <= 0 {
		o.MaxBody = 8 << 20
	}
	if o.Keepalive <= 0 {
		o.Keepalive = 3 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	listener, err := net.Listen("tcp", o.Address)
	if err != nil {
		return nil, fmt.Errorf("listen for agents: %w", err)
	}
	if at, ok := listener.Addr().(*net.TCPAddr); !ok || !at.IP.IsLoopback() {
		listener.Close()
		return nil, fmt.Errorf("listen for agents on %s: it is no loopback address, and whoever reaches the gateway may run up calls", o.Address)
	}
	g := &Gateway{
		options: o,
		address: listener.Addr().String(),
		now:     time.Now,
		served:  make(chan error, 1),
		byID:    map[string]*Session{},
		byKey:   map[string]*Session{},
		ended:   map[string]bool{},
	}
	g.server = &http.Server{
		Handler:           g,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
	}
	go func() { g.served <- g.server.Serve(listener) }()
	return g, nil
}

// Address is where the gateway listens, such as "127.0.0.1:4711".
func (g *Gateway) Address() string { return g.address }

// Reserve makes the access of a session that is opened later, for a process that is started before its rollout. Until then
// requests are answered as those of a session that does not exist.
func (g *Gateway) Reserve() Access { return newAccess(g) }

// Open starts a session: a rollout's way to its policy. Its calls run under ctx: when ctx ends, those in flight fail
// and the session answers no more. The caller ends it.
func (g *Gateway) Open(ctx context.Context, o SessionOptions) (*Session, error) {
	if o.LLM == nil || len(o.Agents) == 0 {
		panic("gateway: incomplete SessionOptions")
	}
	if o.Access == (Access{}) {
		o.Access = g.Reserve()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if o.Access.gateway != g || g.byID[o.Access.id] != nil || g.ended[o.Access.id] {
		panic("gateway: an Access opens one session, of its own gateway")
	}
	s := newSession(ctx, o)
	if g.closed {
		s.cancel(errClosing)
		return nil, errClosing
	}
	g.byID[s.id], g.byKey[s.key] = s, s
	return s, nil
}

// retire moves a session to those that ended.
func (g *Gateway) retire(s *Session) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.byID[s.id] == nil {
		return
	}
	delete(g.byID, s.id)
	delete(g.byKey, s.key)
	g.ended[s.id], g.ended[s.key] = true, true
	if g.endings = append(g.endings, [2]string{s.id, s.key}); len(g.endings) > maxEnded {
		delete(g.ended, g.endings[0][0])
		delete(g.ended, g.endings[0][1])
		g.endings = g.endings[1:]
	}
}

// Close lets no new sessions open, waits for what runs, and frees the gateway. When ctx ends it gives up what still
// runs, and returns the context's error. It is called once.
func (g *Gateway) Close(ctx context.Context) error {
	g.mu.Lock()
	g.closed = true
	var open []*Session
	for _, s := range g.byID {
		open = append(open, s)
	}
	g.mu.Unlock()
	stop := context.AfterFunc(ctx, func() {
		for _, s := range open {
			s.cancel(errClosing)
		}
		g.server.Close()
	})
	err := g.server.Shutdown(ctx)
	for _, s := range open {
		s.End()
	}
	g.handling.Wait()
	if inTime := stop(); !inTime {
		err = context.Cause(ctx)
	}
	if serving := <-g.served; !errors.Is(serving, http.ErrServerClosed) {
		err = errors.Join(err, serving)
	}
	if err != nil {
		return fmt.Errorf("close the gateway for agents: %w", err)
	}
	return nil
}

// randomID is 128 random bits in hexadecimal.
func randomID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
