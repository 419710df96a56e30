package openenv

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/lightswarm/lightswarm/rollout/env/protocol"
)

// form is what a tool's arguments have to be: of a JSON schema, what keeps an action that an agent made up from a server
// that would fail at it. Keywords that it does not have are passed over.
type form struct {
	Required   []string            `json:"required"`
	Properties map[string]property `json:"properties"`
}

type property struct {
	// Type is a name of a type, or a list of them; nil for any.
	Type any   `json:"type"`
	Enum []any `json:"enum"`
	// Minimum and Maximum are for numbers.
	Minimum *float64 `json:"minimum"`
	Maximum *float64 `json:"maximum"`
}

// typeNames are JSON schema's.
var typeNames = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

// form reads the tool's parameters.
func (t *Tool) form() (form, error) {
	schema, err := marshal(t.Parameters)
	if err != nil {
		return form{}, err
	}
	var f form
	if err := json.Unmarshal([]byte(schema), &f); err != nil {
		return form{}, err
	}
	for _, name := range slices.Sorted(maps.Keys(f.Properties)) {
		for _, kind := range f.Properties[name].types() {
			if !slices.Contains(typeNames, kind) {
				return form{}, fmt.Errorf("%q has type %q; types are %s", name, kind, strings.Join(typeNames, ", "))
			}
		}
	}
	for _, name := range f.Required {
		if _, ok := f.Properties[name]; !ok {
			return form{}, fmt.Errorf("%q is required and not among the properties", name)
		}
	}
	return f, nil
}

// given reads an agent's arguments, or says what is wrong with them. Every server reads alike what it returns: characters that
// are none, such as half of a surrogate pair, are replaced, and no number is one that others cannot hold. Servers that meet
// either may fail at it, or at an observation that repeats it.
func given(arguments string) (_ object, wrong string) {
	if len(arguments) > maxMessage/2 {
		return nil, "the arguments are too long"
	}
	d := json.NewDecoder(strings.NewReader(arguments))
	d.UseNumber()
	var values map[string]any
	if err := d.Decode(&values); err != nil || values == nil || d.More() {
		return nil, "the arguments must be a JSON object"
	}
	read := object{}
	for name, value := range values {
		if !inRange(value) {
			return nil, name + " is, or has, a number out of range"
		}
		raw, err := marshal(value)
		if err != nil {
			return nil, "the arguments must be a JSON object"
		}
		read[name] = json.RawMessage(raw)
	}
	return read, ""
}

// inRange says whether all numbers in a value are finite as floating-point ones.
func inRange(value any) bool {
	switch v := value.(type) {
	case json.Number:
		_, err := v.Float64()
		return err == nil
	case []any:
		return !slices.ContainsFunc(v, func(one any) bool { return !inRange(one) })
	case map[string]any:
		for _, one := range v {
			if !inRange(one) {
				return false
			}
		}
	}
	return true
}

// types are the names of types that a property can have; none for any.
func (p property) types() (names []string) {
	list, ok := p.Type.([]any)
	if !ok && p.Type != nil {
		list = []any{p.Type}
	}
	for _, name := range list {
		names = append(names, fmt.Sprint(name))
	}
	return names
}

// takes says whether there is a parameter.
func (f form) takes(name string) bool {
	_, ok := f.Properties[name]
	return ok
}

// refuse says what is wrong with arguments; it is empty if nothing is.
func (f form) refuse(given object) string {
	for _, name := range slices.Sorted(maps.Keys(given)) {
		p, ok := f.Properties[name]
		if !ok {
			return fmt.Sprintf("there is no parameter %q", protocol.Clip([]byte(name)))
		}
		if why := p.refuse(given[name]); why != "" {
			return name + " " + why
		}
	}
	for _, name := range f.Required {
		if _, ok := given[name]; !ok {
			return name + " is missing"
		}
	}
	return ""
}

func (p property) refuse(raw json.RawMessage) string {
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return "is a number out of range"
	}
	if types := p.types(); len(types) > 0 && !slices.ContainsFunc(types, func(name string) bool { return hasType(name, value, raw) }) {
		return "must be of type " + strings.Join(types, " or ")
	}
	if len(p.Enum) > 0 && !slices.ContainsFunc(p.Enum, func(one any) bool { return reflect.DeepEqual(one, value) }) {
		one, err := marshal(p.Enum)
		if err != nil {
			return "is none of the values that it can have"
		}
		return "must be one of " + protocol.Clip([]byte(strings.Trim(one, "[]")))
	}
	number, ok := value.(float64)
	switch {
	case ok && p.Minimum != nil && number < *p.Minimum:
		return fmt.Sprintf("must be at least %v", *p.Minimum)
	case ok && p.Maximum != nil && number > *p.Maximum:
		return fmt.Sprintf("must be at most %v", *p.Maximum)
	}
	return ""
}

func hasType(name string, value any, raw json.RawMessage) bool {
	switch v := value.(type) {
	case nil:
		return name == "null"
	case bool:
		return name == "boolean"
	case string:
		return name == "string"
	case []any:
		return name == "array"
	case map[string]any:
		return name == "object"
	case float64:
		// What is written with a point is no integer to everybody.
		return name == "number" || name == "integer" && v == math.Trunc(v) && !bytes.ContainsAny(raw, ".eE")
	}
	return false
}
