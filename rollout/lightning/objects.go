package lightning

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/lightswarm/lightswarm/rollout/telemetry"
)

// The objects of Agent Lightning's store, as clients read them. Times are in seconds since 1970.

type attemptObject struct {
	Rollout   string   `json:"rollout_id"`
	ID        string   `json:"attempt_id"`
	Number    int      `json:"sequence_id"`
	Start     float64  `json:"start_time"`
	End       *float64 `json:"end_time"`
	Status    status   `json:"status"`
	Worker    *string  `json:"worker_id"`
	Heartbeat *float64 `json:"last_heartbeat_time"`
}

type rolloutObject struct {
	ID        string         `json:"rollout_id"`
	Input     string         `json:"input"`
	Start     float64        `json:"start_time"`
	End       *float64       `json:"end_time"`
	Mode      string         `json:"mode"`
	Resources *string        `json:"resources_id"`
	Status    status         `json:"status"`
	Config    configObject   `json:"config"`
	Metadata  map[string]any `json:"metadata"`
	// Attempt is left out before the first: clients tell by it which of two types the object has.
	Attempt *attemptObject `json:"attempt,omitempty"`
}

type configObject struct {
	Timeout      *float64 `json:"timeout_seconds"`
	Unresponsive float64  `json:"unresponsive_seconds"`
	Attempts     int      `json:"max_attempts"`
	Retry        []status `json:"retry_condition"`
}

type resourcesObject struct {
	ID        string                 `json:"resources_id"`
	Created   float64                `json:"create_time"`
	Updated   float64                `json:"update_time"`
	Version   int                    `json:"version"`
	Resources map[string]modelObject `json:"resources"`
}

type modelObject struct {
	Type     string         `json:"resource_type"`
	Endpoint string         `json:"endpoint"`
	Model    string         `json:"model"`
	Key      string         `json:"api_key"`
	Sampling map[string]any `json:"sampling_parameters"`
}

type workerObject struct {
	ID        string          `json:"worker_id"`
	Status    string          `json:"status"`
	Stats     json.RawMessage `json:"heartbeat_stats"`
	Heartbeat float64         `json:"last_heartbeat_time"`
	Rollout   *string         `json:"current_rollout_id"`
	Attempt   *string         `json:"current_attempt_id"`
}

// modelResource is what Agent Lightning's own trainer calls the model, and policyModel what the gateway does.
const (
	modelResource = "main_llm"
	policyModel   = "policy"
)

func seconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

// secondsOrNone is a time, nil for the zero one.
func secondsOrNone(t time.Time) *float64 {
	if t.IsZero() {
		return nil
	}
	s := seconds(t)
	return &s
}

// textOrNone is a text, nil for the empty one.
func textOrNone(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func attemptOf(t *task, a *attempt) attemptObject {
	return attemptObject{t.ID, a.ID, a.Number, seconds(a.Begun), secondsOrNone(a.Ended), a.Status, textOrNone(a.Worker), secondsOrNone(a.Heard)}
}

func (a *Agent) object(t *task) rolloutObject {
	o := rolloutObject{
		ID: t.ID, Input: t.Input, Start: seconds(t.Created), End: secondsOrNone(t.Ended), Mode: "train", Status: t.Status,
		Config:   configObject{Unresponsive: a.options.Lease.Seconds(), Attempts: maxAttempts, Retry: []status{unresponsive}},
		Metadata: map[string]any{},
	}
	if last := t.last(); last != nil {
		o.Resources = &last.offer.Resources
		at := attemptOf(t, last)
		o.Attempt = &at
	}
	return o
}

func resourcesOf(o offer, created time.Time) resourcesObject {
	return resourcesObject{o.Resources, seconds(created), seconds(created), 1, map[string]modelObject{
		modelResource: {"llm", o.Endpoint, policyModel, o.Key, map[string]any{}},
	}}
}

// workerOf is a runner that plays t, or nothing if t is nil.
func workerOf(id string, stats json.RawMessage, now time.Time, t *task) workerObject {
	w := workerObject{ID: id, Status: "idle", Stats: stats, Heartbeat: seconds(now)}
	if t != nil {
		w.Status, w.Rollout, w.Attempt = "busy", &t.ID, &t.last().ID
	}
	return w
}

// The bodies of requests. Unknown fields are ignored.

type dequeueRequest struct {
	Limit  int    `json:"limit"`
	Worker string `json:"worker_id"`
}

type updateRequest struct {
	Status status `json:"status"`
}

type nextRequest struct {
	Rollout string `json:"rollout_id"`
	Attempt string `json:"attempt_id"`
}

type heartbeatRequest struct {
	Stats json.RawMessage `json:"heartbeat_stats"`
}

const (
	// maxClaim bounds what one request may take.
	maxClaim = 64
	// maxName bounds a worker's name, in bytes.
	maxName = 256
	// maxStats bounds what a heartbeat says of its machine, in bytes.
	maxStats = 64 << 10
)

// decode reads a body into v; an empty one leaves v as it is.
func decode(body []byte, v any) error {
	if len(body) == 0 {
		return nil
	}
	if err := json.Unmarshal(body, v); err != nil {
		return &fault{http.StatusUnprocessableEntity, "the body is not what this takes: " + err.Error()}
	}
	return nil
}

func decodeDequeue(body []byte) (dequeueRequest, error) {
	q := dequeueRequest{Limit: 1}
	if err := decode(body, &q); err != nil {
		return q, err
	}
	q.Limit = min(max(q.Limit, 0), maxClaim)
	if len(q.Worker) > maxName {
		return q, &fault{http.StatusUnprocessableEntity, fmt.Sprintf("worker_id has more than %d bytes", maxName)}
	}
	return q, nil
}

func decodeUpdate(body []byte) (updateRequest, error) {
	var q updateRequest
	if err := decode(body, &q); err != nil {
		return q, err
	}
	switch q.Status {
	case "", preparing, running, succeeded, failed, timeout, unresponsive:
		return q, nil
	}
	return q, &fault{http.StatusUnprocessableEntity, fmt.Sprintf("%.80q is no status of an attempt", q.Status)}
}

func decodeNext(body []byte) (nextRequest, error) {
	var q nextRequest
	return q, decode(body, &q)
}

func decodeHeartbeat(body []byte) (heartbeatRequest, error) {
	var q heartbeatRequest
	if err := decode(body, &q); err != nil {
		return q, err
	}
	if len(q.Stats) == 0 || len(q.Stats) > maxStats {
		q.Stats = json.RawMessage("null")
	}
	return q, nil
}

// sentSpan is a span as it was sent, which is what clients want back.
type sentSpan struct {
	Sequence int `json:"sequence_id"`
	whole    json.RawMessage
}

// decodeSpan reads a span. Only one is decoded at a time, which bounds the memory that it takes.
func (a *Agent) decodeSpan(body []byte) (telemetry.Span, sentSpan, error) {
	a.decoding.Lock()
	defer a.decoding.Unlock()
	said := sentSpan{whole: body}
	span, err := telemetry.DecodeLightning(body)
	if err == nil {
		err = decode(body, &said)
	}
	return span, said, err
}
