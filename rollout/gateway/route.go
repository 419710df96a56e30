package gateway

import (
	"net/http"
	"strings"
)

// The headers that bind a request where its path does not.
const (
	rolloutHeader = "X-Lightswarm-Rollout"
	agentHeader   = "X-Lightswarm-Agent"
)

// route is what a request's path says.
type route struct {
	// Rollout is a session's id and Agent a role; both may be empty.
	Rollout, Agent string
	// Endpoint is what follows /v1/, such as "chat/completions".
	Endpoint string
}

// parseRoute reads a path: [/rollout/ID[/agent/NAME]]/v1/ENDPOINT, or one of Agent Lightning's. Superfluous slashes do not matter.
func parseRoute(path string) (r route, ok bool) {
	parts := lightningPath(strings.FieldsFunc(path, func(c rune) bool { return c == '/' }))
	take := func(word string) (value string) {
		if len(parts) >= 2 && parts[0] == word {
			value, parts = parts[1], parts[2:]
		}
		return value
	}
	if r.Rollout = take("rollout"); r.Rollout != "" {
		r.Agent = take("agent")
	}
	if len(parts) < 2 || parts[0] != "v1" {
		return route{}, false
	}
	r.Endpoint = strings.Join(parts[1:], "/")
	return r, true
}

// bind finds the session that a request is for: by its path, else by its API key, else by a header. A path or a header
// is enough, because agents and frameworks have API keys of their own; but it must not come with the key of another
// rollout.
func (g *Gateway) bind(r *http.Request, at route) (*Session, *apiError) {
	key := apiKey(r.Header)
	g.mu.Lock()
	defer g.mu.Unlock()
	named, byKey := orElse(at.Rollout, r.Header.Get(rolloutHeader)), g.byKey[key]
	s := g.byID[named]
	if at.Rollout == "" && (byKey != nil || g.ended[key]) {
		named, s = key, byKey
	}
	switch {
	case s != nil && (byKey != nil && byKey != s || byKey == nil && g.ended[key]):
		return nil, &apiError{
			Status: http.StatusUnauthorized, Type: unauthorized, Code: "invalid_api_key", NoRetry: true,
			Message: "the API key is another rollout's",
		}
	case s != nil:
		return s, nil
	case g.ended[named]:
		return nil, endedError()
	case named == "":
		return nil, &apiError{
			Status: http.StatusUnauthorized, Type: unauthorized, Code: "invalid_api_key", NoRetry: true,
			Message: "the request names no rollout: use the OPENAI_BASE_URL and the OPENAI_API_KEY of the agent's environment",
		}
	}
	return nil, &apiError{
		Status: http.StatusNotFound, Type: invalidRequest, Code: "rollout_not_found", NoRetry: true,
		Message: "there is no such rollout",
	}
}

// apiKey is the key that a client of any of the dialects sends, or "".
func apiKey(h http.Header) string {
	if key := h.Get("X-Api-Key"); key != "" {
		return key
	}
	scheme, key, _ := strings.Cut(h.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(key)
}

// role is the agent that a request is made as: the path's, the header's, the model's, else the environment's first.
func (s *Session) role(r *http.Request, at route, model string) (string, *apiError) {
	name := orElse(at.Agent, orElse(r.Header.Get(agentHeader), model))
	if name == "" {
		return s.agents[0], nil
	}
	for _, known := range s.agents {
		if name == known {
			return name, nil
		}
	}
	e := invalid("model", "the environment has no agent %q; it has %s", clip(name), strings.Join(s.agents, ", "))
	e.Status, e.Code, e.NoRetry = http.StatusNotFound, "agent_not_found", true
	return "", e
}
