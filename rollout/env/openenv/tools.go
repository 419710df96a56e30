package openenv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/rollout/env/protocol"
)

// tool is an action as a tool.
type tool struct {
	action map[string]any // fields that every such action has
	form   form           // of its arguments
}

// meet connects to the server once.
func (e *Environment) meet(ctx context.Context) error {
	e.ours = map[string]*tool{}
	for _, t := range e.spec.Tools {
		schema, err := t.schema()
		if err != nil {
			return err
		}
		f, err := t.form()
		if err != nil {
			return err
		}
		e.ours[t.Name] = &tool{action: t.Action, form: f}
		e.tools = append(e.tools, chat.Tool{Name: t.Name, Description: t.Description, Parameters: schema})
	}
	if !e.spec.ServerTools {
		// Whatever it says of a state before a reset, it is there.
		s, _, err := e.tryBegin(ctx, message{Type: sendState})
		var full *busy
		if errors.As(err, &full) {
			return nil
		}
		if err == nil {
			s.close()
		}
		return err
	}
	s, r, err := e.begin(ctx, message{sendStep, map[string]any{"type": "list_tools"}}, false)
	if err != nil {
		return err
	}
	s.close()
	if r.trouble != nil {
		return fmt.Errorf("the server does not list tools, which environment.toml wants with server_tools: %w", r.trouble.failure())
	}
	listed, err := listTools(r.observation)
	if err != nil {
		return err
	}
	answers := false
	for _, t := range listed {
		if e.spec.Answer != nil && t.Name == e.spec.Answer.Tool {
			answers = true
			continue
		}
		if e.ours[t.Name] != nil {
			return fmt.Errorf("the server has a tool %q too: call the one in environment.toml another name", t.Name)
		}
		e.tools = append(e.tools, t)
	}
	if e.spec.Answer != nil && e.spec.Answer.Tool != "" && !answers {
		return fmt.Errorf("the server has no tool %q, which is to get the answer", e.spec.Answer.Tool)
	}
	return nil
}

// listTools are the tools that an observation lists.
func listTools(o object) ([]chat.Tool, error) {
	if problem := o.at("metadata.error"); problem != nil {
		return nil, fmt.Errorf("the server cannot list its tools: %s", protocol.Clip([]byte(text(problem))))
	}
	var listed []struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Schema      json.RawMessage `json:"input_schema"`
	}
	if err := json.Unmarshal(o["tools"], &listed); err != nil {
		return nil, fmt.Errorf("the server's list of tools cannot be read: %w", err)
	}
	if len(listed) > maxTools {
		return nil, fmt.Errorf("the server has %d tools; at most %d are allowed", len(listed), maxTools)
	}
	var tools []chat.Tool
	seen := map[string]bool{}
	for _, t := range listed {
		schema := objectOf(t.Schema)
		switch {
		case !chat.ValidToolName(t.Name):
			return nil, fmt.Errorf("the server's tool %q cannot be called so: names have letters, digits, _ and -", protocol.Clip([]byte(t.Name)))
		case seen[t.Name]:
			return nil, fmt.Errorf("the server's tool %q is there twice", t.Name)
		case schema == nil:
			return nil, fmt.Errorf("the server's tool %q has no JSON schema of an object", t.Name)
		}
		parameters, err := marshal(schema)
		if err != nil {
			return nil, err
		}
		if len(parameters) > chat.MaxParameters {
			return nil, fmt.Errorf("the schema of the server's tool %q has %d bytes; at most %d are allowed", t.Name, len(parameters), chat.MaxParameters)
		}
		seen[t.Name] = true
		tools = append(tools, chat.Tool{Name: t.Name, Description: t.Description, Parameters: parameters})
	}
	return tools, nil
}
