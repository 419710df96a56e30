package gateway

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lightswarm/lightswarm/rollout/agent"
)

// An agent that knows Agent Lightning's variables alone calls the policy and posts its reward.
func TestLightningAgents(t *testing.T) {
	g := testGateway(t, Options{})
	s := open(t, g, always(says("hello")))
	key := "Authorization: Bearer " + variable(t, s, "AGL_KEY")
	events := variable(t, s, "AGL_EVENT_URL")
	if id, _, _ := strings.Cut(strings.Split(events, "/rollouts/")[1], "/"); id != s.ID() {
		t.Errorf("%s has not the rollout's id in its place", events)
	}
	if r := do(t, "POST", variable(t, s, "AGL_OPENAI_BASE_URL")+"/chat/completions", chatBody("hi", ""), key); r.content(t) != "hello" {
		t.Errorf("%d %s", r.status, r.body)
	}
	post := func(body string) httpResponse { return do(t, "POST", events, body, key) }
	for _, body := range []string{
		`{"event_type":"reward","data":{"value":0.25}}`, `{"event_type":"agent_output","data":{"patch":"+x"}}`, `{"event_type":"note"}`,
		`{"event_type":"reward","data":{"value":0.5,"reason":"right"}}`,
	} {
		r := post(body)
		var sent, got map[string]any
		if err := json.Unmarshal([]byte(body), &sent); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(r.body), &got); err != nil || r.status != 200 {
			t.Fatalf("%d %s: %v", r.status, r.body, err)
		}
		if sent["data"] == nil {
			sent["data"] = map[string]any{}
		}
		sent["rollout_id"], sent["attempt_id"], sent["timestamp"] = s.ID(), "0", got["timestamp"]
		if diff := cmp.Diff(sent, got); diff != "" || got["timestamp"].(float64) < 1e9 {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	for body, field := range map[string]string{
		`{"event_type":"reward"}`: "data.value", `{"event_type":"reward","data":{"value":null}}`: "data.value",
		`{"event_type":"reward","data":{"value":"1"}}`: "data.value", `{"event_type":"reward","data":{"value":1e999}}`: "data.value",
		`{"data":{}}`: "event_type", `{"event_type":7}`: "event_type", `{"event_type":"x","data":[]}`: "data", `hello`: "JSON",
	} {
		if r := post(body); r.status != 400 || !strings.Contains(r.body, field) {
			t.Errorf("%s: %d %s", body, r.status, r.body)
		}
	}
	other := open(t, g, always(says("x")))
	if r := do(t, "POST", events, "{}", "Authorization: Bearer "+other.Key()); r.status != 401 {
		t.Errorf("another's key: %d %s", r.status, r.body)
	}
	if r := do(t, "GET", events, "", key); r.status != 405 {
		t.Errorf("%d %s", r.status, r.body)
	}
	reward := 0.5
	want := &agent.Feedback{Reward: &reward}
	if diff := cmp.Diff(want, s.End().Feedback); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if r := post(`{"event_type":"reward","data":{"value":1}}`); r.status != 409 {
		t.Errorf("late: %d %s", r.status, r.body)
	}
}

func TestLightningPaths(t *testing.T) {
	for path, want := range map[string]route{
		"/proxy/rollout/R/attempt/0/mode/val/openai/v1/chat/completions": {Rollout: "R", Endpoint: "chat/completions"},
		"/proxy/rollout/R/attempt/0/mode/train/openai/v1/models":         {Rollout: "R", Endpoint: "models"},
		"/api/rollouts/R/attempt/0/events":                               {Rollout: "R", Endpoint: "events"},
		"/rollout/R/v1/events":                                           {Rollout: "R", Endpoint: "events"},
		"/api/rollouts/R/attempt/0/events/1":                             {},
		"/api/rollouts/R/events":                                         {},
		"/proxy/rollout/R/attempt/0/openai/v1/chat/completions":          {},
		"/proxy/rollout/R/attempt/0/mode/val/openai/v1":                  {},
		"/proxy/rollout":                                                 {},
	} {
		got, ok := parseRoute(path)
		if got != want || ok != (want != route{}) {
			t.Errorf("%s: %+v, %v", path, got, ok)
		}
	}
}
