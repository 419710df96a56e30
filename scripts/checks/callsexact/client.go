package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/lightswarm/lightswarm/rollout/gateway"
)

// client is an agent's way to the gateway.
type client struct {
	session *gateway.Session
	address string
	usual   http.Client
	slow    http.Client // sends a few bytes at a time
}

func newClient(g *gateway.Gateway, s *gateway.Session, random *rand.Rand) *client {
	c := &client{session: s, address: g.Address()}
	abrupt, reuse := random.IntN(4) > 0, random.IntN(4) > 0
	transport := func(slow bool) *http.Transport {
		return &http.Transport{
			DisableKeepAlives: !reuse, MaxIdleConnsPerHost: 4,
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
				if err != nil {
					return nil, err
				}
				if tcp, ok := conn.(*net.TCPConn); ok && abrupt {
					if err := tcp.SetLinger(0); err != nil { // closing it is a reset, as when a process is killed
						return nil, err
					}
				}
				if slow {
					return pieces{conn}, nil
				}
				return conn, nil
			},
		}
	}
	c.usual.Transport, c.slow.Transport = transport(false), transport(true)
	return c
}

func (c *client) close() {
	c.usual.CloseIdleConnections()
	c.slow.CloseIdleConnections()
}

// pieces is a connection that is written to a few bytes at a time.
type pieces struct{ net.Conn }

func (p pieces) Write(b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		var m int
		m, err = p.Conn.Write(b[n:min(n+37, len(b))])
		n += m
	}
	return n, err
}

// fault is how a client misbehaves.
type fault struct {
	slow bool
	// half cuts the connection in the middle of the body, read after so many bytes of an answer unless it is 0.
	half bool
	read int
}

// errCut is the end that a client makes of its own connection.
var errCut = errors.New("the client cut the connection")

// half is a body that ends in the middle.
type half struct{ io.Reader }

func (h half) Read(b []byte) (int, error) {
	n, err := h.Reader.Read(b)
	if err == io.EOF {
		err = errCut
	}
	return n, err
}

// send makes one request, the tries-th after the first. Either there is an answer, or the code of an error, or an error,
// which is errCut if the client, or whoever ended ctx, cut the connection.
func (c *client) send(ctx context.Context, q *query, tries int, f fault) (a answer, refused string, err error) {
	ctx, cut := context.WithCancel(ctx)
	defer cut()
	url := c.session.BaseURL() + "/" + q.dialect.endpoint()
	if tries%2 == 1 {
		url = "http://" + c.address + "/v1/" + q.dialect.endpoint()
	}
	var body io.Reader = bytes.NewReader(q.body)
	if f.half {
		body = half{io.LimitReader(body, int64(len(q.body)/2))}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
	if err != nil {
		return a, "", err
	}
	r.ContentLength = int64(len(q.body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Stainless-Retry-Count", strconv.Itoa(tries))
	if q.dialect == messages {
		r.Header.Set("X-Api-Key", c.session.Key())
	} else {
		r.Header.Set("Authorization", "Bearer "+c.session.Key())
	}
	by := &c.usual
	if f.slow {
		by = &c.slow
	}
	reply, err := by.Do(r)
	var content []byte
	if err == nil {
		defer reply.Body.Close()
		if f.read > 0 {
			if _, err = io.CopyN(io.Discard, reply.Body, int64(f.read)); err == nil || errors.Is(err, io.EOF) {
				err = errCut // also if it is not as long
			}
			return a, "", cutOr(ctx, f, err)
		}
		content, err = io.ReadAll(reply.Body)
	}
	if err != nil {
		return a, "", cutOr(ctx, f, err)
	}
	if reply.StatusCode != http.StatusOK {
		final := reply.Header.Get("X-Should-Retry") == "false"
		refused, err = refusal(reply.StatusCode, final, content)
		return a, refused, err
	}
	a, err = q.read(content)
	if errors.Is(err, errCutShort) {
		for line := range bytes.SplitSeq(content, []byte("\n")) {
			if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok && bytes.Contains(data, []byte(`"error":{`)) {
				refused, err = refusal(0, false, data)
				return a, refused, err
			}
		}
	}
	if err != nil {
		return a, "", fmt.Errorf("%s: %w: %q", q.dialect, err, content)
	}
	return a, "", nil
}

// cutOr is errCut if a connection's error is the client's own doing, else that error.
func cutOr(ctx context.Context, f fault, err error) error {
	if ctx.Err() != nil || f.half && errors.Is(err, errCut) {
		return errCut
	}
	return err
}

// refusals are the errors that agents are to expect, their status, and whether clients are told not to try again.
var refusals = map[string]struct {
	status int
	final  bool
	words  string // of the message, by which they are known where a dialect has no codes
}{
	"rollout_ended":           {409, true, "has ended"},
	"calls_exhausted":         {409, true, "used up its calls"},
	"context_length_exceeded": {400, true, "no room"},
	"rollout_given_up":        {503, true, "given up"},
	"engine_failed":           {503, false, "engine"},
}

// refusal is the code of an error; status is 0 for one in a stream. One that is not to be expected is an error.
func refusal(status int, final bool, content []byte) (string, error) {
	var e struct {
		Error struct{ Code, Message string }
	}
	if err := json.Unmarshal(content, &e); err != nil || e.Error.Message == "" {
		return "", fmt.Errorf("%d with %q is no error", status, content)
	}
	for code, want := range refusals {
		if code != e.Error.Code && (e.Error.Code != "" || !strings.Contains(e.Error.Message, want.words)) {
			continue
		}
		if status != 0 && (status != want.status || final != want.final) {
			return "", fmt.Errorf("%s comes with %d, and that it is final: %v", code, status, final)
		}
		return code, nil
	}
	return "", fmt.Errorf("an agent got %d %s", status, content)
}

// shortly waits a random moment.
func shortly(ctx context.Context, random *rand.Rand, most time.Duration) {
	pause(ctx, time.Duration(random.Int64N(int64(most))))
}
