package openenv

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
)

// What the agent reads of what is not the server's.
const (
	endedText    = "The episode has ended."
	metadataName = "metadata"
)

// at is the value that a path leads to, nil if there is none or if it is null.
func (o object) at(path string) json.RawMessage {
	name, rest, deeper := strings.Cut(path, ".")
	value := o[name]
	if string(value) == "null" {
		return nil
	}
	if !deeper || value == nil {
		return value
	}
	return objectOf(value).at(rest)
}

// has says whether a path leads to something, be it null.
func (o object) has(path string) bool {
	name, rest, deeper := strings.Cut(path, ".")
	value, ok := o[name]
	if !deeper || !ok {
		return ok
	}
	return objectOf(value).has(rest)
}

// text is a value as an agent reads it: a string as it is, all else as JSON, nothing as nothing.
func text(value json.RawMessage) string {
	var s string
	if value == nil || json.Unmarshal(value, &s) == nil {
		return s
	}
	compact, err := marshal(value)
	if err != nil {
		return string(value)
	}
	return compact
}

// show is what the agent sees of an observation: of one named field its text, of several a line each, else all but the
// metadata as JSON. It is empty if there is nothing.
func (s *Spec) show(o object) string {
	switch len(s.Observe) {
	case 0:
		all := maps.Clone(o)
		delete(all, metadataName)
		if len(all) == 0 {
			return ""
		}
		shown, err := marshal(all)
		if err != nil {
			return "" // it was JSON before
		}
		return shown
	case 1:
		return text(o.at(s.Observe[0]))
	}
	var lines []string
	for _, path := range s.Observe {
		if value := o.at(path); value != nil {
			lines = append(lines, path+": "+text(value))
		}
	}
	return strings.Join(lines, "\n")
}

// called is what came of a call of one of the server's tools.
type called struct {
	// text is for the agent.
	text string
	// broken says that the tool could not be reached, which is no fault of the agent's.
	broken string
}

// toolResult reads the observation that follows a call of one of the server's tools. ok is false for other observations:
// some environments answer the call that ends an episode with one.
func toolResult(o object) (c called, ok bool) {
	if _, ok := o["tool_name"]; !ok {
		return called{}, false
	}
	var e *struct {
		Kind    string `json:"error_type"`
		Message string `json:"message"`
	}
	if json.Unmarshal(o.at("error"), &e) == nil && e != nil {
		if e.Kind == "transport_error" {
			return called{broken: e.Message}, true
		}
		return called{text: "error: " + e.Message}, true
	}
	result := o.at("result")
	if result == nil {
		return called{}, true
	}
	// MCP's result of a call: parts, of which text can be read.
	var parts struct {
		Content []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
		IsError      bool `json:"is_error"`
		IsErrorCamel bool `json:"isError"`
	}
	if json.Unmarshal(result, &parts) != nil || parts.Content == nil {
		return called{text: text(result)}, true
	}
	texts := make([]string, len(parts.Content))
	for i, p := range parts.Content {
		if texts[i] = p.Text; p.Type != "text" {
			texts[i] = fmt.Sprintf("(%s)", p.Type)
		}
	}
	c.text = strings.Join(texts, "\n")
	if parts.IsError || parts.IsErrorCamel {
		c.text = "error: " + c.text
	}
	return c, true
}
