package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
)

// maxDepth bounds how deeply a body's arrays and objects nest.
const maxDepth = 128

// decodeJSON reads a body, which is bounded already, into v. Fields that v lacks are ignored.
func decodeJSON(body []byte, v any) *apiError {
	if len(bytes.TrimSpace(body)) == 0 {
		return invalid("", "the body is empty: want a JSON object")
	}
	if depth(body) > maxDepth {
		return invalid("", "the body nests deeper than %d levels", maxDepth)
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

// depth is how deeply JSON nests. Of what is no JSON it is a bound.
func depth(data []byte) int {
	deepest, now, quoted := 0, 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			now++
			deepest = max(deepest, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return deepest
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
