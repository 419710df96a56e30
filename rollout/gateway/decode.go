package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
)

const (
	// maxDepth bounds how deeply a body's arrays and objects nest.
	maxDepth = 128
	// maxValues bounds how many values are in a body's arrays and objects: decoded, a small one takes up a hundred times
	// the bytes that it is written in.
	maxValues = 1 << 17
)

// decodeJSON reads a body, which is bounded already, into v. Fields that v lacks are ignored.
func decodeJSON(body []byte, v any) *apiError {
	if len(bytes.TrimSpace(body)) == 0 {
		return invalid("", "the body is empty: want a JSON object")
	}
	switch depth, values := extent(body); {
	case depth > maxDepth:
		return invalid("", "the body nests deeper than %d levels", maxDepth)
	case values > maxValues:
		return invalid("", "the body has more than %d values", maxValues)
	}
	err := json.Unmarshal(body, v)
	var wrong *json.UnmarshalTypeError
	var refused *apiError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused):
		return refused
	case errors.As(err, &wrong):
		return invalid(wrong.Field, "%s is %s, which does not fit", orElse(wrong.Field, "the body"), wrong.Value)
	default:
		return invalid("", "the body is not JSON: %s", err)
	}
}

// extent is how deeply JSON nests and how many values there are at most in its arrays and objects. Of what is no JSON
// both are bounds.
func extent(data []byte) (depth, values int) {
	now, quoted := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			now++
			values++
			depth = max(depth, now)
		case c == '}' || c == ']':
			now--
		case c == ',':
			values++
		}
	}
	return depth, values
}

// orElse is the first of the two that is not empty.
func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// isNull says that a field is absent or null.
func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// modelPrefix begins the model id of one of the policy's agents: policy/solver.
const modelPrefix = modelName + "/"

// modelName is the policy's model id. It looks like no vendor's, because clients treat those specially.
const modelName = "policy"

// roleOf is the agent that a model id names, or "".
func roleOf(model string) string {
	role, named := strings.CutPrefix(model, modelPrefix)
	if !named {
		return ""
	}
	return role
}
