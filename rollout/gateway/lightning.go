package gateway

import (
	"encoding/json"
	"net/http"
	"strings"
)

// Agents that were written for Agent Lightning 1.0 find the policy by AGL_OPENAI_BASE_URL and post what they have to say,
// their reward above all, to AGL_EVENT_URL, both with AGL_KEY. The paths are those of its server, because agents take
// the rollout's id out of them.
const (
	lightningAttempt = "0" // it has one attempt for each rollout, of this name
	lightningReward  = "reward"
)

// lightningEnviron makes those agents find the session.
func (a Access) lightningEnviron() []string {
	root := "http://" + a.gateway.address
	return []string{
		"AGL_OPENAI_BASE_URL=" + root + "/proxy/rollout/" + a.id + "/attempt/" + lightningAttempt + "/mode/train/openai/v1",
		"AGL_EVENT_URL=" + root + "/api/rollouts/" + a.id + "/attempt/" + lightningAttempt + "/events",
		"AGL_KEY=" + a.key,
	}
}

// lightningPath turns the parts of a path of that server into those of one of this gateway:
//
//	proxy/rollout/ID/attempt/A/mode/M/openai/v1/ENDPOINT  rollout/ID/v1/ENDPOINT
//	api/rollouts/ID/attempt/A/events                      rollout/ID/v1/events
func lightningPath(parts []string) []string {
	at := func(i int, words ...string) bool {
		for j, word := range words {
			if i+j >= len(parts) || parts[i+j] != word {
				return false
			}
		}
		return true
	}
	switch {
	case at(0, "proxy", "rollout") && at(3, "attempt") && at(5, "mode") && at(7, "openai", "v1"):
		return append([]string{"rollout", parts[2]}, parts[8:]...)
	case at(0, "api", "rollouts") && at(3, "attempt") && at(5, eventsEndpoint) && len(parts) == 6:
		return []string{"rollout", parts[2], "v1", eventsEndpoint}
	}
	return parts
}

// eventsEndpoint takes events.
const eventsEndpoint = "events"

// serveEvent takes an event. One of type reward is the agent's judgement, the last one counts; others are not kept.
func (s *Session) serveEvent(w http.ResponseWriter, body []byte) *apiError {
	var q struct {
		Type *string                    `json:"event_type"`
		Data map[string]json.RawMessage `json:"data"`
	}
	if fault := decodeJSON(body, &q); fault != nil {
		return fault
	}
	if q.Type == nil {
		return invalid("event_type", "event_type is missing, want a text")
	}
	if q.Data == nil {
		q.Data = map[string]json.RawMessage{}
	}
	if *q.Type == lightningReward {
		var value *float64
		if err := json.Unmarshal(q.Data["value"], &value); err != nil || value == nil {
			return invalid("data.value", "data.value is no finite number")
		}
		if fault := s.takeReward(&Reward{Value: *value}); fault != nil {
			return fault
		}
	} else {
		s.gateway.options.Log.Debug("an agent's event", "rollout", s.id, "type", clip(strings.ToValidUTF8(*q.Type, "\uFFFD")))
	}
	send(w, http.StatusOK, mustJSON(struct {
		Type    string                     `json:"event_type"`
		Rollout string                     `json:"rollout_id"`
		Attempt string                     `json:"attempt_id"`
		Time    float64                    `json:"timestamp"` // in seconds since 1970
		Data    map[string]json.RawMessage `json:"data"`
	}{*q.Type, s.id, lightningAttempt, float64(s.gateway.now().UnixMilli()) / 1000, q.Data}))
	return nil
}
