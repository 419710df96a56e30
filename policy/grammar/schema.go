package grammar

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// maxSchema bounds a JSON schema, in bytes, and maxParts its parts, references followed.
const (
	maxSchema = 64 << 10
	maxParts  = 1 << 12
)

// ErrSchema says that a text is no JSON schema.
var ErrSchema = errors.New("bad JSON schema")

// UnsupportedError says that a schema asks for something that a grammar cannot hold, or is too large for one.
type UnsupportedError struct {
	// Keyword is the keyword of the schema, empty if it is none alone, and Path where it stands.
	Keyword, Path string
	// Why says more; it may be empty.
	Why string
}

func (e *UnsupportedError) Error() string {
	text := "the schema cannot be enforced"
	if e.Path != "" {
		text += " at " + e.Path
	}
	if e.Keyword != "" {
		text += fmt.Sprintf(": %q is not supported", clip(e.Keyword))
	}
	if e.Why != "" {
		text += ": " + e.Why
	}
	return text
}

// Keywords that assert nothing, and those that are enforced.
var (
	annotations = []string{
		"$schema", "$id", "$comment", "$defs", "definitions", "title", "description", "default", "examples", "format",
		"deprecated", "readOnly", "writeOnly",
	}
	assertions = []string{
		"$ref", "anyOf", "allOf", "type", "enum", "const", "properties", "required", "additionalProperties", "items",
		"minItems", "maxItems", "minLength", "maxLength", "pattern", "minimum", "maximum",
	}
)

// compiler writes a schema into a program.
type compiler struct {
	*program
	root any
	name string // of the schema among those of the program
	left int    // parts
}

// schema takes the values of a JSON schema, whose name no other of the program has.
func (p *program) schema(name string, schema []byte) {
	c := &compiler{program: p, name: name, left: maxParts}
	if len(schema) > maxSchema {
		c.unsupported("", "", "it has %d bytes, at most %d", len(schema), maxSchema)
		return
	}
	var err error
	if c.root, err = decode(schema); err != nil {
		c.wrong("$", err.Error())
		return
	}
	c.part(c.root, "$")
}

func (c *compiler) unsupported(keyword, path, why string, arguments ...any) {
	if c.err == nil {
		c.err = &UnsupportedError{keyword, path, fmt.Sprintf(why, arguments...)}
	}
}

func (c *compiler) wrong(path, why string) {
	if c.err == nil {
		c.err = fmt.Errorf("%w at %s: %s", ErrSchema, path, why)
	}
}

// part takes the values of a schema that stands at a path.
func (c *compiler) part(v any, path string) {
	if c.err != nil {
		return
	}
	if c.left--; c.left < 0 || c.full() {
		c.unsupported("", path, "it is too large")
		return
	}
	if all, ok := v.(bool); ok {
		if !all {
			c.unsupported("", path, "nothing is allowed here")
		}
		c.value()
		return
	}
	s, ok := v.(members)
	if !ok {
		c.wrong(path, "it is neither an object nor a boolean")
		return
	}
	var asserted []string
	for _, m := range s {
		switch {
		case slices.Contains(annotations, m.name):
		case slices.Contains(assertions, m.name):
			asserted = append(asserted, m.name)
		default:
			c.unsupported(m.name, path, "")
		}
	}
	alone := func(keyword string, but ...string) {
		for _, name := range asserted {
			if name != keyword && !slices.Contains(but, name) {
				c.unsupported(name, path, "it stands beside %s", keyword)
			}
		}
	}
	switch {
	case slices.Contains(asserted, "$ref"):
		alone("$ref")
		c.reference(s, path)
	case slices.Contains(asserted, "anyOf"):
		alone("anyOf")
		c.anyOf(s, path)
	case slices.Contains(asserted, "allOf"):
		alone("allOf")
		list, _ := mustGet(s, "allOf").([]any)
		if len(list) != 1 {
			c.unsupported("allOf", path, "it has %d parts", len(list))
			return
		}
		c.part(list[0], path+".allOf[0]")
	case slices.Contains(asserted, "const"):
		alone("const", "type")
		c.literals([]any{mustGet(s, "const")}, s, path)
	case slices.Contains(asserted, "enum"):
		alone("enum", "type")
		list, ok := mustGet(s, "enum").([]any)
		if !ok || len(list) == 0 {
			c.wrong(path, "enum is no list of values")
			return
		}
		c.literals(list, s, path)
	default:
		c.types(s, path)
	}
}

func mustGet(s members, name string) any {
	v, _ := s.get(name)
	return v
}

// reference takes what a JSON pointer into the schema names.
func (c *compiler) reference(s members, path string) {
	pointer, _ := mustGet(s, "$ref").(string)
	if plain, err := url.PathUnescape(pointer); err == nil { // it is a part of a URI
		pointer = plain
	}
	parts := strings.Split(pointer, "/")
	if parts[0] != "#" {
		c.unsupported("$ref", path, "%q is no place in the schema", clip(pointer))
		return
	}
	target := c.root
	for _, part := range parts[1:] {
		var ok bool
		switch parent := target.(type) {
		case members:
			target, ok = parent.get(strings.NewReplacer("~1", "/", "~0", "~").Replace(part))
		case []any:
			i, err := strconv.Atoi(part)
			if ok = err == nil && i >= 0 && i < len(parent); ok {
				target = parent[i]
			}
		default:
			ok = false
		}
		if !ok {
			c.wrong(path, fmt.Sprintf("there is no %q in it", clip(pointer)))
			return
		}
	}
	c.call(c.name+" "+pointer, func() { c.part(target, pointer) })
}

func (c *compiler) anyOf(s members, path string) {
	list, _ := mustGet(s, "anyOf").([]any)
	if len(list) == 0 {
		c.wrong(path, "anyOf is no list of schemas")
		return
	}
	var ways []func()
	for i, v := range list {
		ways = append(ways, func() { c.part(v, fmt.Sprintf("%s.anyOf[%d]", path, i)) })
	}
	c.choice(ways...)
}

// literals takes one of some values, as far as they are of the schema's type.
func (c *compiler) literals(values []any, s members, path string) {
	types := c.typeNames(s, path)
	var texts []string
	for _, v := range values {
		is := typeOf(v)
		if len(types) == 0 || slices.Contains(types, is) || is == "integer" && slices.Contains(types, "number") {
			texts = append(texts, compact(v))
		}
	}
	if len(texts) == 0 {
		c.unsupported("", path, "no value is of the type")
		return
	}
	c.oneOf(texts)
}

// typeOf is a value's type in JSON schema's words.
func typeOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case json.Number:
		if !strings.ContainsAny(v.String(), ".eE") {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	}
	return "object"
}

// typeNames are the types that a schema allows, nil for all.
func (c *compiler) typeNames(s members, path string) (names []string) {
	v, ok := s.get("type")
	if !ok {
		return nil
	}
	list, isList := v.([]any)
	if !isList {
		list = []any{v}
	}
	for _, v := range list {
		name, _ := v.(string)
		if !slices.Contains([]string{"null", "boolean", "string", "integer", "number", "array", "object"}, name) {
			c.wrong(path, "type is none of JSON's")
			return nil
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		c.wrong(path, "type is an empty list")
	}
	return names
}
