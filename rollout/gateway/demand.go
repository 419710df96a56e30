package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"

	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/policy/grammar"
)

// strict notes that a tool is strict, if it is.
func (r *request) strict(name string, is bool) {
	if is {
		r.Strict = append(r.Strict, name)
	}
}

// demand is what the request asks of a completion's form; ok is false if it asks nothing.
func (r *request) demand() (d grammar.Demand, ok bool) {
	if r.Text != "" || len(r.Prompt) > 0 {
		return d, false
	}
	calls := chat.MaxToolCalls
	if r.SingleCall || r.Choice.Kind == chooseNamed {
		calls = 1
	}
	strict := false
	for _, t := range r.Tools {
		if r.Choice.Kind == chooseNone || r.Choice.Kind == chooseNamed && t.Name != r.Choice.Name {
			continue
		}
		tool := grammar.Tool{Name: t.Name, Parameters: []byte(t.Parameters), Strict: slices.Contains(r.Strict, t.Name)}
		d.Tools, d.Calls, strict = append(d.Tools, tool), calls, strict || tool.Strict
	}
	switch {
	case r.Choice.Kind == chooseRequired || r.Choice.Kind == chooseNamed:
	case r.Format.Kind == formatObject:
		d.Object = true
	case r.Format.Kind == formatSchema:
		d.Schema = r.Format.Schema
	default:
		d.Text = true
		return d, strict
	}
	return d, true
}

// grammar is what the completion is to be sampled within, nil for nothing: the request asks for no form, or for one that
// no grammar can hold.
func (r *request) grammar() (*grammar.Grammar, *apiError) {
	d, ok := r.demand()
	if !ok {
		return nil, nil
	}
	g, err := grammar.Compile(d)
	var refused *grammar.UnsupportedError
	switch {
	case errors.As(err, &refused):
		return nil, nil
	case err != nil && d.Schema != nil:
		return nil, invalid("response_format", "the form of the answer: %s", err)
	case err != nil:
		return nil, invalid("tools", "the parameters of a strict tool: %s", err)
	}
	return g, nil
}

// unmet says what of a request's demands on the form of an answer a choice does not fulfil, or nil. It judges what was
// not sampled within a grammar: there a policy fulfils a demand if it has learned to. A choice that was cut cannot be
// judged: the agent sees that it was cut.
func unmet(q *request, c choice) *apiError {
	calls := c.Message.ToolCalls
	switch {
	case c.Finish == finishLength:
	case q.Choice.Kind == chooseRequired && len(calls) == 0:
		return unsupported("tool_choice", "a tool call was required, which could not be enforced here, and the policy made none")
	case q.Choice.Kind == chooseNamed && !onlyCalls(calls, q.Choice.Name):
		return unsupported("tool_choice", "a call of %q was required, which could not be enforced here, and the policy made none", q.Choice.Name)
	case len(calls) > 0:
	case q.Format.Kind == formatObject && !isObject(c.Message.Content):
		return unsupported("response_format", "a JSON object was required, which could not be enforced here, and the policy wrote something else")
	case q.Format.Kind == formatSchema:
		if err := conforms(c.Message.Content, q.Format.Schema); err != nil {
			return unsupported("response_format", "an answer by a schema was required, which could not be enforced here, and the policy's is not: %s", err)
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
