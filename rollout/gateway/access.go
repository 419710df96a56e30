package gateway

import "slices"

// Access is how an agent's process finds a session: an address and a key that are its alone.
type Access struct {
	gateway *Gateway
	id, key string
}

func newAccess(g *Gateway) Access {
	return Access{gateway: g, id: randomID(), key: "sk-lightswarm-" + randomID()}
}

// ID names the session; it is not to be guessed. The ids of its answers contain it.
func (a Access) ID() string { return a.id }

// Key is the session's API key.
func (a Access) Key() string { return a.key }

// BaseURL is the session's endpoint, for clients that want a URL ending in /v1.
func (a Access) BaseURL() string { return a.url() + "/v1" }

func (a Access) url() string { return "http://" + a.gateway.address + "/rollout/" + a.id }

// Environ is the part of an agent's environment, as "NAME=value", that all sessions have in common. A process that imports modules
// for many sessions has it: some libraries decide what they send while they are imported.
func Environ() []string {
	return []string{
		"OPENAI_AGENTS_DISABLE_TRACING=1",
		"OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf",
		"OTEL_EXPORTER_OTLP_COMPRESSION=gzip",
		"OTEL_METRICS_EXPORTER=none",
		"OTEL_LOGS_EXPORTER=none",
	}
}

// Environ is what an agent's process needs in its environment, as "NAME=value", so that the clients of all dialects
// find the session by themselves and send nothing elsewhere.
func (a Access) Environ() []string {
	return append([]string{
		"OPENAI_BASE_URL=" + a.BaseURL(),
		"OPENAI_API_BASE=" + a.BaseURL(),
		"OPENAI_API_KEY=" + a.key,
		"ANTHROPIC_BASE_URL=" + a.url(),
		"ANTHROPIC_API_KEY=" + a.key,
	}, slices.Concat(Environ(), a.telemetryEnviron(), a.lightningEnviron())...)
}
