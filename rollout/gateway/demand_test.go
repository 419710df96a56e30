package gateway

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/policy/grammar"
	"github.com/lightswarm/lightswarm/rollout/agent"
)

func TestDemand(t *testing.T) {
	tools := []chat.Tool{{Name: "f", Parameters: `{"type":"object"}`}, {Name: "g"}}
	f, g := grammar.Tool{Name: "f", Parameters: []byte(`{"type":"object"}`)}, grammar.Tool{Name: "g", Parameters: []byte{}}
	strictly := f
	strictly.Strict = true
	schema := format{Kind: formatSchema, Schema: []byte(`{"type":"null"}`)}
	for name, c := range map[string]struct {
		request request
		want    *grammar.Demand
	}{
		"nothing":            {request{Tools: tools}, nil},
		"a continued text":   {request{Text: "x", Format: schema}, nil},
		"continued tokens":   {request{Prompt: []int32{1}, Format: schema}, nil},
		"an object":          {request{Format: format{Kind: formatObject}}, &grammar.Demand{Object: true}},
		"a schema or a call": {request{Format: schema, Tools: tools}, &grammar.Demand{Schema: schema.Schema, Calls: 32, Tools: []grammar.Tool{f, g}}},
		"a schema and no call": {
			request{Format: schema, Tools: tools, Choice: toolChoice{Kind: chooseNone}}, &grammar.Demand{Schema: schema.Schema},
		},
		"a call": {
			request{Format: schema, Tools: tools, Choice: toolChoice{Kind: chooseRequired}}, &grammar.Demand{Calls: 32, Tools: []grammar.Tool{f, g}},
		},
		"a single call": {
			request{Tools: tools, SingleCall: true, Choice: toolChoice{Kind: chooseRequired}}, &grammar.Demand{Calls: 1, Tools: []grammar.Tool{f, g}},
		},
		"a call by name": {
			request{Tools: tools, Choice: toolChoice{chooseNamed, "g"}}, &grammar.Demand{Calls: 1, Tools: []grammar.Tool{g}},
		},
		"a strict tool": {
			request{Tools: tools, Strict: []string{"f"}}, &grammar.Demand{Text: true, Calls: 32, Tools: []grammar.Tool{strictly, g}},
		},
		"a strict tool that must not be called": {
			request{Tools: tools, Strict: []string{"f"}, Choice: toolChoice{Kind: chooseNone}}, nil,
		},
	} {
		got, ok := c.request.demand()
		if ok != (c.want != nil) {
			t.Errorf("%s: %+v, %v", name, got, ok)
		} else if ok {
			if diff := cmp.Diff(*c.want, got); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
	}
}

// What cannot be enforced is checked afterwards; what is no schema is refused at once.
func TestDemandsThatCannotBeEnforced(t *testing.T) {
	const (
		oneOf  = `"response_format":{"type":"json_schema","json_schema":{"name":"s","schema":{"oneOf":[{"type":"string"},{"type":"null"}]}}}`
		broken = `"response_format":{"type":"json_schema","json_schema":{"name":"s","schema":{"type":"int"}}}`
		strict = `"tools":[{"type":"function","function":{"name":"f","strict":true,"parameters":{"type":"int"}}}]`
		object = `"response_format":{"type":"json_object"}`
	)
	for name, c := range map[string]struct {
		more        string
		constrained bool
		status      int
		code        string
		calls       int
	}{
		"one of":              {oneOf, false, 400, "unsupported", 1},
		"no schema":           {broken, false, 400, "", 0},
		"no schema of a tool": {strict, false, 400, "", 0},
		"another engine":      {object, false, 400, "unsupported", 1},
		"an engine that can":  {object, true, 200, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := testGateway(t, Options{})
			llm := &constrainedLLM{fakeLLM: always(says("nothing of the kind")), constrained: c.constrained}
			s := open(t, g, llm)
			r := postChat(t, s, "hi", c.more)
			if r.status != c.status || c.status != 200 && r.code(t) != c.code || len(llm.requests()) != c.calls {
				t.Errorf("%d %s after %d calls", r.status, r.body, len(llm.requests()))
			}
			if name == "one of" && llm.requests()[0].Grammar != nil || name == "another engine" && llm.requests()[0].Grammar == nil {
				t.Error("the LLM is asked for something else")
			}
		})
	}
}

// constrainedLLM says of its answers that they were sampled within the request's grammar, or not.
type constrainedLLM struct {
	*fakeLLM
	constrained bool
}

func (l *constrainedLLM) Complete(ctx context.Context, r agent.Request) (agent.Reply, error) {
	reply, err := l.fakeLLM.Complete(ctx, r)
	reply.Constrained = l.constrained
	return reply, err
}
