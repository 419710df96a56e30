package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// MaxParameters bounds a tool's JSON schema, in bytes.
const MaxParameters = 1 << 16

// describe is what a prompt says of a tool.
func describe(tool Tool) (string, error) {
	if !ValidToolName(tool.Name) {
		return "", fmt.Errorf("%w: tool name %q", ErrConversation, clip(tool.Name))
	}
	form := "()"
	if tool.Parameters != "" {
		if len(tool.Parameters) > MaxParameters {
			return "", fmt.Errorf("%w: parameters of tool %q are %d bytes, at most %d", ErrConversation, tool.Name, len(tool.Parameters), MaxParameters)
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, []byte(tool.Parameters)); err != nil {
			return "", fmt.Errorf("%w: parameters of tool %q: %s", ErrConversation, tool.Name, err)
		}
		form = compact.String()
		if s, err := signature(compact.Bytes()); err == nil {
			form = s
		}
	}
	text := tool.Name + form
	if tool.Description != "" {
		text += " " + tool.Description
	}
	return text, nil
}

// errRich says that a schema says more than a signature can.
var errRich = errors.New("schema is more than a signature")

// signature is a JSON schema as a list of parameters, in the schema's order. It fails with errRich, or what the
// JSON decoder says, for a schema of which that would not be the whole content.
func signature(schema []byte) (string, error) {
	var s struct {
		Type                 string          `json:"type"`
		Properties           json.RawMessage `json:"properties"`
		Required             []string        `json:"required"`
		AdditionalProperties *bool           `json:"additionalProperties"`
	}
	if err := strict(schema, &s); err != nil {
		return "", err
	}
	if s.Type != "object" {
		return "", errRich
	}
	list, err := parameters(s.Properties)
	if err != nil {
		return "", err
	}
	required := 0
	for i, p := range list {
		if slices.Contains(s.Required, p.name) {
			required++
		} else {
			list[i].suffix = "?"
		}
	}
	if required != len(s.Required) {
		return "", errRich // something is required twice, or is no property
	}
	var b strings.Builder
	for i, p := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(p.name)
		b.WriteString(p.suffix)
		if p.kind != "string" {
			b.WriteString(":" + p.kind)
		}
	}
	return "(" + b.String() + ")", nil
}

// parameter is one property of a schema.
type parameter struct{ name, kind, suffix string }

// parameters reads the properties of a schema, in order.
func parameters(properties []byte) ([]parameter, error) {
	if len(properties) == 0 {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(properties))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, errRich
	}
	var list []parameter
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		name, _ := key.(string)
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil, err
		}
		var p struct {
			Type string `json:"type"`
		}
		if err := strict(raw, &p); err != nil {
			return nil, err
		}
		known := slices.Contains([]string{"string", "number", "integer", "boolean"}, p.Type)
		twice := slices.ContainsFunc(list, func(q parameter) bool { return q.name == name })
		if !known || twice || !ValidToolName(name) {
			return nil, errRich
		}
		list = append(list, parameter{name: name, kind: p.Type})
	}
	return list, nil
}

// strict decodes one JSON value, which must not have fields that v lacks.
func strict(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errRich
	}
	return nil
}
