package api

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// answerTimeout is how long a client waits for the beginning of an answer, patientTimeout for one about environments.
const (
	answerTimeout  = 10 * time.Second
	patientTimeout = environmentTimeout + 10*time.Second
)

// maxAnswerBytes bounds what a client reads of one answer or event.
const maxAnswerBytes = 16 << 20

// Client talks to a running node. It is safe for concurrent use.
type Client struct {
	address string
	token   string
	http    *http.Client
	patient *http.Client // For answers that take longer.
}

// NewClient returns a client of the node whose API listens on address with this token.
func NewClient(address, token string) *Client {
	within := func(d time.Duration) *http.Client {
		return &http.Client{Transport: &http.Transport{Proxy: nil, ResponseHeaderTimeout: d}}
	}
	return &Client{address: address, token: token, http: within(answerTimeout), patient: within(patientTimeout)}
}

// Close frees idle connections.
func (c *Client) Close() {
	c.http.CloseIdleConnections()
	c.patient.CloseIdleConnections()
}

// Status asks for Status.
func (c *Client) Status(ctx context.Context) (Status, error) {
	return get[Status](ctx, c, "/v1/status")
}

// Runs asks for the node's runs, the newest version first.
func (c *Client) Runs(ctx context.Context) ([]Run, error) { return get[[]Run](ctx, c, "/v1/runs") }

// Peers asks for the node's peers.
func (c *Client) Peers(ctx context.Context) ([]Peer, error) { return get[[]Peer](ctx, c, "/v1/peers") }

// Ledger asks for up to limit ledger entries of version from or above.
func (c *Client) Ledger(ctx context.Context, from uint64, limit int) ([]LedgerEntry, error) {
	return get[[]LedgerEntry](ctx, c, fmt.Sprintf("/v1/ledger?from=%d&limit=%d", from, limit))
}

// Block asks for the block of a CID, which the node asks these peers for before others; MaxHints of them at most count.
func (c *Client) Block(ctx context.Context, cid string, from ...string) ([]byte, error) {
	path := "/v1/blocks/" + url.PathEscape(cid)
	if len(from) > 0 {
		path += "?" + url.Values{"from": from[:min(len(from), MaxHints)]}.Encode()
	}
	response, err := c.do(ctx, http.MethodGet, path)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes))
	if err != nil {
		return nil, fmt.Errorf("read the node's answer: %w", err)
	}
	return data, nil
}

// Environments asks for the packages that the node and members keep: all, or those of one CID unless it is empty. With
// everywhere the node looks for others who keep that one even if members say that they do.
func (c *Client) Environments(ctx context.Context, cid string, everywhere bool) ([]Environment, error) {
	path := "/v1/environments"
	query := url.Values{}
	if cid != "" {
		query.Set("cid", cid)
	}
	if everywhere {
		query.Set("everywhere", "")
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return ask[[]Environment](ctx, c, c.patient, http.MethodGet, path, nil)
}

// KeepEnvironment has the node keep a signed package file and serve it to members.
func (c *Client) KeepEnvironment(ctx context.Context, file []byte) (Environment, error) {
	return ask[Environment](ctx, c, c.patient, http.MethodPost, keepPath, bytes.NewReader(file))
}

// DropEnvironment ends that.
func (c *Client) DropEnvironment(ctx context.Context, cid string) error {
	response, err := c.do(ctx, http.MethodDelete, "/v1/environments/"+url.PathEscape(cid))
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// Shutdown asks the node to stop.
func (c *Client) Shutdown(ctx context.Context) error {
	response, err := c.do(ctx, http.MethodPost, "/v1/shutdown")
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// Events calls visit for each event until it returns an error, which Events returns, the stream ends, which is
// io.EOF, or ctx ends.
func (c *Client) Events(ctx context.Context, visit func(Event) error) error {
	response, err := c.do(ctx, http.MethodGet, "/v1/events")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, maxAnswerBytes)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var e Event
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return fmt.Errorf("read the node's events: %w", err)
		}
		if err := visit(e); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read the node's events: %w", err)
	}
	return io.EOF
}

// get asks for JSON.
func get[T any](ctx context.Context, c *Client, path string) (T, error) {
	return ask[T](ctx, c, c.http, http.MethodGet, path, nil)
}

// ask sends a request and reads the JSON of its answer.
func ask[T any](ctx context.Context, c *Client, by *http.Client, method, path string, body io.Reader) (answer T, _ error) {
	response, err := c.send(ctx, by, method, path, body)
	if err != nil {
		return answer, err
	}
	defer response.Body.Close()
	if err := json.NewDecoder(io.LimitReader(response.Body, maxAnswerBytes)).Decode(&answer); err != nil {
		return answer, fmt.Errorf("read the node's answer: %w", err)
	}
	return answer, nil
}

// do sends a request. A refusal is an *Error; otherwise the caller closes the response's body.
func (c *Client) do(ctx context.Context, method, path string) (*http.Response, error) {
	return c.send(ctx, c.http, method, path, nil)
}

// send is do by a client of choice, with a body.
func (c *Client) send(ctx context.Context, by *http.Client, method, path string, body io.Reader) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://"+c.address+path, body)
	if err != nil {
		return nil, fmt.Errorf("ask the node: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	response, err := by.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask the node at %s; is it running? %w", c.address, err)
	}
	if response.StatusCode < 300 {
		return response, nil
	}
	defer response.Body.Close()
	refusal := &Error{}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxAnswerBytes)).Decode(refusal); err != nil || refusal.Code == "" {
		return nil, errors.New("the node answered " + response.Status)
	}
	return nil, refusal
}
