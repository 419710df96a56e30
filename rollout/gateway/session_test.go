package gateway

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/rollout/agent"
)

// gated is a policy that answers "answer N" to its call N once the gate is opened, and says on began when it begins.
type gated struct {
	*fakeLLM
	began chan int
	gate  chan struct{}
}

func newGated() *gated {
	l := &gated{began: make(chan int, 100), gate: make(chan struct{})}
	l.fakeLLM = &fakeLLM{behave: func(ctx context.Context, _ agent.Request, call int) (chat.Message, error) {
		l.began <- call
		select {
		case <-l.gate:
			return says(fmt.Sprint("answer ", call)), nil
		case <-ctx.Done():
			return chat.Message{}, ctx.Err()
		}
	}}
	return l
}

const firstRetry, noRetry = "X-Stainless-Retry-Count: 1", "X-Stainless-Retry-Count: 0"

// until waits for what another goroutine is about to bring about.
func until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !holds(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// lost is how many exchanges of a session have lost their client.
func lost(s *Session) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, all := range s.exchanges {
		for _, x := range all.kept {
			if x.lost {
				n++
			}
		}
	}
	return n
}

func TestRetriesAreReplayed(t *testing.T) {
	g := testGateway(t, Options{})
	llm := &fakeLLM{behave: func(_ context.Context, _ agent.Request, call int) (chat.Message, error) {
		return says(fmt.Sprint("answer ", call)), nil
	}}
	s := open(t, g, llm)
	for i, c := range []struct{ content, header, want string }{
		{"hi", "", "answer 0"},
		{"hi", noRetry, "answer 1"},    // the same body without the mark is a new sample
		{"hi", firstRetry, "answer 1"}, // a retry is of the last
		{"hi", firstRetry, "answer 1"},
		{"ho", firstRetry, "answer 2"}, // of nothing that is known
		{"ho", firstRetry, "answer 2"},
	} {
		if got := postChat(t, s, c.content, "", c.header).content(t); got != c.want {
			t.Errorf("request %d: %s, want %s", i, got, c.want)
		}
	}
	// Another agent's retry is no retry.
	if got := postChat(t, s, "hi", "", firstRetry, agentHeader+": critic").content(t); got != "answer 3" {
		t.Errorf("another agent got %s", got)
	}
	if sum := s.End(); sum.Replies != 4 || sum.Answer != "answer 3" {
		t.Errorf("summary %+v", sum)
	}
}

// A client that goes away does not end its call; its retry joins it, streamed or not.
func TestRetryJoinsWhatRuns(t *testing.T) {
	for _, more := range []string{"", `"stream":true`} {
		g := testGateway(t, Options{})
		llm := newGated()
		s := open(t, g, llm)
		ctx, leave := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		url := s.BaseURL() + "/chat/completions"
		go func() {
			_, err := try(ctx, "POST", url, chatBody("hi", more))
			gone <- err
		}()
		<-llm.began
		leave()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		until(t, "the client is missed", func() bool { return lost(s) == 1 })
		var retry sync.WaitGroup
		retry.Go(func() {
			r, err := try(t.Context(), "POST", url, chatBody("hi", more), firstRetry)
			if err != nil || r.status != 200 || !strings.Contains(r.body, `"answer 0"`) {
				t.Errorf("%v %d %s", err, r.status, r.body)
			}
		})
		until(t, "the retry has joined", func() bool { return lost(s) == 0 })
		close(llm.gate)
		retry.Wait()
		if sum := s.End(); sum.Replies != 1 || len(llm.requests()) != 1 {
			t.Errorf("%d calls, summary %+v", len(llm.requests()), sum)
		}
	}
}

// A call that failed is not what a retry wants.
func TestFailuresAreNotReplayed(t *testing.T) {
	g := testGateway(t, Options{})
	s := open(t, g, &fakeLLM{behave: func(_ context.Context, _ agent.Request, call int) (chat.Message, error) {
		if call == 0 {
			return chat.Message{}, errors.New("broken")
		}
		return says("mended"), nil
	}})
	if r := postChat(t, s, "hi", ""); r.status != 503 {
		t.Errorf("%d %s", r.status, r.body)
	}
	if got := postChat(t, s, "hi", "", firstRetry).content(t); got != "mended" {
		t.Errorf("got %q", got)
	}
}

// The retry of a sample that failed is a sample of its own, and not one that the same request got before.
func TestFailedSamplesAreTriedAgain(t *testing.T) {
	g := testGateway(t, Options{})
	s := open(t, g, &fakeLLM{behave: func(_ context.Context, _ agent.Request, call int) (chat.Message, error) {
		if call == 1 || call == 2 {
			return chat.Message{}, errors.New("broken")
		}
		return says(fmt.Sprint("answer ", call)), nil
	}})
	for i, c := range []struct{ header, want string }{
		{noRetry, "answer 0"}, {noRetry, ""}, {noRetry, ""}, // three samples, of which two fail
		{firstRetry, "answer 3"}, {firstRetry, "answer 4"},
		{firstRetry, "answer 4"}, // nothing that failed is left to be tried again
	} {
		r := postChat(t, s, "hi", "", c.header)
		if c.want == "" && r.status == 503 {
			continue
		}
		if got := r.content(t); got != c.want {
			t.Errorf("request %d: %s, want %s", i, got, c.want)
		}
	}
}

// The retry of a request that failed is still its retry when there was no room for it the first time, nor the second.
func TestRetriesWaitForRoom(t *testing.T) {
	s := open(t, testGateway(t, Options{}), &fakeLLM{behave: func(_ context.Context, _ agent.Request, call int) (chat.Message, error) {
		if call == 0 {
			return chat.Message{}, errors.New("broken")
		}
		return says("mended"), nil
	}})
	if r := postChat(t, s, "hi", ""); r.status != 503 {
		t.Errorf("%d %s", r.status, r.body)
	}
	others := func(n int) { s.mu.Lock(); defer s.mu.Unlock(); s.asking += n }
	others(maxOpen)
	for range 2 {
		if r := postChat(t, s, "hi", "", firstRetry); r.status != 429 || r.code(t) != "too_many_requests" {
			t.Errorf("%d %s", r.status, r.body)
		}
	}
	others(-maxOpen)
	for range 2 {
		if got := postChat(t, s, "hi", "", firstRetry).content(t); got != "mended" {
			t.Errorf("got %q", got)
		}
	}
	if sum := s.End(); sum.Replies != 1 {
		t.Errorf("%+v", sum)
	}
}

func TestEndWaitsForCalls(t *testing.T) {
	g := testGateway(t, Options{})
	llm := newGated()
	s := open(t, g, llm)
	answered := make(chan httpResponse, 1)
	go func() {
		r, _ := try(t.Context(), "POST", s.BaseURL()+"/chat/completions", chatBody("hi", ""))
		answered <- r
	}()
	<-llm.began
	summary := make(chan Summary)
	go func() { summary <- s.End() }()
	until(t, "the session ends", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.ended })
	if r := postChat(t, s, "late", ""); r.code(t) != "rollout_ended" || r.status != 409 || r.header.Get("X-Should-Retry") != "false" {
		t.Errorf("late: %d %s", r.status, r.body)
	}
	select {
	case sum := <-summary:
		t.Fatalf("ended while a call ran: %+v", sum)
	default:
	}
	close(llm.gate)
	if sum := <-summary; sum.Replies != 1 || sum.Answer != "answer 0" {
		t.Errorf("summary %+v", sum)
	}
	if got := (<-answered).content(t); got != "answer 0" {
		t.Errorf("the call that ran got %q", got)
	}
}

// When a rollout's time is up, its calls fail, and clients do not try again.
func TestContextEndsCalls(t *testing.T) {
	g := testGateway(t, Options{})
	llm := newGated()
	ctx, cancel := context.WithCancel(t.Context())
	s, err := g.Open(ctx, SessionOptions{LLM: llm, Agents: []string{"solver"}})
	if err != nil {
		t.Fatal(err)
	}
	go func() { <-llm.began; cancel() }()
	r := postChat(t, s, "hi", "")
	if r.status != 503 || r.code(t) != "rollout_given_up" || r.header.Get("X-Should-Retry") != "false" {
		t.Errorf("%d %s", r.status, r.body)
	}
	if r := postChat(t, s, "hi", ""); r.status != 409 {
		t.Errorf("then %d %s", r.status, r.body)
	}
	if sum := s.End(); !errors.Is(sum.Failure, context.Canceled) {
		t.Errorf("summary %+v", sum)
	}
}

func TestTooManyOpen(t *testing.T) {
	g := testGateway(t, Options{})
	llm := newGated()
	s := open(t, g, llm)
	var all sync.WaitGroup
	for i := range maxOpen {
		all.Go(func() {
			r, err := try(context.Background(), "POST", s.BaseURL()+"/chat/completions", chatBody(fmt.Sprint(i), ""))
			if err != nil || r.status != 200 {
				t.Errorf("%v %d %s", err, r.status, r.body)
			}
		})
	}
	for range maxOpen {
		<-llm.began
	}
	if r := postChat(t, s, "one more", ""); r.status != 429 || r.header.Get("Retry-After") != "1" || r.code(t) != "too_many_requests" {
		t.Errorf("%d %v %s", r.status, r.header, r.body)
	}
	close(llm.gate)
	all.Wait()
	if sum := s.End(); sum.Replies != maxOpen {
		t.Errorf("summary %+v", sum)
	}
}

// Calls whose clients have gone count too: nobody fills the gateway up by asking and going away.
func TestTooManyLeft(t *testing.T) {
	g := testGateway(t, Options{})
	llm := newGated()
	s := open(t, g, llm)
	for i := range maxOpen {
		ctx, leave := context.WithCancel(t.Context())
		var gone sync.WaitGroup
		gone.Go(func() {
			_, err := try(ctx, "POST", s.BaseURL()+"/chat/completions", chatBody(fmt.Sprint(i), ""))
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
		<-llm.began
		leave()
		gone.Wait()
	}
	until(t, "all clients are missed", func() bool { return lost(s) == maxOpen })
	patience, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if r, err := try(patience, "POST", s.BaseURL()+"/chat/completions", chatBody("one more", "")); err != nil || r.status != 429 || r.code(t) != "too_many_requests" {
		t.Errorf("%v, %d %s", err, r.status, r.body)
	}
	close(llm.gate)
	if got := postChat(t, s, "0", "", firstRetry).content(t); got != "answer 0" {
		t.Errorf("a retry got %q", got)
	}
	until(t, "all calls have ended", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.asking == 0 })
	if got := postChat(t, s, "one more", "").content(t); got != fmt.Sprint("answer ", maxOpen) {
		t.Errorf("one more got %q", got)
	}
}

// Sessions of one gateway run at once and do not mix.
func TestSessionsAtOnce(t *testing.T) {
	g := testGateway(t, Options{})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			s := open(t, g, &fakeLLM{behave: func(_ context.Context, r agent.Request, _ int) (chat.Message, error) {
				return says(fmt.Sprint(i, ": ", r.Messages[0].Content)), nil
			}})
			var calls sync.WaitGroup
			for j := range 8 {
				calls.Go(func() {
					r, err := try(context.Background(), "POST", "http://"+g.Address()+"/v1/chat/completions", chatBody(fmt.Sprint(j), ""), "Authorization: Bearer "+s.Key())
					if want := fmt.Sprintf(`"%d: %d"`, i, j); err != nil || !strings.Contains(r.body, want) {
						t.Errorf("%v, %s, want %s", err, r.body, want)
					}
				})
			}
			calls.Wait()
			if sum := s.End(); sum.Replies != 8 {
				t.Errorf("summary %+v", sum)
			}
		})
	}
	all.Wait()
}

func TestStreamsStayAlive(t *testing.T) {
	g := testGateway(t, Options{Keepalive: time.Millisecond})
	llm := newGated()
	s := open(t, g, llm)
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.BaseURL()+"/chat/completions", strings.NewReader(chatBody("hi", `"stream":true`)))
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	lines := bufio.NewScanner(r.Body)
	for comments := 0; comments < 3 && lines.Scan(); {
		if strings.HasPrefix(lines.Text(), ":") {
			comments++
		} else if lines.Text() != "" {
			t.Fatalf("before the answer: %q", lines.Text())
		}
	}
	close(llm.gate)
	last := ""
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "data: ") {
			last = lines.Text()
		}
	}
	if last != "data: [DONE]" || lines.Err() != nil {
		t.Errorf("last %q, %v", last, lines.Err())
	}
}

// A stream that fails early has its true status; a late failure is an event, in the dialect's form.
func TestStreamsFail(t *testing.T) {
	broken := func(context.Context, agent.Request, int) (chat.Message, error) {
		return chat.Message{}, errors.New("broken")
	}
	early := open(t, testGateway(t, Options{Keepalive: time.Hour}), &fakeLLM{behave: broken})
	if r := postChat(t, early, "hi", `"stream":true`); r.status != 503 || r.code(t) != "engine_failed" {
		t.Errorf("%d %s", r.status, r.body)
	}
	llm := newGated()
	late := open(t, testGateway(t, Options{Keepalive: time.Millisecond}), llm)
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, late.BaseURL()+"/messages",
		strings.NewReader(`{"stream":true,"max_tokens":5,"messages":[{"role":"user","content":"hi"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	late.cancel(errors.New("given up"))
	var fields []string
	for lines := bufio.NewScanner(r.Body); lines.Scan(); {
		if text := lines.Text(); text != "" && !strings.HasPrefix(text, ":") {
			fields = append(fields, text)
		}
	}
	if len(fields) != 2 || fields[0] != "event: error" || !strings.HasPrefix(fields[1], `data: {"type":"error","error":{`) {
		t.Errorf("%q", fields)
	}
}

func TestEventsOnTheWire(t *testing.T) {
	for want, e := range map[string]event{
		"data: {}\n\n":                   {Data: []byte("{}")},
		"event: a\ndata: b\ndata: c\n\n": {Name: "a", Data: []byte("b\nc")},
	} {
		if got := string(e.encode()); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestClose(t *testing.T) {
	// With time, what runs is waited for; without, it is given up.
	for _, patient := range []bool{true, false} {
		g, err := Serve(Options{})
		if err != nil {
			t.Fatal(err)
		}
		llm := newGated()
		s := open(t, g, llm)
		answered := make(chan httpResponse, 1)
		go func() {
			r, _ := try(context.Background(), "POST", s.BaseURL()+"/chat/completions", chatBody("hi", ""))
			answered <- r
		}()
		<-llm.began
		ctx, cancel := context.WithCancel(t.Context())
		closed := make(chan error)
		go func() { closed <- g.Close(ctx) }()
		until(t, "the gateway closes", func() bool { g.mu.Lock(); defer g.mu.Unlock(); return g.closed })
		if _, err := g.Open(t.Context(), SessionOptions{LLM: llm, Agents: []string{"solver"}}); err == nil {
			t.Error("a session opens on a closed gateway")
		}
		if patient {
			close(llm.gate)
		} else {
			cancel()
		}
		if err := <-closed; (err == nil) != patient {
			t.Errorf("patient %v: %v", patient, err)
		}
		if r := <-answered; patient && r.content(t) != "answer 0" {
			t.Errorf("%d %s", r.status, r.body)
		}
		s.End()
		cancel()
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

// Endings are remembered for a while, and not for ever.
func TestOldEndingsAreForgotten(t *testing.T) {
	g := testGateway(t, Options{})
	first := open(t, g, always(says("x")))
	first.End()
	if r := do(t, "GET", first.BaseURL()+"/models", ""); r.status != 409 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	for range maxEnded {
		open(t, g, always(says("x"))).End()
	}
	if r := do(t, "GET", first.BaseURL()+"/models", ""); r.status != 404 || len(g.ended) != 2*maxEnded {
		t.Errorf("%d %s, %d remembered", r.status, r.body, len(g.ended))
	}
}

func TestEnviron(t *testing.T) {
	g := testGateway(t, Options{})
	s := open(t, g, always(says("x")))
	for _, want := range []string{
		"OPENAI_BASE_URL=http://" + g.Address() + "/rollout/" + s.ID() + "/v1", "OPENAI_API_KEY=" + s.Key(),
		"ANTHROPIC_BASE_URL=http://" + g.Address() + "/rollout/" + s.ID(), "ANTHROPIC_API_KEY=" + s.Key(),
	} {
		if !slices.Contains(s.Environ(), want) {
			t.Errorf("%s is not in %q", want, s.Environ())
		}
	}
	for _, want := range append(Environ(), "OPENAI_AGENTS_DISABLE_TRACING=1") {
		if !slices.Contains(s.Environ(), want) || !slices.Contains(Environ(), want) {
			t.Errorf("%s is not in %q and %q", want, Environ(), s.Environ())
		}
	}
}

// A process that is started before its rollout knows the way already.
func TestReserve(t *testing.T) {
	g := testGateway(t, Options{})
	a := g.Reserve()
	if r := do(t, "GET", a.BaseURL()+"/models", ""); r.status != http.StatusNotFound || len(g.byID) != 0 {
		t.Errorf("before the session: %d %s, %d sessions", r.status, r.body, len(g.byID))
	}
	s, err := g.Open(t.Context(), SessionOptions{Access: a, LLM: always(says("x")), Agents: []string{"solver"}})
	if err != nil {
		t.Fatal(err)
	}
	if s.ID() != a.ID() || s.Key() != a.Key() || !slices.Equal(s.Environ(), a.Environ()) {
		t.Errorf("%q is not reached by %q", s.Environ(), a.Environ())
	}
	if r := do(t, "GET", a.BaseURL()+"/models", ""); r.status != http.StatusOK {
		t.Errorf("%d %s", r.status, r.body)
	}
	refuses := func(when string, g *Gateway) {
		defer func() {
			if recover() == nil {
				t.Errorf("an access opens a session %s", when)
			}
		}()
		g.Open(t.Context(), SessionOptions{Access: a, LLM: always(says("x")), Agents: []string{"solver"}})
	}
	refuses("twice at once", g)
	s.End()
	refuses("again", g)
	refuses("of another gateway", testGateway(t, Options{}))
}
