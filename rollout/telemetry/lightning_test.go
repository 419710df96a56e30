package telemetry

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const lightningBody = `{"rollout_id":"ro-1","attempt_id":"at-1","sequence_id":2,"trace_id":"0102030405060708090a0b0c0d0e0f10","span_id":"0102030405060708",
	"parent_id":"0807060504030201","name":"agentlightning.annotation","status":{"status_code":"ERROR","description":null},
	"attributes":{"agentlightning.reward.0.name":"task","agentlightning.reward.0.value":0.5,"agentlightning.reward.1.name":"style",
	"agentlightning.reward.1.value":1,"agent.name":"solver","agentlightning.tag":["a"],"flag":true},
	"events":[{"name":"gen_ai.evaluation.result","attributes":{"gen_ai.evaluation.score.value":0.25},"timestamp":1.5}],
	"links":[{"context":{"trace_id":"0102030405060708090a0b0c0d0e0f10","span_id":"1112131415161718","is_remote":false,"trace_state":{}},"attributes":null}],
	"start_time":1.5,"end_time":null,"resource":{"attributes":{},"schema_url":""},"extra":[[]]}`

// A span that a client of Agent Lightning posts says the same as one that is exported.
func TestDecodeLightning(t *testing.T) {
	got, err := DecodeLightning([]byte(lightningBody))
	if err != nil {
		t.Fatal(err)
	}
	exported := `{"resourceSpans":[{"resource":{"attributes":[{"key":"agentlightning.rollout_id","value":{"stringValue":"ro-1"}},
		{"key":"agentlightning.attempt_id","value":{"stringValue":"at-0"}}]},"scopeSpans":[{"spans":[{
		"traceId":"0102030405060708090a0b0c0d0e0f10","spanId":"0102030405060708","parentSpanId":"0807060504030201","name":"agentlightning.annotation",
		"startTimeUnixNano":"1500000000","status":{"code":2},"attributes":[
		{"key":"agentlightning.reward.0.name","value":{"stringValue":"task"}},{"key":"agentlightning.reward.0.value","value":{"doubleValue":0.5}},
		{"key":"agentlightning.reward.1.name","value":{"stringValue":"style"}},{"key":"agentlightning.reward.1.value","value":{"intValue":"1"}},
		{"key":"agent.name","value":{"stringValue":"solver"}},{"key":"agentlightning.attempt_id","value":{"stringValue":"at-1"}}],
		"events":[{"name":"gen_ai.evaluation.result","attributes":[{"key":"gen_ai.evaluation.score.value","value":{"doubleValue":0.25}}]}],
		"links":[{"traceId":"0102030405060708090a0b0c0d0e0f10","spanId":"1112131415161718"}]}]}]}]}`
	want, broken, err := Decode(jsonType, "", []byte(exported))
	if err != nil || broken > 0 || len(want) != 1 {
		t.Fatal(want, broken, err)
	}
	if diff := cmp.Diff(want[0], got); diff != "" {
		t.Errorf("(-exported +posted):\n%s", diff)
	}
	if got.Rollout != "ro-1" || got.Attempt != "at-1" || !got.Failed || got.Kind != KindReward || len(got.Rewards) != 3 {
		t.Errorf("%+v", got)
	}
	for body, status := range map[string]int{
		"": 422, "[]": 422, "{}": 422, `{"trace_id":7}`: 422, strings.Replace(lightningBody, `"0102030405060708",`, `"",`, 1): 422,
		`{"attributes":{"a":` + strings.Repeat("[", 200) + "1": 413, strings.Repeat(" ", MaxBody+1): 413,
	} {
		var fault *Fault
		if _, err := DecodeLightning([]byte(body)); !errors.As(err, &fault) || fault.Status != status {
			t.Errorf("%.80q: %v", body, err)
		}
	}
	for seconds, want := range map[float64]uint64{-1: 0, 0: 0, 0.5: 5e8, 1e10: 0, 1e300: 0} {
		if got := nanoseconds(seconds); got != want {
			t.Errorf("%v seconds are %d", seconds, got)
		}
	}
}

func FuzzDecodeLightning(f *testing.F) {
	f.Add([]byte(lightningBody))
	f.Fuzz(func(t *testing.T, body []byte) {
		s, err := DecodeLightning(body)
		var fault *Fault
		switch {
		case err != nil && !errors.As(err, &fault):
			t.Fatalf("no fault: %v", err)
		case err == nil && (s.End < s.Start || len(s.Rewards) > maxRewards || len(s.Agents) > maxAgents || len(s.Rollout) > maxText || len(s.Attempt) > maxText):
			t.Fatalf("%+v", s)
		}
	})
}
