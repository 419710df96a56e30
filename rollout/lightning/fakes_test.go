package lightning

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/rollout/agent"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/gateway"
)

// patience bounds waits for what is to happen at once, on a machine that does much else.
const patience = time.Minute

const testKey = "c0ffee"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// episode is an episode with one task.
type episode string

func (e episode) Messages() []chat.Message {
	return []chat.Message{{Role: chat.System, Content: "help"}, {Role: chat.User, Content: string(e)}}
}
func (episode) Tools() []chat.Tool                                   { return nil }
func (episode) Call(context.Context, string, string) (string, error) { return "", nil }
func (episode) Score(context.Context, string) (env.Score, error)     { return env.Score{}, nil }
func (episode) Close() error                                         { return nil }

// answers is a policy that says "seven" until it fails with an error.
type answers struct {
	good int
	err  error

	mu   sync.Mutex
	seen int // guarded by mu
}

func (a *answers) Complete(context.Context, agent.Request) (agent.Reply, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.seen++; a.seen > a.good {
		return agent.Reply{}, a.err
	}
	return agent.Reply{
		Message: chat.Message{Role: chat.Assistant, Content: "seven", Tokens: []int32{7, 1}},
		Call:    a.seen - 1, Prompt: []int32{1}, LogProbs: []float32{-1, -1}, Pieces: []string{"seven", "<end>"},
	}, nil
}

// fixture is an Agent, and a runner's client.
type fixture struct {
	*Agent
	t      *testing.T
	client *http.Client
	close  func() // the Agent, once
}

func newFixture(t *testing.T, lease time.Duration) *fixture {
	t.Helper()
	g, err := gateway.Serve(gateway.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, client: &http.Client{Transport: &http.Transport{}, Timeout: patience}}
	if f.Agent, err = Serve(Options{Gateway: g, Key: testKey, Roles: []string{"solver"}, Lease: lease}); err != nil {
		t.Fatal(err)
	}
	f.close = sync.OnceFunc(func() {
		f.client.CloseIdleConnections()
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		f.close()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := g.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return f
}

// ended is what Run returned.
type ended struct {
	agent.Result
	err error
}

// play runs a rollout.
func (f *fixture) play(ctx context.Context, llm agent.LLM, task string) <-chan ended {
	done := make(chan ended, 1)
	go func() {
		r, err := f.Run(ctx, llm, episode(task))
		done <- ended{r, err}
	}()
	return done
}

// end waits for the end of a rollout.
func (f *fixture) end(done <-chan ended) ended {
	f.t.Helper()
	select {
	case e := <-done:
		return e
	case <-time.After(patience):
		f.t.Fatal("the rollout does not end")
		return ended{}
	}
}

type object = map[string]any

// ask makes a request with headers as "Name: value", and returns the status and the body.
func (f *fixture) ask(method, url string, body []byte, headers ...string) (int, []byte) {
	f.t.Helper()
	q, err := http.NewRequest(method, url, bytes.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		q.Header.Set(name, value)
	}
	r, err := f.client.Do(q)
	if err != nil {
		f.t.Fatal(err)
	}
	defer r.Body.Close()
	said, err := io.ReadAll(r.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	return r.StatusCode, said
}

// store asks the store as a client does, and returns its JSON.
func (f *fixture) store(method, path, body string) (int, any) {
	f.t.Helper()
	status, said := f.ask(method, f.URL()+prefix+path, []byte(body), "Content-Type: application/json")
	var v any
	if err := json.Unmarshal(said, &v); err != nil {
		f.t.Fatalf("%s %s: %d %s", method, path, status, said)
	}
	return status, v
}

// must is store, where the status has to be this one.
func (f *fixture) must(want int, method, path, body string) any {
	f.t.Helper()
	status, v := f.store(method, path, body)
	if status != want {
		f.t.Fatalf("%s %s: %d %v, want %d", method, path, status, v, want)
	}
	return v
}

// job is what a runner got to do.
type job struct{ rollout, attempt, endpoint, key string }

func (j job) path() string { return "/rollouts/" + j.rollout + "/attempts/" + j.attempt }

// take gets a rollout to play, without its resources.
func (f *fixture) take() (rollout object) {
	f.t.Helper()
	for range 100 { // each asks for as long as there may be nothing
		list := f.must(200, "POST", "/queues/rollouts/dequeue", `{"limit":1,"worker_id":"Worker-0"}`).([]any)
		if len(list) == 1 {
			return list[0].(object)
		}
	}
	f.t.Fatal("nothing is handed out")
	return nil
}

// begin gets a rollout to play, with its resources.
func (f *fixture) begin() job {
	f.t.Helper()
	rollout := f.take()
	resources := f.must(200, "GET", "/resources/"+rollout["resources_id"].(string), "").(object)
	llm := resources["resources"].(object)["main_llm"].(object)
	return job{rollout["rollout_id"].(string), rollout["attempt"].(object)["attempt_id"].(string), llm["endpoint"].(string), llm["api_key"].(string)}
}

// grab is begin for a lease that may be over before the resources are there: they are taken from the queue itself.
func (f *fixture) grab() job {
	f.t.Helper()
	rollout := f.take()["rollout_id"].(string)
	f.mu.Lock()
	defer f.mu.Unlock()
	o := f.queue.rollouts[rollout].last().offer
	return job{rollout, o.Attempt, o.Endpoint, o.Key}
}

// call asks the policy, and returns the status and the answer's id.
func (f *fixture) call(j job) (status int, id string) {
	f.t.Helper()
	status, said := f.ask("POST", j.endpoint+"/chat/completions", []byte(`{"model":"policy","messages":[{"role":"user","content":"?"}]}`), "Authorization: Bearer "+j.key)
	var answer struct{ ID string }
	if err := json.Unmarshal(said, &answer); err != nil {
		f.t.Fatalf("%d %s", status, said)
	}
	return status, answer.ID
}
