package lightning

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/rollout/agent"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/gateway"
)

// Options are what an Agent is made of. Gateway, Key and Roles are required.
type Options struct {
	// Gateway is what agents reach the policy through. It stays the caller's, and outlives the Agent.
	Gateway *gateway.Gateway
	// Address is where runners connect to: a loopback address and a port. Empty means any free port of 127.0.0.1.
	Address string
	// Key is what runners have to know; see Agent.URL. It has letters and digits alone.
	Key string
	// Roles are the environment's agents (EnvironmentManifest.Agents). Calls that name none are the first one's.
	Roles []string
	// Lease is how long a runner may be silent in a rollout, its calls aside, before it counts as lost; 0 means a minute.
	Lease time.Duration
	// Log gets what goes wrong; nil discards it.
	Log *slog.Logger
}

const (
	// claimLease is how long a runner may take to fetch a rollout's resources, which it does first of all.
	claimLease = 15 * time.Second
	// maxAttempts bounds the attempts of a rollout, of which all but the last made no call.
	maxAttempts = 3
	// closePatience is how long requests may take to end when the Agent closes.
	closePatience = 5 * time.Second
)

var (
	errClosed = errors.New("the agent was closed")
	// errSilent is the end of an attempt whose lease ran out, errUnplayed that of one that had made no call.
	errSilent   = errors.New("nothing is heard of its runner any more")
	errUnplayed = errors.New("nothing is heard of its runner, which has made no call")
)

// Agent plays episodes with runners of Agent Lightning that connect to it. It implements agent.Agent, and is safe for
// concurrent use.
type Agent struct {
	options  Options
	server   *http.Server
	address  string
	now      func() time.Time
	served   chan error // has room for the one result of the server
	decoding sync.Mutex // held while spans are decoded

	ctx       context.Context // ends with Close
	cancel    context.CancelCauseFunc
	running   sync.WaitGroup // runs; none begins once closed
	connected chan struct{}  // closed when a runner has asked for work

	mu     sync.Mutex
	closed bool             // guarded by mu
	met    bool             // guarded by mu; connected is closed
	queue  *queue           // guarded by mu
	plays  map[string]*play // guarded by mu; the rollouts that are played, by id
	work   chan struct{}    // guarded by mu; closed, and made anew, when there is more to hand out
}

// play is a rollout that is played: what its attempt reaches, and whom to wake when the attempt ends.
type play struct {
	session *gateway.Session
	wake    chan struct{} // has room for one
	moves   int           // how often a call had begun or ended when the play was looked at last
}

// Serve starts to listen for runners. The caller closes the Agent.
func Serve(o Options) (*Agent, error) {
	if o.Gateway == nil || o.Key == "" || len(o.Roles) == 0 {
		panic("lightning: incomplete Options")
	}
	if o.Address == "" {
		o.Address = "127.0.0.1:0"
	}
	if o.Lease <= 0 {
		o.Lease = time.Minute
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	listener, err := net.Listen("tcp", o.Address)
	if err != nil {
		return nil, fmt.Errorf("listen for runners: %w", err)
	}
	if at, ok := listener.Addr().(*net.TCPAddr); !ok || !at.IP.IsLoopback() {
		return nil, errors.Join(fmt.Errorf("listen for runners on %s: it is no loopback address, and what runners send is not encrypted", o.Address), listener.Close())
	}
	a := &Agent{
		options: o, address: listener.Addr().String(), now: time.Now, served: make(chan error, 1),
		connected: make(chan struct{}), queue: newQueue(min(claimLease, o.Lease), o.Lease), plays: map[string]*play{},
		work: make(chan struct{}),
	}
	a.ctx, a.cancel = context.WithCancelCause(context.Background())
	a.server = &http.Server{
		Handler: a.handler(), ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
	}
	go func() { a.served <- a.server.Serve(listener) }()
	return a, nil
}

// Address is where runners connect to, such as "127.0.0.1:4747".
func (a *Agent) Address() string { return a.address }

// User is the name that runners have, with the key, in the URL that they connect to.
const User = "lightning"

// URL is what a runner's LightningStoreClient connects to: the address, with the key as HTTP's basic authentication,
// which is all that it can send.
func (a *Agent) URL() string { return "http://" + User + ":" + a.options.Key + "@" + a.address }

// Environ is what the process of a runner needs in its environment, as "NAME=value", so that a Trainer becomes a runner of
// this Agent and its tracer exports here. Old exporters (OpenTelemetry 1.39) find their way without the last two.
func (a *Agent) Environ() []string {
	host, port, _ := net.SplitHostPort(a.address) // it is a listener's
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return []string{
		"AGL_CURRENT_ROLE=runner",
		"AGL_SERVER_HOST=" + User + ":" + a.options.Key + "@" + host,
		"AGL_SERVER_PORT=" + port,
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + a.address,
		"OTEL_EXPORTER_OTLP_HEADERS=x-api-key=" + a.options.Key,
	}
}

// Ready waits until a runner has asked for something to do. An error says that ctx has ended.
func (a *Agent) Ready(ctx context.Context) error {
	select {
	case <-a.connected:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for a runner: %w", context.Cause(ctx))
	}
}

// Stats are an agent's figures.
type Stats struct {
	// Waiting counts the rollouts that wait for a runner, Running those that one plays, Started the attempts since Serve.
	Waiting, Running int
	Started          uint64
}

// Stats returns a copy of the agent's figures.
func (a *Agent) Stats() Stats {
	a.mu.Lock()
	defer a.mu.Unlock()
	waiting, out := a.queue.open()
	return Stats{Waiting: waiting, Running: out, Started: a.queue.started}
}

// Run implements agent.Agent: it lets a runner play the episode, and says how it ended. The package comment says which
// end is which.
func (a *Agent) Run(ctx context.Context, llm agent.LLM, e env.Episode) (agent.Result, error) {
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return agent.Result{}, errClosed
	}
	a.running.Add(1)
	a.mu.Unlock()
	defer a.running.Done()

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(a.ctx, func() { cancel(context.Cause(a.ctx)) })()
	id := "ro-" + randomID(16)
	for try := 1; ; try++ {
		result, err := a.attempt(ctx, llm, id, ask(e), try)
		if !errors.Is(err, errUnplayed) {
			return result, err
		}
		if try == maxAttempts {
			a.giveUp(id, failed, failed)
			return agent.Result{}, &agent.EnvironmentError{Err: fmt.Errorf("%w, %d times in a row", err, try)}
		}
		a.options.Log.Debug("a rollout is handed out again", "rollout", id, "cause", err)
	}
}

// ask is what an episode asks: the text of its last user message.
func ask(e env.Episode) (text string) {
	for _, m := range e.Messages() {
		if m.Role == chat.User {
			text = m.Content
		}
	}
	return text
}

// attempt has a runner play a rollout once. It is errUnplayed if that runner is lost before anything is recorded.
func (a *Agent) attempt(ctx context.Context, llm agent.LLM, id, input string, try int) (agent.Result, error) {
	calls := &agent.Watch{LLM: llm}
	session, err := a.options.Gateway.Open(ctx, gateway.SessionOptions{LLM: calls, Agents: a.options.Roles})
	if err != nil {
		if try > 1 {
			a.giveUp(id, failed, failed)
		}
		return agent.Result{}, &agent.EnvironmentError{Err: fmt.Errorf("open a session: %w", err)}
	}
	defer session.End()
	p := &play{session: session, wake: make(chan struct{}, 1)}
	a.offer(id, input, offer{
		Attempt: "at-" + randomID(8), Resources: "rs-" + randomID(16), Endpoint: session.BaseURL(), Key: session.Key(),
	}, p, try > 1)
	defer a.withdraw(id)
	how, err := a.await(ctx, id, p, calls)
	seen := session.End()
	switch {
	case err != nil:
		return agent.Result{}, err
	case how == unresponsive && calls.Begun() == 0:
		return agent.Result{}, errUnplayed
	case how == unresponsive:
		a.giveUp(id, failed, failed)
	}
	return judge(how, calls, seen)
}

// judge says what an attempt's end means.
func judge(how status, calls *agent.Watch, seen gateway.Summary) (agent.Result, error) {
	switch {
	case how == succeeded:
		return agent.Result{End: agent.Answered, Answer: seen.Answer, Feedback: seen.Feedback}, nil
	case how == unresponsive:
		return agent.Result{}, fmt.Errorf("%w, after %d calls", errSilent, calls.Begun())
	case calls.Refused() != 0 && seen.Failure == nil:
		return agent.Result{End: calls.Refused(), Feedback: seen.Feedback}, nil
	case seen.Failure != nil:
		// As text: whether a failure is the rollout's is for whoever records the calls, which may have been repeated.
		return agent.Result{}, fmt.Errorf("the runner says that the agent failed, after the policy did (%v)", seen.Failure)
	}
	return agent.Result{}, errors.New("the runner says that the agent failed; what it printed has the reason")
}

// offer has a rollout handed out, for the first time or again.
func (a *Agent) offer(id, input string, o offer, p *play, again bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if again {
		a.queue.again(id, o)
	} else {
		a.queue.add(a.now(), id, input, o)
	}
	a.plays[id] = p
	close(a.work)
	a.work = make(chan struct{})
}

// withdraw forgets what an attempt reaches.
func (a *Agent) withdraw(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.plays, id)
}

// giveUp ends a rollout.
func (a *Agent) giveUp(id string, s, lastly status) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.queue.end(a.now(), id, s, lastly)
}

// await waits for the end of an attempt, and says how it ended. An error is the end of ctx.
func (a *Agent) await(ctx context.Context, id string, p *play, calls *agent.Watch) (status, error) {
	for {
		how, until := a.look(id, p, calls)
		if how != "" {
			return how, nil
		}
		var alarm <-chan time.Time
		var timer *time.Timer
		if !until.IsZero() {
			timer = time.NewTimer(until.Sub(a.now()))
			alarm = timer.C
		}
		var over error
		select {
		case <-p.wake:
		case <-alarm:
		case <-ctx.Done():
			over = context.Cause(ctx)
		}
		if timer != nil {
			timer.Stop()
		}
		if over == nil {
			continue
		}
		if how, _ := a.look(id, p, calls); how == succeeded || how == failed {
			return how, nil // it came in time
		}
		if errors.Is(over, context.DeadlineExceeded) {
			a.giveUp(id, failed, timeout)
		} else {
			a.giveUp(id, cancelled, failed)
		}
		return "", over
	}
}

// look says how an attempt has ended, "" if it has not, and when its lease runs out, if it has one. Calls renew the lease:
// those that run, and those that have begun or ended since the last look.
func (a *Agent) look(id string, p *play, calls *agent.Watch) (how status, until time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.queue.rollouts[id]
	if t == nil {
		return failed, time.Time{} // it ended, and more than are remembered did after it
	}
	last := t.last()
	if t.ended() {
		return last.Status, time.Time{}
	}
	began, run := calls.Begun(), calls.Running()
	if moves := 2*began - run; last != nil && (run > 0 || moves != p.moves) {
		a.queue.hear(a.now(), id, last.ID)
		p.moves = moves
	}
	lost, until := a.queue.expire(a.now(), id)
	if lost {
		return unresponsive, time.Time{}
	}
	return "", until
}

// Close gives up the rollouts that are played, waits for them, and frees the address. It is called once.
func (a *Agent) Close() error {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.cancel(errClosed)
	a.running.Wait()
	ctx, stop := context.WithTimeout(context.Background(), closePatience)
	defer stop()
	err := a.server.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, a.server.Close())
	}
	if serving := <-a.served; !errors.Is(serving, http.ErrServerClosed) {
		err = errors.Join(err, serving)
	}
	if err != nil {
		return fmt.Errorf("close the endpoint for runners: %w", err)
	}
	return nil
}

// randomID is random, in so many hexadecimal digits.
func randomID(digits int) string {
	b := make([]byte, digits/2)
	rand.Read(b) // never fails
	return hex.EncodeToString(b)
}
