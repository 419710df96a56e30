package openenv

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/protocol"
	"github.com/lightswarm/lightswarm/wire"
)

const (
	// dialTime is how long a connection may take to be made. Tries to begin are firstPause to lastPause apart.
	dialTime   = 10 * time.Second
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
)

// Address is a server's WebSocket for what people call its address: ws://HOST:PORT/ws, or http://HOST:PORT as OpenEnv's
// clients take it. wss and https are for servers with a certificate.
func Address(server string) (string, error) {
	u, err := url.Parse(server)
	if err != nil || u.Host == "" || u.Opaque != "" || u.Fragment != "" {
		return "", fmt.Errorf("%q is no server's address; use for example http://127.0.0.1:8000", server)
	}
	switch u.Scheme {
	case "http", "ws":
		u.Scheme = "ws"
	case "https", "wss":
		u.Scheme = "wss"
	default:
		return "", fmt.Errorf("%q is no server's address; use http, https, ws or wss, for example http://127.0.0.1:8000", server)
	}
	if u.Path = strings.TrimRight(u.Path, "/"); !strings.HasSuffix(u.Path, "/ws") {
		u.Path += "/ws"
	}
	return u.String(), nil
}

// server is the address of an environment's server.
func (d *Driver) server(p *env.Package, s *Spec) (string, error) {
	name := p.Manifest().Name
	for _, key := range []string{p.CID().String(), name} {
		if server := d.options.Servers[key]; server != "" {
			return Address(server)
		}
	}
	if d.options.Server != "" {
		return Address(d.options.Server)
	}
	return "", fmt.Errorf("nothing says where its server is. Start %s, and name it: `lightswarm env` with --server http://HOST:PORT, nodes with rollout.environments.openenv = [\"%s=http://HOST:PORT\"]", protocol.Harmless(s.Server), name)
}

// begin connects and sends a first message. While there is no connection, or the server has no place for it, it tries again
// until the patience is over; while there is no connection only if that is wanted.
func (e *Environment) begin(ctx context.Context, first message, dialAgain bool) (*session, reply, error) {
	patience := time.NewTimer(e.patience)
	defer patience.Stop()
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		s, r, err := e.tryBegin(ctx, first)
		var full *busy
		var unreachable *dialError
		switch {
		case err == nil:
			return s, r, nil
		case errors.As(err, &full):
			err = &protocol.Failure{Reason: protocol.ReasonServer, Detail: fmt.Sprintf(
				"%v; there was no place for %v: raise the server's max_concurrent_envs, or have nobody else use it", err, e.patience)}
		case errors.As(err, &unreachable):
			err = &protocol.Failure{Reason: protocol.ReasonServer, Detail: err.Error()}
			if !dialAgain {
				return nil, reply{}, err
			}
		default:
			return nil, reply{}, err
		}
		next := time.NewTimer(pause)
		select {
		case <-next.C:
			continue
		case <-patience.C:
		case <-e.closing:
			err = env.ErrClosed
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		next.Stop()
		return nil, reply{}, err
	}
}

func (e *Environment) tryBegin(ctx context.Context, first message) (*session, reply, error) {
	ws, err := e.dial(ctx)
	if err != nil {
		return nil, reply{}, err
	}
	s := newSession(ws, timeOf(e.m), e.took)
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		ws.CloseNow() //nolint:errcheck // nothing is left to lose
		return nil, reply{}, env.ErrClosed
	}
	e.sessions.Go(func() { s.run(e.closing) })
	e.mu.Unlock()
	r, err := s.ask(ctx, first)
	if err != nil {
		return nil, reply{}, err
	}
	return s, r, nil
}

// dialError says that there is no connection.
type dialError struct {
	address, server string
	err             error
}

func (d *dialError) Error() string {
	address := d.address
	if u, err := url.Parse(address); err == nil {
		address = u.Redacted()
	}
	return fmt.Sprintf("no OpenEnv server answers at %s (%s): start it, it is %s, or correct its address", address, plain(d.err), protocol.Harmless(d.server))
}

func (d *dialError) Unwrap() error { return d.err }

func (e *Environment) dial(ctx context.Context) (*websocket.Conn, error) {
	timed, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	ws, _, err := websocket.Dial(timed, e.address, &websocket.DialOptions{HTTPClient: e.client}) //nolint:bodyclose // the library closes it
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, &dialError{e.address, e.spec.Server, err}
	}
	return ws, nil
}

// timeOf is how long a reply may take.
func timeOf(m wire.EnvironmentManifest) time.Duration {
	return time.Duration(m.Limits.Steps) * time.Millisecond
}
