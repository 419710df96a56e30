package lightning

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/lightswarm/lightswarm/rollout/agent"
	"github.com/lightswarm/lightswarm/rollout/gateway"
)

func given(v float64) *float64 { return &v }

// rewardSpan is a span as the client of agentlightning 0.3 posts it for a reward that an agent returned.
func rewardSpan(j job, id string, start float64, more string) string {
	return fmt.Sprintf(`{"rollout_id":%q,"attempt_id":%q,"sequence_id":3,"trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","span_id":%q,
		"parent_id":null,"name":"agentlightning.annotation","status":{"status_code":"UNSET","description":null},
		"attributes":{"agentlightning.reward.0.name":"primary","agentlightning.reward.0.value":0.5%s},"events":[],"links":[],
		"start_time":%f,"end_time":null,"context":{"trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","span_id":%q,"is_remote":false,"trace_state":{}},
		"parent":null,"resource":{"attributes":{},"schema_url":""},"kept":[1,{"a":null}]}`, j.rollout, j.attempt, id, more, start, id)
}

// A runner's whole way through one rollout, in the requests that agentlightning 0.3 makes.
func TestARollout(t *testing.T) {
	f := newFixture(t, 0)
	done := f.play(t.Context(), &answers{good: 2}, "What is 3+4?")
	if got, want := f.must(200, "GET", "/health", ""), (object{"status": "ok"}); !cmp.Equal(got, any(want)) {
		t.Error(got)
	}
	rollout := f.take()
	ids := map[string]string{}
	for name, at := range map[string]object{"rollout_id": rollout, "attempt_id": rollout["attempt"].(object), "resources_id": rollout} {
		ids[name] = at[name].(string)
	}
	for name, pattern := range map[string]string{"rollout_id": "^ro-[0-9a-f]{16}$", "attempt_id": "^at-[0-9a-f]{8}$", "resources_id": "^rs-[0-9a-f]{16}$"} {
		if !regexp.MustCompile(pattern).MatchString(ids[name]) {
			t.Errorf("%s is %s", name, ids[name])
		}
	}
	start, begun := rollout["start_time"].(float64), rollout["attempt"].(object)["start_time"].(float64)
	if now := seconds(time.Now()); start < now-100 || begun < start || begun > now {
		t.Errorf("begun at %f, %f", start, begun)
	}
	want := object{
		"rollout_id": ids["rollout_id"], "input": "What is 3+4?", "start_time": start, "end_time": nil, "mode": "train", "status": "preparing",
		"resources_id": ids["resources_id"], "metadata": object{},
		"config":  object{"timeout_seconds": nil, "unresponsive_seconds": 60.0, "max_attempts": 3.0, "retry_condition": []any{"unresponsive"}},
		"attempt": object{"rollout_id": ids["rollout_id"], "attempt_id": ids["attempt_id"], "sequence_id": 1.0, "start_time": begun, "end_time": nil, "status": "preparing", "worker_id": "Worker-0", "last_heartbeat_time": nil},
	}
	if diff := cmp.Diff(want, rollout); diff != "" {
		t.Errorf("handed out (-want +got):\n%s", diff)
	}
	resources := f.must(200, "GET", "/resources/"+ids["resources_id"], "").(object)
	llm := resources["resources"].(object)["main_llm"].(object)
	j := job{ids["rollout_id"], ids["attempt_id"], llm["endpoint"].(string), llm["api_key"].(string)}
	if diff := cmp.Diff(object{
		"resources_id": ids["resources_id"], "create_time": begun, "update_time": begun, "version": 1.0,
		"resources": object{"main_llm": object{"resource_type": "llm", "endpoint": j.endpoint, "model": "policy", "api_key": j.key, "sampling_parameters": object{}}},
	}, resources); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
	status, first := f.call(j)
	if status != 200 {
		t.Fatal(status)
	}
	f.call(j)
	if n := f.must(200, "POST", "/spans/next", fmt.Sprintf(`{"rollout_id":%q,"attempt_id":%q}`, j.rollout, j.attempt)); !cmp.Equal(n, any(object{"sequence_id": 1.0})) {
		t.Error(n)
	}
	stats := f.must(200, "POST", "/workers/Worker-0", `{"heartbeat_stats":{"cpu":[1,2]}}`).(object)
	if stats["status"] != "busy" || stats["current_attempt_id"] != j.attempt || !cmp.Equal(stats["heartbeat_stats"], any(object{"cpu": []any{1.0, 2.0}})) {
		t.Error(stats)
	}
	linked := fmt.Sprintf(`,"agentlightning.link.0.key_match":"gen_ai.response.id","agentlightning.link.0.value_match":%q`, first)
	if span := f.must(201, "POST", "/spans", rewardSpan(j, "00f067aa0ba902b7", 1e9, linked)).(object); span["name"] != "agentlightning.annotation" || span["kept"] == nil {
		t.Error(span)
	}
	f.must(201, "POST", "/spans", rewardSpan(j, "00f067aa0ba902b8", 1e9+1, `,"agentlightning.reward.1.name":"style","agentlightning.reward.1.value":1`))
	if s := f.must(200, "GET", "/rollouts/"+j.rollout, "").(object); s["status"] != "running" {
		t.Error(s)
	}
	update := f.must(200, "POST", j.path(), `{"status":"succeeded"}`).(object)
	if update["status"] != "succeeded" || update["end_time"] == nil {
		t.Error(update)
	}
	got := f.end(done)
	half := 0.5
	if diff := cmp.Diff(agent.Result{End: agent.Answered, Answer: "seven", Feedback: &agent.Feedback{
		Reward: &half, Components: map[string]float64{"primary": 0.5, "style": 1}, Calls: map[int]agent.CallFeedback{0: {Reward: &half}},
	}}, got.Result); diff != "" || got.err != nil {
		t.Errorf("%v (-want +got):\n%s", got.err, diff)
	}
	// The same again, as a client does that got no answer; and what comes too late.
	if again := f.must(200, "POST", j.path(), `{"status":"succeeded"}`); !cmp.Equal(again, any(update)) {
		t.Error(again)
	}
	f.must(409, "POST", j.path(), `{"status":"failed"}`)
	f.must(409, "POST", j.path(), `{"status":"running"}`)
	f.must(201, "POST", "/spans", rewardSpan(j, "00f067aa0ba902b9", 1e9+2, ""))
	if late := f.must(200, "GET", "/resources/"+ids["resources_id"], ""); late != nil {
		t.Error(late)
	}
	if status, _ := f.call(j); status != 409 {
		t.Error(status)
	}
	list := f.must(200, "GET", "/rollouts/"+j.rollout+"/attempts", "").(object)
	if !cmp.Equal(list["items"], any([]any{update})) {
		t.Error(list)
	}
	if s := f.Stats(); s != (Stats{Started: 1}) {
		t.Errorf("%+v", s)
	}
}

// Tracers export by OTLP, and say in the resource whose spans they are.
func TestTraces(t *testing.T) {
	f := newFixture(t, 0)
	done := f.play(t.Context(), &answers{good: 1}, "?")
	j := f.begin()
	_, first := f.call(j)
	export := func(rollout, attempt string) []byte {
		var traces tracepb.TracesData
		if err := protojson.Unmarshal([]byte(fmt.Sprintf(`{"resourceSpans":[{
			"resource":{"attributes":[{"key":"agentlightning.rollout_id","value":{"stringValue":%q}},{"key":"agentlightning.attempt_id","value":{"stringValue":%q}}]},
			"scopeSpans":[{"spans":[
				{"traceId":"AAAAAAAAAAAAAAAAAAAAAQ==","spanId":"AAAAAAAAAAE=","name":"openai.chat.completion","startTimeUnixNano":1,"endTimeUnixNano":2,
				 "attributes":[{"key":"gen_ai.response.id","value":{"stringValue":%q}}]},
				{"traceId":"AAAAAAAAAAAAAAAAAAAAAQ==","spanId":"AAAAAAAAAAI=","name":"agentlightning.annotation","startTimeUnixNano":3,"endTimeUnixNano":3,
				 "attributes":[{"key":"agentlightning.reward.0.value","value":{"doubleValue":0.25}}]},
				{"traceId":"AAAAAAAAAAAAAAAAAAAAAQ==","spanId":"AAAAAAAAAAM=","name":"agentlightning.annotation","startTimeUnixNano":4,"endTimeUnixNano":4,
				 "attributes":[{"key":"agentlightning.reward.0.value","value":{"doubleValue":1}}]},
				{"traceId":"","name":"broken"}
			]}]}]}`, rollout, attempt, first)), &traces); err != nil {
			t.Fatal(err)
		}
		body, err := proto.Marshal(&traces)
		if err != nil {
			t.Fatal(err)
		}
		return body
	}
	url := "http://" + f.Address() + "/v1/traces"
	headers := []string{"Content-Type: application/x-protobuf", "X-Api-Key: " + testKey}
	for i, ids := range [][2]string{{j.rollout, j.attempt}, {j.rollout, "at-00000000"}, {"ro-0", j.attempt}, {"", ""}} {
		if status, said := f.ask("POST", url, export(ids[0], ids[1]), headers...); status != 200 || !strings.Contains(string(said), "ids") {
			t.Errorf("%d: %d %q", i, status, said)
		}
	}
	for _, c := range []struct {
		body, contentType string
		want              int
	}{
		{"", "application/x-protobuf", 200}, {"hello", "application/x-protobuf", 400}, {"{}", "text/plain", 415},
		{strings.Repeat("x", maxSpans+1), "application/x-protobuf", 413},
	} {
		if status, _ := f.ask("POST", url, []byte(c.body), "Content-Type: "+c.contentType, headers[1]); status != c.want {
			t.Errorf("%.20q: %d, want %d", c.body, status, c.want)
		}
	}
	f.must(200, "POST", j.path(), `{"status":"succeeded"}`)
	got := f.end(done)
	want := &agent.Feedback{Reward: given(1), Calls: map[int]agent.CallFeedback{0: {Reward: given(0.25)}}}
	if diff := cmp.Diff(want, got.Feedback); diff != "" || got.err != nil {
		t.Errorf("%v (-want +got):\n%s", got.err, diff)
	}
}

func TestEnds(t *testing.T) {
	f := newFixture(t, 0)
	broken := errors.New("the engine is broken")
	for name, c := range map[string]struct {
		policy *answers
		calls  int
		status string
		want   agent.Result
		err    string
	}{
		"a silent success":              {policy: &answers{}, status: "succeeded", want: agent.Result{End: agent.Answered}},
		"failed":                        {&answers{good: 1}, 1, "failed", agent.Result{}, "the agent failed"},
		"a runner's timeout":            {&answers{good: 1}, 1, "timeout", agent.Result{}, "the agent failed"},
		"a runner's unresponsive":       {&answers{}, 0, "unresponsive", agent.Result{}, "the agent failed"},
		"no calls left":                 {&answers{good: 1, err: agent.ErrExhausted}, 2, "failed", agent.Result{End: agent.Exhausted}, ""},
		"no room":                       {&answers{good: 1, err: agent.ErrNoRoom}, 2, "failed", agent.Result{End: agent.Cut}, ""},
		"no calls left, got over":       {&answers{good: 1, err: agent.ErrExhausted}, 2, "succeeded", agent.Result{End: agent.Answered, Answer: "seven"}, ""},
		"failed after the engine's own": {&answers{err: broken}, 1, "failed", agent.Result{}, "after the policy did (the engine is broken)"},
	} {
		done := f.play(t.Context(), c.policy, name)
		j := f.begin()
		for range c.calls {
			f.call(j)
		}
		f.must(200, "POST", j.path(), fmt.Sprintf(`{"status":%q}`, c.status))
		got := f.end(done)
		if got.Result != c.want || (got.err == nil) != (c.err == "") || got.err != nil && !strings.Contains(got.err.Error(), c.err) {
			t.Errorf("%s: %+v", name, got)
		}
		if errors.Is(got.err, broken) || isEnvironments(got.err) {
			t.Errorf("%s passes for another's failure: %v", name, got.err)
		}
	}
}

func isEnvironments(err error) bool {
	var failed *agent.EnvironmentError
	return errors.As(err, &failed)
}

// A rollout whose runner is lost before it made a call goes to another; what comes of the lost one counts no more.
func TestLostBeforeACall(t *testing.T) {
	f := newFixture(t, 50*time.Millisecond)
	done := f.play(t.Context(), &answers{good: 9}, "?")
	lost, second := f.grab(), f.take()
	if second["rollout_id"] != lost.rollout || second["attempt"].(object)["sequence_id"] != 2.0 {
		t.Fatalf("%v after %+v", second, lost)
	}
	if status, _ := f.call(lost); status != 409 {
		t.Error(status)
	}
	f.must(409, "POST", lost.path(), `{"status":"succeeded"}`)
	for range maxAttempts - 2 {
		f.take()
	}
	if got := f.end(done); !isEnvironments(got.err) {
		t.Errorf("%+v", got)
	}
	f.must(409, "POST", lost.path(), `{"status":"succeeded"}`)
	if s := f.must(200, "GET", "/rollouts/"+lost.rollout, "").(object); s["status"] != "failed" {
		t.Error(s)
	}
}

// One whose runner is lost after it made a call has failed: a second try would be another rollout.
func TestLostAfterACall(t *testing.T) {
	f := newFixture(t, 2*time.Second)
	done := f.play(t.Context(), &answers{good: 9}, "?")
	j := f.grab()
	if status, _ := f.call(j); status != 200 {
		t.Fatal(status)
	}
	got := f.end(done)
	if !errors.Is(got.err, errSilent) || isEnvironments(got.err) || f.Stats().Started != 1 {
		t.Errorf("%+v", got)
	}
	f.must(409, "POST", j.path(), `{"status":"succeeded"}`)
}

// slow is a policy that answers when it is told to.
type slow struct {
	answers
	begun, answer chan struct{}
}

func (s *slow) Complete(ctx context.Context, r agent.Request) (agent.Reply, error) {
	close(s.begun)
	<-s.answer
	return s.answers.Complete(ctx, r)
}

// While a call runs its runner is not lost, however long it takes.
func TestACallIsASignOfLife(t *testing.T) {
	const lease = time.Second
	f := newFixture(t, lease)
	policy := &slow{answers: answers{good: 1}, begun: make(chan struct{}), answer: make(chan struct{})}
	done := f.play(t.Context(), policy, "?")
	j := f.grab()
	called := make(chan int)
	go func() {
		status, _ := f.call(j)
		called <- status
	}()
	<-policy.begun
	select {
	case got := <-done:
		t.Errorf("lost: %+v", got)
	case <-time.After(2 * lease):
	}
	close(policy.answer)
	if status := <-called; status != 200 {
		t.Error(status)
	}
	f.must(200, "POST", j.path(), `{"status":"succeeded"}`)
	if got := f.end(done); got.err != nil {
		t.Error(got.err)
	}
}

func TestTheEndOfTheContext(t *testing.T) {
	f := newFixture(t, 0)
	given := errors.New("given up")
	for name, c := range map[string]struct {
		begin  bool
		late   bool // the deadline, else the caller's
		status string
	}{
		"waiting": {}, "waiting, deadline": {late: true}, "begun": {begin: true, status: "cancelled"},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		want := given
		if c.late {
			var stop context.CancelFunc
			ctx, stop = context.WithTimeout(ctx, time.Millisecond)
			defer stop()
			want = context.DeadlineExceeded
		}
		done := f.play(ctx, &answers{good: 1}, name)
		var j job
		if c.begin {
			j = f.begin()
		}
		if !c.late {
			cancel(given)
		}
		if got := f.end(done); !errors.Is(got.err, want) {
			t.Errorf("%s: %+v", name, got)
		}
		if c.begin {
			f.must(409, "POST", j.path(), `{"status":"succeeded"}`)
			if s := f.must(200, "GET", "/rollouts/"+j.rollout, "").(object); s["status"] != c.status {
				t.Errorf("%s: %v", name, s)
			}
		}
		cancel(nil)
	}
	if s := f.Stats(); s.Waiting+s.Running != 0 {
		t.Errorf("%+v", s)
	}
}

func TestWhoIsLetIn(t *testing.T) {
	f := newFixture(t, 0)
	for name, c := range map[string]struct {
		headers []string
		want    int
	}{
		"nobody": {nil, 401}, "a wrong key": {[]string{"X-Api-Key: c0ffeE"}, 401}, "an empty one": {[]string{"X-Api-Key: "}, 401},
		"the key": {[]string{"X-Api-Key: " + testKey}, 200}, "a password": {[]string{"Authorization: Basic bGlnaHRuaW5nOmMwZmZlZQ=="}, 200},
		"a wrong password": {[]string{"Authorization: Basic bGlnaHRuaW5nOng="}, 401},
	} {
		if status, said := f.ask("GET", "http://"+f.Address()+prefix+"/health", nil, c.headers...); status != c.want {
			t.Errorf("%s: %d %s", name, status, said)
		}
	}
	if _, err := Serve(Options{Gateway: &gateway.Gateway{}, Key: "k", Roles: []string{"solver"}, Address: "0.0.0.0:0"}); err == nil {
		t.Error("it listens to everybody")
	}
}

func TestRefusals(t *testing.T) {
	f := newFixture(t, 0)
	ctx, cancel := context.WithCancel(t.Context())
	done := f.play(ctx, &answers{}, "?")
	j := f.begin()
	for _, c := range []struct {
		want               int
		method, path, body string
	}{
		{404, "POST", "/queues/rollouts/enqueue", `{"rollouts":[]}`}, {404, "POST", "/rollouts", `{}`}, {404, "GET", "/", ""}, {404, "PUT", "/health", ""},
		{404, "GET", "/rollouts/ro-0", ""}, {404, "GET", "/rollouts/ro-0/attempts/latest", ""}, {404, "POST", "/rollouts/ro-0/attempts/latest", `{}`},
		{404, "POST", "/rollouts/" + j.rollout + "/attempts/at-0", `{}`}, {404, "POST", "/spans/next", `{"rollout_id":"ro-0"}`},
		{422, "POST", j.path(), `{"status":"cancelled"}`}, {422, "POST", j.path(), `{"status":7}`}, {422, "POST", j.path(), `{"status"`},
		{422, "POST", "/queues/rollouts/dequeue", `[]`}, {422, "POST", "/queues/rollouts/dequeue", fmt.Sprintf(`{"worker_id":%q}`, strings.Repeat("w", maxName+1))},
		{422, "POST", "/spans", ""}, {422, "POST", "/spans", `{"trace_id":"x"}`}, {404, "POST", "/spans", rewardSpan(job{rollout: "ro-0"}, "00f067aa0ba902b7", 1, "")},
		{413, "POST", "/workers/w", strings.Repeat(" ", maxSmall+1)},
		{200, "POST", "/queues/rollouts/dequeue", `{"limit":0}`}, {200, "POST", "/queues/rollouts/dequeue", `{"limit":-1}`},
		{200, "POST", "/workers/w", ""}, {200, "GET", "/resources/latest", ""}, {200, "GET", "/resources/rs-0", ""},
		{200, "POST", "/rollouts/" + j.rollout + "/attempts/latest", `{}`}, {200, "GET", "/rollouts/" + j.rollout + "/attempts/latest", ""},
	} {
		status, v := f.store(c.method, c.path, c.body)
		o, _ := v.(object)
		if status != c.want || status >= 400 && (len(o) != 1 || o["detail"] == "") {
			t.Errorf("%s %s %.40s: %d %v", c.method, c.path, c.body, status, v)
		}
	}
	cancel()
	f.end(done)
}

// A runner is known once it asks, and waits for work; closing gives up what is played and whoever waits.
func TestReadyAndClose(t *testing.T) {
	f := newFixture(t, 0)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.Ready(gone); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	got := make(chan object)
	go func() { got <- f.take() }()
	if err := f.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	done := f.play(t.Context(), &answers{}, "?")
	if rollout := <-got; rollout["input"] != "?" {
		t.Error(rollout)
	}
	polled := make(chan struct{})
	go func() { // it may be refused, but does not hold up the end
		defer close(polled)
		if r, err := f.client.Post(f.URL()+prefix+"/queues/rollouts/dequeue", "application/json", nil); err == nil {
			r.Body.Close()
		}
	}()
	f.close()
	if got := f.end(done); !errors.Is(got.err, errClosed) {
		t.Errorf("a rollout outlives its agent: %+v", got)
	}
	<-polled
	if _, err := f.Run(t.Context(), &answers{}, episode("?")); !errors.Is(err, errClosed) {
		t.Error("run after Close: ", err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"limit":1,"worker_id":"Worker-0"}`))
	f.Add([]byte(`{"status":"succeeded"}`))
	f.Add([]byte(`{"heartbeat_stats":{"cpu":1}}`))
	f.Add([]byte(rewardSpan(job{"ro-1", "at-1", "", ""}, "00f067aa0ba902b7", 1, "")))
	a := &Agent{}
	f.Fuzz(func(t *testing.T, body []byte) {
		if q, err := decodeDequeue(body); err == nil && (q.Limit < 0 || q.Limit > maxClaim || len(q.Worker) > maxName) {
			t.Errorf("%+v", q)
		}
		if q, err := decodeHeartbeat(body); err == nil && (len(q.Stats) == 0 || len(q.Stats) > maxStats) {
			t.Errorf("%d bytes of statistics", len(q.Stats))
		}
		if q, err := decodeUpdate(body); err == nil && q.Status == cancelled {
			t.Errorf("%+v", q)
		}
		decodeNext(body)
		if span, _, err := a.decodeSpan(body); err == nil && (span.End < span.Start || len(span.Rollout) > 256) {
			t.Errorf("%+v", span)
		}
	})
}
