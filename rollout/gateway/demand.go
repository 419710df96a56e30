package gateway

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/lightswarm/lightswarm/policy/chat"
)

// unmet says what of a request's demands on the form of an answer a choice does not fulfil, or nil. The engine does
// not constrain what is sampled, so a demand is fulfilled by a policy that has learned to. A choice that was cut
// cannot be judged: the agent sees that it was cut.
func unmet(q *request, c choice) *apiError {
	calls := c.Message.ToolCalls
	switch {
	case c.Finish == finishLength:
	case q.Choice.Kind == chooseRequired && len(calls) == 0:
		return unsupported("tool_choice", "a tool call was required, which this endpoint does not enforce, and the policy made none")
	case q.Choice.Kind == chooseNamed && !onlyCalls(calls, q.Choice.Name):
		return unsupported("tool_choice", "a call of %q was required, which this endpoint does not enforce, and the policy made none", q.Choice.Name)
	case len(calls) > 0:
	case q.Format.Kind == formatObject && !isObject(c.Message.Content):
		return unsupported("response_format", "a JSON object was required, which this endpoint does not enforce, and the policy wrote something else")
	case q.Format.Kind == formatSchema:
		if err := conforms(c.Message.Content, q.Format.Schema); err != nil {
			return unsupported("response_format", "an answer by a schema was required, which this endpoint does not enforce, and the policy's is not: %s", err)
		}
	}
	return nil
}

// onlyCalls says whether there are calls and all are of one tool.
func onlyCalls(calls []chat.ToolCall, name string) bool {
	return len(calls) > 0 && !slices.ContainsFunc(calls, func(c chat.ToolCall) bool { return c.Name != name })
}

// isObject says whether text is a JSON object.
func isObject(text string) bool {
	b := bytes.TrimSpace([]byte(text))
	return len(b) > 0 && b[0] == '{' && json.Valid(b)
}
